"""`tercet serve` in processes of its own: signals, keys, logs, crashes, workers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from tercet.folders.model_card import ModelInfo
from tercet.model import Model, load
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

SECONDS = 120.0
MANY = ("--max-inputs", 30_000, "--queue-inputs", 30_000)
SECRET = "the-key-of-ada"
TEXT = "a film about marigolds"
TASKS = {
    "sentiment": TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-sst"},
            "labels": ["bad", "good"],
            "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
        }
    )
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=48, tasks=TASKS)
    path = tmp_path_factory.mktemp("served") / "small"
    Model(network, Tokenizer.load(tiny_encoder), info).save(path)
    return path


@dataclass
class Process:
    """A server that was started, and all it has written to stderr."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    url: str = ""

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line of an event; the server's end is an error."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("{") and json.loads(line)["event"] == event:
                found: dict[str, Any] = json.loads(line)
                return found
        raise AssertionError(f"ended before {event}: {''.join(self.lines)}")

    def read_on(self) -> None:
        """Keep reading, so that the server never waits for its log to be read."""
        assert self.process.stderr is not None
        stream = self.process.stderr
        threading.Thread(target=lambda: self.lines.extend(stream), daemon=True).start()

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=SECONDS, trust_env=False, **options)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


Start = Callable[..., Process]


@pytest.fixture
def start(environment: dict[str, str], folder: Path) -> Iterator[Start]:
    started: list[Process] = []

    def run(*arguments: object, code: str = "", folder: Path = folder, **variables: str) -> Process:
        command = ["-m", "tercet"] if not code else ["-c", code]
        options = ["serve", "--model", folder, "--port", 0, *arguments]
        process = subprocess.Popen(
            [sys.executable, *command, *map(str, options)],
            env=environment | variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        server = Process(process)
        started.append(server)
        server.url = server.wait_for("ready")["url"]
        return server

    yield run
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


class Clients:
    """Clients in threads that send requests until they are stopped or refused."""

    def __init__(self, server: Process, body: Any, *, count: int) -> None:
        self.statuses: Counter[int] = Counter()
        self.lost: list[str] = []
        self.without_retry = 0
        self._server = server
        self._body = body
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._server.url, timeout=SECONDS, trust_env=False) as client:
            while not self._stop.is_set():
                try:
                    message = client.post("/v1/embeddings", json=self._body)
                except httpx.ConnectError:
                    return  # no longer accepting: nothing was asked
                except httpx.HTTPError as error:
                    with self._lock:
                        self.lost.append(repr(error))
                    return
                with self._lock:
                    self.statuses[message.status_code] += 1
                    lacking = message.status_code == 429 and "retry-after" not in message.headers
                    self.without_retry += lacking

    def join(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(SECONDS)


def test_overload_is_told_with_the_time_to_come_back_and_sigterm_answers_what_was_accepted(
    start: Start,
) -> None:
    server = start("--queue-inputs", 64, "--max-inputs", 64)
    server.read_on()
    clients = Clients(server, {"model": "small", "input": ["film " * 40] * 40}, count=6)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and min(clients.statuses[200], clients.statuses[429]) < 20:
        assert httpx.get(f"{server.url}/health", timeout=SECONDS, trust_env=False).is_success
        time.sleep(0.02)
    assert set(clients.statuses) == {200, 429}
    assert server.end() == 0
    clients.join()
    assert set(clients.statuses) <= {200, 429, 503}
    assert not clients.without_retry
    assert not clients.lost


def test_keys_are_rotated_by_sighup_and_no_log_line_holds_a_key_or_a_text(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "keys"
    file.write_text(SECRET, "utf-8")
    server = start("--keys-file", file, TERCET_KEYS="from-the-environment")

    def ask(key: str, path: str = "/sentiment") -> int:
        headers = {"Authorization": f"Bearer {key}", "X-Request-Id": TEXT}
        return server.post(path, {"texts": [TEXT], "q": 1}, headers=headers).status_code

    assert (ask(SECRET), ask("from-the-environment"), ask("wrong-key")) == (422, 422, 401)
    assert server.post("/sentiment", {"texts": [TEXT]}).status_code == 401
    headers = {"Authorization": f"Bearer {SECRET}"}
    assert server.post("/sentiment", {"texts": [TEXT]}, headers=headers).status_code == 200
    assert ask(SECRET, f"/{TEXT}?key={SECRET}") == 404
    file.write_text("the-next-key", "utf-8")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("reloaded")
    assert (ask(SECRET), ask("the-next-key")) == (401, 422)
    file.unlink()
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("not-reloaded")
    assert ask("the-next-key") == 422
    server.process.send_signal(signal.SIGTERM)
    assert not server.wait_for("ended")["failed"]
    assert server.process.wait(SECONDS) == 0
    for line in server.lines:
        result = json.loads(line)
        assert result["time"]
        for secret in (SECRET, "next-key", "environment", "wrong-key", "marigold", str(tmp_path)):
            assert secret not in line
    requests = [json.loads(line) for line in server.lines if '"request"' in line]
    assert {result["route"] for result in requests} == {"/sentiment", "other"}
    assert all(result["seconds"] >= 0 and result["id"] for result in requests)


CRASH = """
import tercet.serve.encode as room

encode, errors = room.encode, [None, RuntimeError, None, SystemExit]

def crash(parts):
    error = errors.pop(0)
    if error is not None:
        raise error("a film about marigolds")
    return encode(parts)

room.encode = crash
from tercet.cli.app import main
main()
"""


def test_a_failed_batch_is_told_and_a_dead_encoder_ends_the_server(start: Start) -> None:
    server = start(code=CRASH)
    codes = [server.post("/sentiment", {"texts": [TEXT]}).status_code for _ in range(4)]
    assert codes == [200, 500, 200, 500]
    failed, died = server.wait_for("batch-failed"), server.wait_for("encoder-died")
    assert (failed["error"], died["error"]) == ("RuntimeError", "SystemExit")
    assert server.process.wait(SECONDS) == 1
    assert "marigold" not in "".join(server.lines)


def test_workers_hold_the_weights_once_and_one_that_dies_is_replaced(
    start: Start, minilm: Path
) -> None:
    server = start("--workers", 2, folder=minilm)
    server.wait_for("ready")
    body = {"model": minilm.name, "input": [f"{TEXT} {number}" for number in range(40)]}
    assert server.post("/v1/embeddings", body).status_code == 200
    weights = (minilm / "model.safetensors").stat().st_size // 1024
    workers = _children(server.process.pid)
    assert len(workers) == 2
    for worker in workers:
        held = _memory(worker)
        assert held["Shared_Clean"] + held["Shared_Dirty"] > weights
        assert held["Private_Clean"] + held["Private_Dirty"] < weights
    victim = min(workers)
    os.kill(victim, signal.SIGKILL)
    assert server.wait_for("worker-died")["worker"] == victim
    server.wait_for("ready")
    assert len(_children(server.process.pid)) == 2
    result = [server.post("/v1/embeddings", body).status_code for _ in range(4)]
    assert result == [200] * 4
    metrics = httpx.get(f"{server.url}/metrics", trust_env=False).text
    assert 'tercet_requests_total{route="/v1/embeddings",status="200"} 5.0' in metrics
    server.read_on()
    assert server.end() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_servers_of_an_onnx_folder_end_with_code_0(
    start: Start, environment: dict[str, str], folder: Path, tmp_path: Path, workers: int
) -> None:
    """ONNX Runtime starts a thread when it is imported, before workers are forked."""
    pytest.importorskip("onnxruntime")
    fast = tmp_path / "fast"
    command = ["export", str(folder), "--format", "onnx", "--out", str(fast)]
    subprocess.run([sys.executable, "-m", "tercet", *command], env=environment, check=True)
    server = start("--workers", workers, folder=fast)
    for _ in range(workers - 1):
        server.wait_for("ready")
    assert server.post("/sentiment", {"texts": [TEXT]}).status_code == 200
    server.read_on()
    assert server.end() == 0
    assert all(line.startswith("{") for line in server.lines), server.lines


def test_workers_end_with_a_parent_that_is_killed(start: Start, tmp_path: Path) -> None:
    server = start("--workers", 2, TMPDIR=str(tmp_path))
    server.wait_for("ready")
    assert list(tmp_path.glob("tercet-metrics-*"))
    workers = _children(server.process.pid)
    server.process.kill()
    server.process.wait(SECONDS)
    latest = time.monotonic() + SECONDS
    while any(map(_runs, workers)) and time.monotonic() < latest:
        time.sleep(0.1)
    assert not any(map(_runs, workers))
    assert not list(tmp_path.glob("tercet-metrics-*"))


def test_a_server_for_others_without_keys_warns(start: Start) -> None:
    server = start("--host", "0.0.0.0")
    assert any('"warning"' in line and "--keys-file" in line for line in server.lines)
    assert not any('"warning"' in line for line in start().lines)


def _runs(pid: int) -> bool:
    try:
        result = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return result.rpartition(")")[2].split()[0] != "Z"


def _children(pid: int) -> set[int]:
    result = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
    return {int(child) for child in result.split()}


def _memory(pid: int) -> dict[str, int]:
    """Kilobytes of a process that are its own, and that others have mapped too."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


def test_mistakes_end_with_one_sentence(here: Any, folder: Path) -> None:
    for arguments, words in [
        (["--max-tokens", 49], "--max-tokens 49"),
        (["--max-inputs", 9, "--queue-inputs", 8], "--queue-inputs 8"),
        (["--keys-file", folder / "none"], "none: does not exist"),
        (["--host", "192.0.2.1"], "192.0.2.1"),
        (["--workers", 0], "--workers"),
    ]:
        ended = here("serve", "--model", folder, "--port", 0, *arguments)
        assert ended.code == 2, ended.err
        assert ended.out == ""
        assert words in ended.err.splitlines()[-1]


def test_every_option_has_a_twin_in_the_environment(
    here: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MODEL", str(folder))
    monkeypatch.setenv("TERCET_PORT", "0")
    monkeypatch.setenv("TERCET_MAX_TOKENS", "50")
    assert "--max-tokens 50" in here("serve").err
    result = here("serve", "--help").out
    options = set(re.findall(r"--[a-z-]+", result)) - {"--help"}
    assert len(options) > 12
    squeezed = re.sub(r"[^A-Za-z_]", "", result)
    for option in options:
        assert f"TERCET_{option[2:].upper().replace('-', '_')}" in squeezed, option


NEW_TASK = TaskSpec.model_validate(
    {
        "data": {"layout": "cs224n-sst"},
        "labels": ["low", "high"],
        "side": {"rank": 2},
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
    }
)


def add_task(folder: Path) -> None:
    """Replace a model folder by one with a task more."""
    model = load(folder)
    tasks = {**model.info.tasks, "mood": NEW_TASK}
    network = Network(model.network.encoder, pooling="mean", tasks=tasks)
    network.load_head_state({**network.head_state(), **model.network.head_state()})
    info = model.info.model_copy(update={"tasks": tasks})
    Model(network, model.tokenizer, info).save(folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_new_model_is_taken_on_sighup_with_no_failed_request(
    start: Start, folder: Path, tmp_path: Path, workers: int
) -> None:
    served = Path(shutil.copytree(folder, tmp_path / "small"))
    server = start("--workers", workers, folder=served)
    for _ in range(workers - 1):
        server.wait_for("ready")
    body = {"inputs": [TEXT, "a book"]}
    assert server.post("/predict/mood", body).status_code == 404
    expected = server.post("/predict/sentiment", body).json()
    answers: Counter[tuple[int, bool]] = Counter()
    stop = threading.Event()

    def hammer() -> None:
        with httpx.Client(base_url=server.url, timeout=SECONDS, trust_env=False) as client:
            while not stop.is_set():
                reply = client.post("/predict/sentiment", json=body)
                answers[reply.status_code, reply.json() == expected] += 1

    with ThreadPoolExecutor(3) as pool:
        hammering = [pool.submit(hammer) for _ in range(3)]
        add_task(served)
        server.process.send_signal(signal.SIGHUP)
        for _ in range(workers):
            assert server.wait_for("reloaded")["tasks"] == ["sentiment", "mood"]
        stop.set()
        for one in hammering:
            one.result()
    assert set(answers) == {(200, True)}
    for _ in range(4):  # whichever worker is asked
        assert server.post("/predict/mood", body).status_code == 200
    document = httpx.get(f"{server.url}/openapi.json", trust_env=False).text
    assert "mood" in document
    # A folder that cannot be loaded is reported, and the model that is there keeps answering.
    (served / "heads.safetensors").write_bytes(b"broken")
    server.process.send_signal(signal.SIGHUP)
    assert "heads.safetensors" in server.wait_for("not-reloaded")["reason"]
    assert server.post("/predict/mood", body).status_code == 200
    server.read_on()
    assert server.end() == 0


def test_a_replaced_worker_has_the_new_keys_and_the_new_model(
    start: Start, folder: Path, tmp_path: Path
) -> None:
    served = Path(shutil.copytree(folder, tmp_path / "small"))
    file = tmp_path / "keys"
    file.write_text("revoked", "utf-8")
    server = start("--workers", 2, "--keys-file", file, folder=served)
    server.wait_for("ready")
    file.write_text("valid", "utf-8")
    add_task(served)
    server.process.send_signal(signal.SIGHUP)
    for _ in range(2):
        server.wait_for("reloaded")
    for victim in sorted(_children(server.process.pid)):
        os.kill(victim, signal.SIGKILL)
        server.wait_for("worker-died")
        server.wait_for("ready")
    server.read_on()

    def ask(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return server.post("/predict/mood", {"inputs": [TEXT]}, headers=headers).status_code

    assert [ask("revoked") for _ in range(6)] == [401] * 6
    assert [ask("valid") for _ in range(6)] == [200] * 6
    assert server.end() == 0


def test_a_client_that_does_not_read_delays_the_end_only_until_its_time(start: Start) -> None:
    server = start("--timeout", 4, "--max-wait", 1, "--workers", 2, *MANY)
    server.read_on()
    with unread_answer(server):
        began = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - began < 20


def test_a_second_signal_ends_the_server_at_once(start: Start) -> None:
    server = start("--timeout", 300, *MANY)
    server.read_on()
    with unread_answer(server):
        server.process.send_signal(signal.SIGTERM)
        time.sleep(2)
        assert server.process.poll() is None
        began = time.monotonic()
        assert server.end() == 1
        assert time.monotonic() - began < 5


@contextmanager
def unread_answer(server: Process) -> Iterator[None]:
    """A client that has asked for a long answer and does not read it."""
    body = json.dumps({"inputs": ["a"] * 30_000}).encode()
    head = b"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.settimeout(SECONDS)
        peer.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        peer.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert peer.recv(10).startswith(b"HTTP/1.1")
        yield
