"""The server under load, on loopback, with the load generator on the same machine.

    python benchmarks/serve.py throughput [MODEL] --peer VENV    against infinity-emb's server
    python benchmarks/serve.py compare [MODEL] --against DIR     with another checkout, in turns
    python benchmarks/serve.py balance [MODEL]                   connections of each of two workers
    python benchmarks/serve.py fairness [MODEL]                  beside maximal requests of others
    python benchmarks/serve.py tokenising [MODEL]                beside texts of megabytes of others
    python benchmarks/serve.py overload [MODEL]                  twice the load that it can handle
    python benchmarks/serve.py memory [MODEL]                    100,000 requests
    python benchmarks/serve.py drain [MODEL]                     SIGTERM under load, ten times

MODEL is a model folder or a name of `tercet weights`; default: all-minilm-l6-v2. VENV is a virtual
environment with `infinity-emb[server,torch]`; without it only our server is measured. Sentences are
those of quora-dev if TERCET_DATA contains it, otherwise the project's own sample.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from records import record

from embed import sentences
from tercet.weights import resolve

CLIENTS = 32
SENTENCES = 10_000
DRAINS = 10
BALANCES = 6
HEALTH_TARGET = "100 ms"
BESIDE = ("answers", "median", "p99", "longest")
OFFLINE = "offline `model.embed`, one call of 3,000 sentences"
PACKAGES = ("torch", "uvicorn", "fastapi")
READY = 120.0
"""Seconds that a server may take to start."""


@dataclass
class Load:
    """Clients that send the next request as soon as they have an answer, over raw sockets."""

    port: int
    requests: list[bytes]
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    without_retry: int = 0
    lost: int = 0
    ended: bool = False
    sent: int = 0
    limit: int | None = None
    idle: list[ClockedClient] = field(default_factory=list)

    async def run(self, clients: int, *, seconds: float) -> float:
        """Send requests for this long; return the seconds that it took."""
        loop = asyncio.get_running_loop()
        began = time.perf_counter()
        connections = [
            (await loop.create_connection(lambda: Client(self), "127.0.0.1", self.port))[1]
            for _ in range(clients)
        ]
        await asyncio.wait({asyncio.ensure_future(c.closed) for c in connections}, timeout=seconds)
        self.ended = True
        await asyncio.wait({asyncio.ensure_future(c.closed) for c in connections}, timeout=60)
        return time.perf_counter() - began

    async def run_by_clock(self, rate: float, *, seconds: float) -> None:
        """Send `rate` requests per second, answered or not."""
        loop = asyncio.get_running_loop()
        began, sent = time.perf_counter(), 0
        opened: list[ClockedClient] = []
        while (now := time.perf_counter() - began) < seconds:
            for _ in range(int(now * rate) - sent):
                sent += 1
                if not self.idle:
                    _, client = await loop.create_connection(
                        lambda: ClockedClient(self), "127.0.0.1", self.port
                    )
                    opened.append(client)
                    self.idle.append(client)
                self.idle.pop().send()
            await asyncio.sleep(0.005)
        self.ended = True
        deadline = time.perf_counter() + 60
        while any(client.waiting for client in opened) and time.perf_counter() < deadline:
            await asyncio.sleep(0.05)
        for client in opened:
            client.transport.close()

    def next(self) -> bytes | None:
        """The next request to send; None at the end."""
        if self.ended or (self.limit is not None and self.sent >= self.limit):
            return None
        self.sent += 1
        return random.choice(self.requests)


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.received = bytearray()
        self.length = -1
        self.status = 0
        self.waiting = self.last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        # A server that shuts down marks its last answer on a connection.
        request = None if self.last or self.transport.is_closing() else self.load.next()
        if request is None:
            self.transport.close()
            return
        self.waiting = True
        self.began = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.length < 0:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.received[:end]).lower()
            self.status = int(head[9:12])
            start = head.index(b"content-length:") + 15
            self.length = end + 4 + int(head[start:].split(b"\r", 1)[0])
            self.load.without_retry += self.status == 429 and b"retry-after:" not in head
            self.last = b"connection: close" in head
        if len(self.received) >= self.length:
            self.load.statuses[self.status] += 1
            self.load.seconds.append(time.perf_counter() - self.began)
            self.received.clear()
            self.length, self.waiting = -1, False
            self.answered()

    def answered(self) -> None:
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        self.load.lost += self.waiting
        if not self.closed.done():
            self.closed.set_result(None)


class ClockedClient(Client):
    """A client whose requests are sent by a clock, not by its last answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def answered(self) -> None:
        self.load.idle.append(self)


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    name: str
    port: int
    process: subprocess.Popen[bytes]

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def sockets(self) -> Counter[int]:
        """Open sockets of each worker, by process id."""
        pid = self.process.pid
        counts: Counter[int] = Counter()
        for worker in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split():
            for file in Path(f"/proc/{worker}/fd").iterdir():
                with suppress(FileNotFoundError):  # it has just been closed
                    counts[int(worker)] += file.readlink().name.startswith("socket:")
        return counts


@contextmanager
def serving(name: str, command: list[str], port: int, **variables: str) -> Iterator[Server]:
    """variables: of the environment of the server"""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"} | variables,
    )
    try:
        deadline = time.monotonic() + READY
        while not healthy(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{name} did not start: {' '.join(command)}")
            time.sleep(0.2)
        yield Server(name, port, process)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def ours(model: Path, port: int, *, workers: int = 1) -> list[str]:
    options = ["--model", model, "--port", port, "--workers", workers]
    return [sys.executable, "-m", "tercet", "serve", *map(str, options)]


def peers(venv: Path, model: Path, port: int) -> list[str]:
    command = f"v2 --device cpu --engine torch --url-prefix /v1 --log-level error --port {port}"
    named = ["--model-id", str(model), "--served-model-name", model.name]
    return [str(venv / "bin" / "infinity_emb"), *command.split(), *named]


def request(path: str, body: dict[str, object], *, key: str = "none") -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {key}\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def embeddings(model: Path, texts: list[str], *, inputs: int = 1) -> list[bytes]:
    """Requests with `inputs` sentences each, for OpenAI's API, which both servers have."""
    groups = [texts[start : start + inputs] for start in range(0, len(texts), inputs)]
    return [
        request("/v1/embeddings", {"model": model.name, "input": group if inputs > 1 else group[0]})
        for group in groups
    ]


def run_load(server: Server, requests: list[bytes], seconds: float) -> tuple[float, Load]:
    """Answers per second, after a short warm-up that is not counted."""
    asyncio.run(Load(server.port, requests).run(CLIENTS, seconds=min(5.0, seconds)))
    load = Load(server.port, requests)
    took = asyncio.run(load.run(CLIENTS, seconds=seconds))
    return load.statuses[200] / took, load


def throughput(model: Path, arguments: argparse.Namespace) -> None:
    texts = sentences(SENTENCES)
    requests = embeddings(model, texts)
    servers = [
        ("tercet", ours(model, arguments.port)),
        ("tercet, 2 workers", ours(model, arguments.port, workers=2)),
    ]
    if arguments.peer is not None:
        servers.append(("infinity-emb", peers(arguments.peer, model, arguments.port)))
    rates, rows = {}, []
    for name, command in servers:
        with serving(name, command, arguments.port) as server:
            rates[name], load = run_load(server, requests, arguments.seconds)
            rows.append(load_cells(name, rates[name], load))
    rates[OFFLINE] = offline(model, texts)
    rows.append([OFFLINE, f"{rates[OFFLINE]:.0f}", "", "", "", ""])
    ratios = {
        f"{two}to {kind}": f"{rates[name] / rates[peer]:.2f}"
        for (name, two), (peer, kind) in itertools.product(
            {"tercet": "", "tercet, 2 workers": "two "}.items(),
            {"infinity-emb": "peer", OFFLINE: "offline"}.items(),
        )
        if peer in rates
    }
    record(
        "throughput",
        columns=["server", "requests/s", "requests", "failed", "median", "p99"],
        rows=rows,
        values={"clients": CLIENTS, "seconds": f"{arguments.seconds:.0f} s", **ratios},
        packages=PACKAGES,
        encoder=f"{arguments.model}, fp32",
        data="the first questions of quora-dev's pairs",
    )


def compare(model: Path, arguments: argparse.Namespace) -> None:
    """Throughput of this checkout and of another, as ratios to offline `model.embed`, in turns."""
    if arguments.against is None:
        raise SystemExit("compare needs --against DIR, another checkout.")
    texts = sentences(SENTENCES)
    requests = embeddings(model, texts)
    trees = trees_of(arguments.against)
    rates: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        rates.setdefault("offline", []).append(offline(model, texts))
        for (name, tree), workers in itertools.product(trees.items(), (1, 2)):
            command = ours(model, arguments.port, workers=workers)
            found = rates.setdefault(f"{name}, {workers} workers", [])
            with serving(name, command, arguments.port, PYTHONPATH=str(tree / "src")) as server:
                rate, load = run_load(server, requests, arguments.seconds)
            print_load(f"{name}, {workers} workers", rate, load)
            found.append(rate)
    rows = comparison(rates)
    for row in rows:
        print("\t".join(row))
    if arguments.json is not None:
        columns = ["", "requests/s of each round", "ratio of the means to offline"]
        arguments.json.write_text(json.dumps({"columns": columns, "rows": rows}), "utf-8")


def balance(model: Path, arguments: argparse.Namespace) -> None:
    """How two workers share connections that are opened at once."""
    requests = embeddings(model, sentences(100))
    trees = trees_of(arguments.against)
    rows = []
    for name, tree in trees.items():
        command = ours(model, arguments.port, workers=2)
        with serving(name, command, arguments.port, PYTHONPATH=str(tree / "src")) as server:
            time.sleep(2.0)  # until the second worker is ready too
            idle = server.sockets()
            shares = [asyncio.run(shared_out(server, requests, idle)) for _ in range(BALANCES)]
        rows.append([name, ", ".join(f"{few} and {many}" for few, many in shares)])
    record(
        "balance",
        columns=["checkout", "connections of the two workers, each time"],
        rows=rows,
        values={
            "clients": CLIENTS,
            **{f"{tree} commit": commit_of(folder) for tree, folder in trees.items()},
        },
        packages=PACKAGES,
        encoder=f"{arguments.model}, fp32",
    )


async def shared_out(server: Server, requests: list[bytes], idle: Counter[int]) -> list[int]:
    """The connections that each worker gets of those of all clients, the fewest first.

    idle: sockets without connections
    """
    while server.sockets() != idle:  # some are still being closed
        await asyncio.sleep(0.1)
    work = asyncio.create_task(Load(server.port, requests).run(CLIENTS, seconds=1.0))
    await asyncio.sleep(0.7)
    after = server.sockets()
    await work
    return sorted(after[worker] - idle[worker] for worker in idle)


def comparison(rates: dict[str, list[float]]) -> list[list[str]]:
    whole = statistics.fmean(rates["offline"])
    return [
        [name, ", ".join(f"{rate:.0f}" for rate in each), f"{statistics.fmean(each) / whole:.2f}"]
        for name, each in rates.items()
    ]


def print_load(name: str, rate: float, load: Load) -> None:
    print("\t".join(load_cells(name, rate, load)), flush=True)


def load_cells(name: str, rate: float, load: Load) -> list[str]:
    failed = sum(load.statuses.values()) - load.statuses[200] + load.lost
    p50 = statistics.median(load.seconds) * 1000
    p99 = statistics.quantiles(load.seconds, n=100)[98] * 1000
    counted = [f"{rate:.0f}", f"{sum(load.statuses.values()):,}", f"{failed:,}"]
    return [name, *counted, f"{p50:.0f} ms", f"{p99:.0f} ms"]


def counts(load: Load) -> str:
    return ", ".join(f"{count} x {status}" for status, count in sorted(load.statuses.items()))


def offline(model: Path, texts: list[str]) -> float:
    """Sentences per second of `model.embed`, in one call."""
    import tercet

    loaded = tercet.load(model, device="cpu")
    loaded.embed(texts[:500])
    began = time.perf_counter()
    loaded.embed(texts[:3000])
    return len(texts[:3000]) / (time.perf_counter() - began)


def overload(model: Path, arguments: argparse.Namespace) -> None:
    """Requests of eight sentences, at twice the rate that was answered under full load."""
    requests = embeddings(model, sentences(SENTENCES), inputs=8)
    with serving("tercet", ours(model, arguments.port), arguments.port) as server:
        rate, load = run_load(server, requests, min(15.0, arguments.seconds))
        print_load("full load", rate, load)
        load = Load(server.port, requests)
        before = server.memory()
        health = asyncio.run(overloaded(load, server, 2 * rate, arguments.seconds))
        after = server.memory()
    others = sum(load.statuses.values()) - load.statuses[200] - load.statuses[429]
    record(
        "overload",
        columns=["", "measured"],
        rows=[
            [f"maximum answered for {CLIENTS} clients, requests/s", f"{rate:.0f}"],
            ["offered, requests/s", f"{2 * rate:.0f}"],
            ["200", f"{load.statuses[200]:,}"],
            ["429", f"{load.statuses[429]:,}"],
            ["429 without Retry-After", f"{load.without_retry:,}"],
            ["lost, or other answers", f"{load.lost + others:,}"],
            ["/health, requests", f"{len(health):,}"],
            ["/health, longest", f"{max(health) * 1000:.0f} ms"],
            ["resident memory, before and after, MB", f"{before:.0f}, {after:.0f}"],
        ],
        values={"seconds": f"{arguments.seconds:.0f} s", "target": HEALTH_TARGET},
        packages=PACKAGES,
        encoder=f"{arguments.model}, fp32",
    )


async def overloaded(load: Load, server: Server, rate: float, seconds: float) -> list[float]:
    """Load the server and request /health meanwhile: the seconds of each request."""
    health = Load(server.port, [b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
    loop = asyncio.get_running_loop()
    _, probe = await loop.create_connection(lambda: ClockedClient(health), "127.0.0.1", server.port)
    work = asyncio.create_task(load.run_by_clock(rate, seconds=seconds))
    while not work.done():
        if not probe.waiting:
            probe.send()
        await asyncio.sleep(0.05)
    await work
    assert set(health.statuses) == {200}, health.statuses
    return health.seconds


def fairness(model: Path, arguments: argparse.Namespace) -> None:
    """Two words from one client, while four connections of another send all that is allowed."""
    large = [request("/embed", {"inputs": ["film " * 120] * 2048}, key="mallory")]
    beside("fairness", model, arguments, texts=["two words"], large=large, connections=4)


def tokenising(model: Path, arguments: argparse.Namespace) -> None:
    """Short texts from one client, while six connections of another send texts of 4 MB."""
    texts = ["x" * 3_900_000, "film " * 780_000, " " * 3_900_000, "\u00e9" * 650_000]
    large = [request("/embed", {"inputs": text}, key="mallory") for text in texts]
    short = ["two words", "two words " * 300]
    beside("tokenising", model, arguments, texts=short, large=large, connections=6)


def beside(
    name: str,
    model: Path,
    arguments: argparse.Namespace,
    *,
    texts: list[str],
    large: list[bytes],
    connections: int,
) -> None:
    """Record how long one client's texts take, alone and beside large requests of another."""
    trees = trees_of(arguments.against)
    rows = [
        [tree, *row]
        for tree, folder in trees.items()
        for row in beside_rows(folder, model, arguments, texts, large, connections)
    ]
    record(
        name,
        columns=["checkout", "characters", "own connections", "answers to others", *BESIDE],
        rows=rows,
        values={
            "seconds": f"{arguments.seconds:.0f} s",
            "connections": connections,
            **{f"{tree} commit": commit_of(folder) for tree, folder in trees.items()},
        },
        packages=PACKAGES,
        encoder=f"{arguments.model}, fp32",
    )


def trees_of(against: Path | None) -> dict[str, Path]:
    """The checkouts to measure, by name."""
    before = {} if against is None else {"before": against.resolve()}
    return {**before, "now": Path(__file__).resolve().parents[1]}


def commit_of(tree: Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def beside_rows(
    tree: Path,
    model: Path,
    arguments: argparse.Namespace,
    texts: list[str],
    large: list[bytes],
    connections: int,
) -> Iterator[list[str]]:
    """Each text on a connection of its own, first without the large requests of the other."""
    small = {len(text): request("/embed", {"inputs": text}, key="ada") for text in texts}
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.write_text("ada\nmallory\n", "utf-8")
        command = [*ours(model, arguments.port), "--keys-file", str(keys)]
        with serving("tercet", command, arguments.port, PYTHONPATH=str(tree / "src")) as server:
            for others, sizes in itertools.product((0, connections), together(small)):
                loads = {size: Load(server.port, [small[size]]) for size in sizes}
                hostile = Load(server.port, large)
                seconds = arguments.seconds if others else min(5.0, arguments.seconds)
                asyncio.run(run_beside([*loads.values()], hostile, others, seconds))
                beside_it = counts(hostile) or "none"
                for size, load in loads.items():
                    yield [f"{size:,}", f"{len(sizes)}", beside_it, *beside_cells(load)]


def together(sizes: Iterable[int]) -> list[list[int]]:
    """What is sent at the same time: the first alone, then all."""
    every = [*sizes]
    return [every] if len(every) == 1 else [every[:1], every]


async def run_beside(loads: list[Load], hostile: Load, others: int, seconds: float) -> None:
    work = [hostile.run(others, seconds=seconds)] if others else []
    await asyncio.gather(*work, *(load.run(1, seconds=seconds) for load in loads))


def beside_cells(load: Load) -> list[str]:
    """The figures of `BESIDE`."""
    answers = counts(load) + (f", {load.lost} lost" if load.lost else "")
    if len(load.seconds) < 2:
        return [answers, "", "", ""]
    longest = max(load.seconds)
    p99 = min(statistics.quantiles(load.seconds, n=100)[98], longest)
    times = (statistics.median(load.seconds), p99, longest)
    return [answers, *(f"{1000 * seconds:,.0f} ms" for seconds in times)]


def memory(model: Path, arguments: argparse.Namespace) -> None:
    """Short requests of several kinds, with few texts, so that many fit into little time."""
    texts = ["hello", "good morning", "a dull film", "what a lovely day", "yes"]
    requests = embeddings(model, texts)
    requests += [request("/embed", {"inputs": text}) for text in texts]
    requests += [request("/similarity", {"inputs": {"source_sentence": "hi", "sentences": texts}})]
    requests += [request("/sentiment", {"texts": 3}), request("/nothing", {})]
    with serving("tercet", ours(model, arguments.port), arguments.port) as server:
        sizes, counted = [], []
        for share in (0.05, *[0.95 / 4] * 4):
            load = Load(server.port, requests, limit=int(arguments.requests * share))
            asyncio.run(load.run(4 * CLIENTS, seconds=3600))
            sizes.append(server.memory())
            counted.append(f"{load.sent:,}")
            print(f"after {load.sent} more requests\t{sizes[-1]:.1f} MB", flush=True)
    record(
        "memory",
        columns=["more requests", "resident MB"],
        rows=[[sent, f"{size:.1f}"] for sent, size in zip(counted, sizes, strict=True)],
        values={
            "requests": f"{arguments.requests:,}",
            "clients": 4 * CLIENTS,
            "first": counted[0],
            "before": f"{sizes[0]:.1f} MB",
            "after": f"{sizes[-1]:.1f} MB",
            "growth": f"{100 * (sizes[-1] / sizes[0] - 1):.1f} %",
        },
        packages=PACKAGES,
        encoder=f"{arguments.model}, fp32",
    )


def drain(model: Path, arguments: argparse.Namespace) -> None:
    requests = embeddings(model, sentences(SENTENCES), inputs=4)
    rows, answered, unanswered = [], 0, 0
    for number in range(DRAINS):
        with serving("tercet", ours(model, arguments.port), arguments.port) as server:
            load, code, took = asyncio.run(drained(server, requests, after=1.0 + 0.13 * number))
        rows.append([code, f"{took:.1f}", counts(load), load.lost])
        answered, unanswered = answered + load.statuses[200], unanswered + load.lost
    seconds = [float(row[1]) for row in rows]
    record(
        "drain",
        columns=["exit code", "seconds", "answers", "unanswered"],
        rows=rows,
        values={
            "times": DRAINS,
            "clients": CLIENTS,
            "seconds": f"{min(seconds)} to {max(seconds)} s",
            "answered": f"{answered:,}",
            "unanswered": unanswered or "no",
        },
        packages=PACKAGES,
        encoder=f"{arguments.model}, fp32",
    )


async def drained(
    server: Server, requests: list[bytes], *, after: float
) -> tuple[Load, int, float]:
    """Stop the server under load: what the clients saw, exit code and seconds."""
    load = Load(server.port, requests)
    work = asyncio.create_task(load.run(CLIENTS, seconds=60))
    await asyncio.sleep(after)
    began = time.perf_counter()
    server.process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(server.process.wait, 60)
    took = time.perf_counter() - began
    await work
    return load, code, took


BENCHMARKS: dict[str, Callable[[Path, argparse.Namespace], None]] = {
    "throughput": throughput,
    "compare": compare,
    "balance": balance,
    "fairness": fairness,
    "tokenising": tokenising,
    "overload": overload,
    "memory": memory,
    "drain": drain,
}


def main() -> None:
    os.environ["TERCET_PRECISION"] = "fp32"
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("benchmark", choices=BENCHMARKS, nargs="?", default="throughput")
    parser.add_argument("model", nargs="?", default="all-minilm-l6-v2")
    parser.add_argument("--peer", type=Path, help="a virtual environment with infinity-emb")
    parser.add_argument("--against", type=Path, help="another checkout of this project")
    parser.add_argument("--json", type=Path, help="of compare: write the table to this file")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--port", type=int, default=8765)
    arguments = parser.parse_args()
    folder = Path(arguments.model)
    model = folder.resolve() if folder.is_dir() else resolve(arguments.model)
    BENCHMARKS[arguments.benchmark](model, arguments)


if __name__ == "__main__":
    main()
