"""What must be refused cheaply, while others are answered."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.model import Model
from tercet.serve import connection
from tercet.serve.encode import encode
from tercet.serve.logs import RunnerLines
from tercet.serve.server import allowed_hosts
from tercet.serve.workers import bind
from tercet.text.tokens import Pieces

JSON = {"Content-Type": "application/json"}


def send(server: Any, content: bytes, path: str = "/sentiment") -> Any:
    return server.client.post(path, content=content, headers=JSON)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"texts": "\xff"}',
        b'{"texts": "\\ud800"}',
        b"[" * 100,
        b'{"texts":' * 100,
        b'{"texts": ["a"]} {}',
        b'{"texts": ["a", ' + b"9" * 5000 + b"]}",
    ],
)
def test_what_is_no_json_is_a_bad_request(server: Any, body: bytes) -> None:
    result = send(server, body)
    assert result.status_code == 400
    assert result.json()["error_type"] == "Validation"


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"texts":' * 20_000])
def test_what_nests_deeply_is_too_much(server: Any, body: bytes) -> None:
    assert send(server, body).status_code == 413


@pytest.mark.parametrize("body", [b"null", b"5", b'"text"', b"[]", b'{"texts": null}'])
def test_json_of_another_shape_is_unprocessable(server: Any, body: bytes) -> None:
    assert send(server, body).status_code == 422


def test_a_body_must_say_that_it_is_json(server: Any) -> None:
    """So that another site's page cannot ask without the browser asking for leave."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp"):
        result = server.client.post("/sentiment", content=b"{}", headers={"Content-Type": kind})
        assert result.status_code == 415
    declared = {"Content-Type": "Application/JSON; charset=utf-8"}
    body = b'{"texts": "a"}'
    assert server.client.post("/sentiment", content=body, headers=declared).status_code == 200


def test_a_body_that_says_it_is_long_is_refused_unread(server: Any) -> None:
    head = b"POST /sentiment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as peer:
        peer.sendall(head + b"Content-Length: 100000000\r\n\r\n")
        assert peer.recv(1000).startswith(b"HTTP/1.1 413")
    assert send(server, b" " * 100_000_000).status_code == 413
    assert server.post("/sentiment", {"texts": "a"}).status_code == 200


def test_a_body_that_does_not_say_its_length_is_refused_while_it_comes(server: Any) -> None:
    def chunks() -> Any:
        yield b'{"texts": ["'
        for _ in range(3_000):
            yield b"a" * 1000

    result = server.client.post("/sentiment", content=chunks(), headers=JSON)
    assert result.status_code == 413
    assert "200000 bytes" in result.json()["error"]


def test_a_million_empty_strings_are_too_many(serve: Any) -> None:
    server = serve(body=4_000_000)
    result = send(server, b'{"texts": [' + b'"",' * 999_999 + b'""]}')
    assert (result.status_code, result.json()["field"]) == (413, "texts")
    assert "1000000 inputs" in result.json()["error"]


def test_unknown_paths_and_methods_are_told_in_the_same_form(server: Any) -> None:
    assert server.get("/nothing").json()["error_type"] == "NotFound"
    result = server.get("/sentiment")
    assert (result.status_code, result.headers["allow"]) == (405, "POST")
    assert result.json()["error"]
    assert server.get("/v1/nothing").json()["error"]["type"] == "not_found_error"


def test_a_client_that_says_nothing_is_cut_off_and_others_are_answered(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.5)
    server = serve()
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(50)]
    for peer in silent[::2]:
        peer.sendall(b"POST /sentiment HTTP/1.1\r\nHost: x\r\nContent-")
    assert server.post("/sentiment", {"texts": "a"}).status_code == 200
    for peer in silent:
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(1000) == b""
        peer.close()
    assert server.post("/sentiment", {"texts": "a"}).status_code == 200


def test_a_body_that_never_ends_is_timed_out(serve: Any) -> None:
    server = serve(timeout=0.5, wait=0.4)
    head = b"POST /sentiment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as peer:
        peer.sendall(head + b'Content-Length: 1000\r\n\r\n{"texts":')
        result = b""
        while chunk := peer.recv(1000):
            result += chunk
    assert result.startswith(b"HTTP/1.1 408")
    assert json.loads(result.rpartition(b"\r\n")[2])["error_type"] == "Timeout"


def test_what_is_not_answered_in_time_is_a_gateway_timeout(serve: Any, model: Any) -> None:
    def sleep(parts: Any) -> Any:
        time.sleep(1.0)
        return []

    server = serve(timeout=0.3, wait=0.2, encode_with=sleep)
    result = server.post("/sentiment", {"texts": "a"})
    assert (result.status_code, result.json()["error_type"]) == (504, "Timeout")


def test_an_encoder_that_fails_is_a_server_error_and_the_next_request_is_answered(
    serve: Any,
) -> None:
    failures = iter([True, False])

    def sometimes(parts: Any) -> Any:
        if next(failures):
            raise RuntimeError("no memory for: the text")
        return encode(parts)

    server = serve(encode_with=sometimes)
    result = server.post("/v1/embeddings", {"model": "small", "input": "a"})
    assert result.status_code == 500
    assert result.json()["error"]["type"] == "server_error"
    assert server.post("/v1/embeddings", {"model": "small", "input": "a"}).status_code == 200


def test_a_panic_is_a_counted_server_error(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Rust are not an `Exception`."""

    class Panic(BaseException):
        pass

    def fail(*_: object, **__: object) -> None:
        raise Panic

    server = serve()
    with monkeypatch.context() as patch:
        patch.setattr(Model, "piece_steps", fail)
        assert server.post("/sentiment", {"texts": "a"}).status_code == 500
    assert server.post("/sentiment", {"texts": "a"}).status_code == 200
    counted = 'tercet_requests_total{route="/sentiment",status="500"} 1.0'
    assert counted in server.get("/metrics").text


def test_a_line_of_the_runner_that_repeats_itself_is_written_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger = logging.Logger("runner")
    logger.addHandler(RunnerLines())
    for _ in range(1000):
        logger.error("socket.accept() out of system resource")
    logger.error("another")
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == [
        "socket.accept() out of system resource",
        "another",
    ]


def test_draining_refuses_all_but_health(serve: Any) -> None:
    server = serve()
    server.gate.draining = True
    result = server.post("/sentiment", {"texts": "a"})
    assert (result.status_code, result.headers["connection"]) == (503, "close")
    assert (server.get("/health").status_code, server.get("/health/live").status_code) == (503, 200)


def test_a_stuck_encoder_is_not_ready_until_it_goes_on(serve: Any) -> None:
    go = threading.Event()

    def wait(parts: Any) -> Any:
        go.wait(60)
        return encode(parts)

    server = serve(timeout=0.3, wait=0.2, encode_with=wait)
    assert server.get("/health/ready").json() == {"status": "ready"}
    assert server.post("/sentiment", {"texts": "a"}).status_code == 504
    for path in ("/health", "/health/ready"):
        found = server.get(path)
        assert (found.status_code, found.json()) == (503, {"status": "stuck"})
    assert server.get("/health/live").status_code == 200
    go.set()
    end = time.monotonic() + 30
    while server.get("/health/ready").status_code != 200:
        assert time.monotonic() < end
    assert server.post("/sentiment", {"texts": "a"}).status_code == 200


def test_other_sites_are_not_let_in_unless_opened(serve: Any, server: Any) -> None:
    ask = {"Origin": "https://friend.example", "Access-Control-Request-Method": "POST"}
    closed = server.client.options("/sentiment", headers=ask)
    assert "access-control-allow-origin" not in closed.headers
    opened = serve(origins=["https://friend.example"])
    result = opened.client.options("/sentiment", headers=ask)
    assert result.headers["access-control-allow-origin"] == "https://friend.example"
    stranger = opened.client.options(
        "/sentiment", headers=ask | {"Origin": "https://other.example"}
    )
    assert "access-control-allow-origin" not in stranger.headers


def test_pages_may_load_nothing_from_elsewhere(server: Any) -> None:
    for path in ("/docs", "/docs.css"):
        assert "default-src 'self'" in server.get(path).headers["content-security-policy"]
    assert "http" not in server.get("/docs").text.replace("https://", "").partition("<body>")[0]


def test_metrics_count_what_happened(serve: Any) -> None:
    server = serve()
    server.post("/sentiment", {"texts": ["", "", "film " * 60]})
    server.post("/sentiment", {"texts": 1})
    result = server.get("/metrics").text
    for line in (
        'tercet_requests_total{route="/sentiment",status="200"} 1.0',
        'tercet_refusals_total{status="422"} 1.0',
        "tercet_tokens_total 52.0",
        "tercet_truncated_inputs_total 1.0",
        "tercet_queue_inputs 0.0",
        "tercet_batch_fill_count 1.0",
    ):
        assert line in result, line


class SlowEncoder:
    """Takes its time for each batch, and counts what it encodes."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rows = 0

    def __call__(self, parts: Any) -> Any:
        self.rows += sum(len(part.rows) for part in parts)
        time.sleep(self.seconds)
        return encode(parts)


def request_bytes(path: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def test_nothing_is_encoded_for_a_client_that_has_left(serve: Any) -> None:
    encoder = SlowEncoder(0.05)
    server = serve(encode_with=encoder)
    body = {"texts": [f"a film about {number} " * 10 for number in range(64)]}
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as peer:
        peer.sendall(request_bytes("/sentiment", body))
        while not encoder.rows:
            time.sleep(0.005)
    assert server.post("/sentiment", {"texts": "a"}).status_code == 200
    seen = encoder.rows
    time.sleep(0.2)
    assert encoder.rows == seen
    assert seen < 64
    assert "tercet_queue_inputs 0.0" in server.get("/metrics").text
    assert 'status="499"' in server.get("/metrics").text


def test_a_stream_of_maximal_requests_leaves_short_ones_their_turn(serve: Any) -> None:
    server = serve(encode_with=SlowEncoder(0.01), wait=0.5, timeout=30.0, queue_tokens=4096)
    body = {"texts": ["a film that is worth a look " * 10] * 64}
    ended = threading.Event()

    def stream() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            while not ended.is_set():
                client.post("/sentiment", json=body)

    threads = [threading.Thread(target=stream) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        results = [server.post("/sentiment", {"texts": "two words"}) for _ in range(30)]
    finally:
        ended.set()
    assert {result.status_code for result in results} == {200}
    assert max(result.elapsed.total_seconds() for result in results) < 5  # mostly 0.03
    for thread in threads:
        thread.join()


def test_an_answer_that_is_not_read_in_time_is_dropped(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LAST_SECONDS", 0.1)
    server = serve(timeout=3.0, wait=0.5, inputs=30_000, queue_inputs=30_000, queue_tokens=2**20)
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", server.port))
        peer.settimeout(60)
        peer.sendall(request_bytes("/embed", {"inputs": ["a"] * 30_000}))
        answer = peer.recv(100)
        time.sleep(3.5)
        with contextlib.suppress(ConnectionResetError):
            while chunk := peer.recv(1_000_000):
                answer += chunk
    assert answer.startswith(b"HTTP/1.1 200")
    assert not answer.endswith(b"]]")
    assert server.post("/sentiment", {"texts": "a"}).status_code == 200


def test_a_connection_that_asks_again_and_again_is_kept(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LAST_SECONDS", 0.1)
    server = serve(timeout=0.5, wait=0.4)
    peer = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    peer.auto_open = False
    peer.connect()
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        peer.request("GET", "/health/live")
        assert peer.getresponse().read() == b'{"status":"live"}'
        time.sleep(0.02)


def test_a_name_that_is_not_the_servers_is_refused(serve: Any) -> None:
    """Another site's name that is resolved to this machine."""
    server = serve(hosts=frozenset({"localhost", "127.0.0.1", "::1", "tercet.example"}))
    body = {"texts": "a"}
    for host in ("127.0.0.1", "localhost:80", "[::1]:80", "LocalHost", "tercet.example:443"):
        assert server.post("/sentiment", body, headers={"Host": host}).status_code == 200
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", "::2"):
        refused = server.post("/sentiment", body, headers={"Host": host})
        assert refused.status_code == 421
        assert "--allowed-host" in refused.json()["error"]
        assert server.get("/", headers={"Host": host}).status_code == 421
        assert server.get("/health", headers={"Host": host}).status_code == 200


def test_the_document_has_the_refusal_of_another_name(serve: Any) -> None:
    server = serve(hosts=frozenset({"127.0.0.1"}))
    for path, methods in server.get("/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            status = server.client.request(
                method, path, headers={"Host": "evil.example"}
            ).status_code
            assert (status == 421) == ("421" in operation["responses"]), path


@pytest.mark.parametrize(
    ("address", "names", "hosts"),
    [
        ("127.0.0.1", [], {"localhost", "127.0.0.1", "::1"}),
        ("127.0.0.1", ["A.example"], {"localhost", "127.0.0.1", "::1", "a.example"}),
        ("0.0.0.0", [], None),
        ("0.0.0.0", ["a.example"], {"localhost", "127.0.0.1", "::1", "0.0.0.0", "a.example"}),
    ],
)
def test_names_are_checked_on_loopback_or_where_they_are_given(
    address: str, names: list[str], hosts: set[str] | None
) -> None:
    with bind(address, 0) as listener:
        assert allowed_hosts(listener, names) == hosts


def test_health_has_a_head(server: Any) -> None:
    for path in ("/health", "/health/live", "/health/ready"):
        found = server.client.head(path)
        assert (found.status_code, found.content) == (200, b"")


def test_long_texts_leave_shorter_ones_their_turn_to_be_tokenised(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, steps = serve(), Model.piece_steps
    begun, ended = threading.Semaphore(0), threading.Event()

    def endless_if_long(self: Model, texts: Sequence[str]) -> Iterator[Pieces]:
        pieces = Pieces.concat([*steps(self, texts)])
        if texts[0].startswith("long"):
            begun.release()
            while not ended.wait(0.005):
                yield pieces.take(np.arange(0))
        yield pieces

    monkeypatch.setattr(Model, "piece_steps", endless_if_long)

    def embed(word: str) -> int:
        return int(server.post("/embed", {"inputs": f"{word} " * 1000}, timeout=30).status_code)

    with ThreadPoolExecutor(4) as clients:
        waiting = [clients.submit(embed, "long") for _ in range(4)]
        try:
            assert all(begun.acquire(timeout=20) for _ in waiting)
            assert embed("short") == 200
        finally:
            ended.set()
        assert [answer.result() for answer in waiting] == [200] * 4
