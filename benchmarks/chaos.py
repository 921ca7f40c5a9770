"""The server under attack: honest and hostile clients, killed workers, changed keys, SIGHUP.

    python benchmarks/chaos.py [MODEL] [--minutes 10] [--json FILE]

MODEL is a model folder or a name of `tercet weights`; default: the model that ships. Two workers on
loopback, each client with a key of its own. Honest requests must be answered with 200 or 429. A
request whose worker is killed is sent again, as HTTP clients do, and counted. Exits with 1 if an
honest request got another answer, if a connection broke without a kill, or if a revoked key was
accepted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tercet
from serve import healthy
from tercet.data.sample import write_sample
from tercet.training.environment import commit
from tercet.weights import resolve

HONEST = ("ada", "bob", "cyd", "dan")
HOSTILE = ("mallory", "trudy")
CLIENTS_PER_KEY = 2
STRIKE = 12.0
"""Seconds between two events: a kill, new keys, or SIGHUP."""
AFTERMATH = 5.0
"""Seconds after a kill within which connections of the dead worker may break."""
GRACE = 2.0
"""Seconds that workers may take to read new keys."""
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
TEXTS = ["a dull film", "what a lovely day", "how do I learn the guitar?", "bread is cut"]


def request(path: str, body: object, key: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def honest_body(chooser: random.Random) -> tuple[str, object]:
    """What an honest client asks for."""
    texts = chooser.sample(TEXTS, 2)
    return chooser.choice(
        [
            ("/embed", {"inputs": texts}),
            ("/embed", {"inputs": [f"{texts[0]}, and {n} more" for n in range(16)]}),
            ("/sentiment", {"texts": texts[0]}),
            ("/paraphrase", {"pairs": [texts]}),
            ("/search", {"query": texts[1], "top": 5}),
        ]
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """When a request was sent first, and the seconds until its answer."""

    began: float
    seconds: float

    def near(self, kills: Iterable[float]) -> bool:
        """Whether one of the kills may have delayed it."""
        end = self.began + self.seconds
        return any(kill <= end and self.began <= kill + AFTERMATH for kill in kills)


@dataclass
class Peer:
    """One connection, opened when it is needed."""

    port: int
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, content: bytes) -> tuple[int, float]:
        """The status of the answer, and the seconds of Retry-After."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(content)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        await reader.readexactly(int(fields.get(b"content-length", 0)))
        if fields.get(b"connection") == b"close":
            self.close()
        return int(head[9:12]), float(fields.get(b"retry-after", 0))

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].transport.abort()
            self.streams = None


@dataclass
class Keys:
    """The file of keys; each honest client has a key that is replaced from time to time."""

    file: Path
    generation: int = 0
    revoked: list[str] = field(default_factory=list)

    def name(self, client: str) -> str:
        return f"{client}-{self.generation}"

    def write(self, *generations: int) -> None:
        keys = [f"{client}-{n}" for n in generations for client in HONEST]
        self.file.write_text("\n".join([*keys, *HOSTILE]) + "\n", "utf-8")


@dataclass
class Chaos:
    """All that is seen from outside during a run."""

    port: int
    server: subprocess.Popen[bytes]
    keys: Keys
    end: float
    statuses: Counter[int] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    health: list[Answer] = field(default_factory=list)
    broken: list[float] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)
    kills_of_all: list[float] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    peak: int = 0

    @property
    def ended(self) -> bool:
        return time.monotonic() >= self.end

    async def run(self) -> None:
        clients = [name for name in HONEST for _ in range(CLIENTS_PER_KEY)]
        honest = [self.honest(name, number) for number, name in enumerate(clients)]
        await asyncio.gather(*honest, self.probe(), self.watch(), self.strike())

    async def honest(self, client: str, number: int) -> None:
        chooser, peer = random.Random(number), Peer(self.port)
        while not self.ended:
            path, body = honest_body(chooser)
            began = time.monotonic()
            content = request(path, body, self.keys.name(client))
            status, retry = await self.persist(peer, content)
            self.statuses[status] += 1
            if status == 200:
                self.answers.append(Answer(began, time.monotonic() - began))
            await asyncio.sleep(min(retry, 1.0) or chooser.uniform(0.0, 0.1))
        peer.close()

    async def persist(self, peer: Peer, content: bytes) -> tuple[int, float]:
        """An answer; the request is sent again when its connection breaks."""
        while True:
            try:
                return await peer.ask(content)
            except (OSError, asyncio.IncompleteReadError):
                self.broken.append(time.monotonic())
                peer.close()
                await asyncio.sleep(0.02)

    async def probe(self) -> None:
        """Request /health ten times a second, on new connections, so that any worker gets them."""
        while not self.ended:
            peer = Peer(self.port)
            began = time.monotonic()
            status, _ = await self.persist(peer, HEALTH)
            assert status == 200, status
            self.health.append(Answer(began, time.monotonic() - began))
            peer.close()
            await asyncio.sleep(0.1)

    async def watch(self) -> None:
        """Memory of all processes of the server, in bytes; shared pages are counted once."""
        while not self.ended:
            self.peak = max(self.peak, sum(map(memory, [self.server.pid, *self.workers()])))
            await asyncio.sleep(0.5)

    async def strike(self) -> None:
        """Events in turns, until the end."""
        acts: list[Callable[[], Awaitable[None]]] = [
            self.kill_one, self.rotate_keys, self.hang_up, self.kill_one, self.kill_all,
        ]  # fmt: skip
        turn = 0
        while time.monotonic() + STRIKE < self.end:
            await asyncio.sleep(STRIKE - GRACE)
            await acts[turn % len(acts)]()
            turn += 1
            await asyncio.sleep(GRACE)
            await self.try_revoked()

    async def kill_one(self) -> None:
        self.kill(random.choice(self.workers()))
        self.events["workers killed"] += 1

    async def kill_all(self) -> None:
        self.kills_of_all.append(time.monotonic())
        for pid in self.workers():
            self.kill(pid)
            self.events["workers killed"] += 1

    def kill(self, pid: int) -> None:
        self.kills.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)

    async def hang_up(self) -> None:
        self.server.send_signal(signal.SIGHUP)
        self.events["SIGHUP"] += 1

    async def rotate_keys(self) -> None:
        """New keys beside the old ones; once all clients use them, the old ones are revoked."""
        old, new = self.keys.generation, self.keys.generation + 1
        self.keys.write(old, new)
        await self.hang_up()
        await asyncio.sleep(GRACE)
        self.keys.generation = new
        await asyncio.sleep(GRACE)
        self.keys.write(new)
        await self.hang_up()
        self.keys.revoked += [f"{client}-{old}" for client in HONEST]
        self.events["keys replaced"] += len(HONEST)

    async def try_revoked(self) -> None:
        for key in self.keys.revoked[-len(HONEST) :] * 2:
            peer = Peer(self.port)
            status, _ = await self.persist(peer, request("/sentiment", {"texts": "a"}, key))
            self.accepted += status != 401
            self.events["revoked keys tried"] += 1
            peer.close()

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def unexplained(self) -> int:
        """Broken connections that no kill explains."""
        return sum(
            not any(kill <= moment <= kill + AFTERMATH for kill in self.kills)
            for moment in self.broken
        )


def memory(pid: int) -> int:
    """Bytes of a process, its share of pages that others have too; 0 if it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def attack(port: int, number: int, seconds: float, started: Any, counted: Any) -> None:
    """A hostile client, in a process of its own; at the end it reports what it did.

    started: a barrier; imports of these processes take both cores for seconds, and are over then
    """
    found: Counter[str] = Counter()
    started.wait()
    asyncio.run(_attack(port, number, time.monotonic() + seconds, found))
    counted.put(found)


def hostile_requests(key: str) -> dict[str, bytes]:
    """Requests at the limits, and beyond them."""
    long = "a film that is worth a look and more " * 14
    word = "x" * 3_000_000
    return {
        "2,048 long texts": request("/embed", {"inputs": [long] * 2048}, key),
        "a million token ids, one wrong": request(
            "/embed", b'{"inputs":[%s""]}' % (b"1," * 10**6), key
        ),
        "900,000 empty lists": request("/predict/sentiment", {"inputs": [[]] * 900_000}, key),
        "2,048 queries, top 1,000": request("/search", {"query": ["a"] * 2048, "top": 1000}, key),
        "a word of 3 MB, reranked": request("/search", {"query": word, "rerank": 100}, key),
        "a key that is not valid": request("/embed", {"inputs": "a"}, "guessed"),
        "a name that is not valid": b"GET /info HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "not HTTP": bytes(range(256)) * 64,
    }


async def _attack(port: int, number: int, end: float, found: Counter[str]) -> None:
    chooser, key = random.Random(number), HOSTILE[number % len(HOSTILE)]
    requests = hostile_requests(key)
    silent = {
        "an answer that is not read": request("/embed", {"inputs": ["a"] * 2048}, key),
        "a body that never ends": requests["2,048 long texts"][:5000],
        "a head that never ends": HEALTH[:20],
    }
    while time.monotonic() < end:
        kind = chooser.choice([*requests, *silent])
        if kind in silent:
            await _leave(port, silent[kind], after=chooser.uniform(1.0, 20.0))
        elif chooser.random() < 0.2:
            await _leave(port, requests[kind], after=chooser.uniform(0.0, 0.2))
            kind += ", then leaves"
        else:
            kind += f": {await _answer(port, requests[kind])}"
        found[kind] += 1
        await asyncio.sleep(chooser.uniform(0.0, 0.5))


async def _leave(port: int, content: bytes, *, after: float) -> None:
    """Send this, read nothing, and leave after some seconds."""
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(content)
        await asyncio.sleep(after)
        writer.transport.abort()


async def _answer(port: int, content: bytes) -> str:
    """The status of the answer, or what came instead."""
    peer = Peer(port)
    try:
        async with asyncio.timeout(40):
            return str((await peer.ask(content))[0])
    except TimeoutError:
        return "no answer in 40 s"
    except (OSError, asyncio.IncompleteReadError):
        return "closed"
    finally:
        peer.close()


def serve(model: Path | None, folder: Path, keys: Keys, port: int) -> subprocess.Popen[bytes]:
    """The real server with an index, two workers and keys."""
    write_sample(folder / "data")
    loaded = tercet.load(model, device="cpu")
    rows = [f"{text}, and {n} more" for n in range(500) for text in TEXTS]
    tercet.Index.build(folder / "index", rows, loaded)
    keys.write(0)
    options = [
        "--port",
        port,
        "--workers",
        2,
        "--keys-file",
        keys.file,
        "--index",
        folder / "index",
    ]
    named = [] if model is None else ["--model", model]
    command = [sys.executable, "-m", "tercet", "serve", *map(str, [*named, *options])]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stderr=log, env=os.environ | {"HF_HUB_OFFLINE": "1"})


def run(model: Path | None, *, minutes: float, port: int) -> dict[str, Any]:
    """The figures of a run."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        keys = Keys(folder / "keys")
        process = serve(model, folder, keys, port)
        try:
            while not healthy(port):
                assert process.poll() is None, (folder / "log").read_text("utf-8")
                time.sleep(0.2)
            return _run(process, keys, minutes=minutes, port=port)
        finally:
            process.terminate()
            process.wait(60)


def _run(
    process: subprocess.Popen[bytes], keys: Keys, *, minutes: float, port: int
) -> dict[str, Any]:
    spawn = multiprocessing.get_context("spawn")
    counted: Any = spawn.Queue()
    count = 3 * len(HOSTILE)
    started = spawn.Barrier(count + 1)
    hostile = [
        spawn.Process(target=attack, args=(port, number, 60 * minutes, started, counted))
        for number in range(count)
    ]
    for each in hostile:
        each.start()
    started.wait(timeout=120)
    chaos = Chaos(port, process, keys, end=time.monotonic() + 60 * minutes)
    asyncio.run(chaos.run())
    attacks: Counter[str] = sum((counted.get(timeout=60) for _ in hostile), Counter())
    for each in hostile:
        each.join()
    return figures(chaos, attacks, minutes=minutes)


def times(name: str, answers: Iterable[Answer]) -> dict[str, int]:
    """The quantiles of some answers, in milliseconds."""
    seconds = [answer.seconds for answer in answers]
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    found = {"p50": cuts[49], "p99": cuts[98], "longest": max(seconds)}
    return {f"{name} {quantile} ms": round(1000 * value) for quantile, value in found.items()}


def figures(chaos: Chaos, attacks: Counter[str], *, minutes: float) -> dict[str, Any]:
    honest, health = chaos.answers, chaos.health
    calm = [answer for answer in honest if not answer.near(chaos.kills)]
    served = [answer for answer in health if not answer.near(chaos.kills_of_all)]
    calm_health = [answer for answer in health if not answer.near(chaos.kills)]
    other = sum(n for status, n in chaos.statuses.items() if status not in (200, 429))
    return {
        "minutes": minutes,
        "honest requests": sum(chaos.statuses.values()),
        "honest statuses": {str(status): n for status, n in sorted(chaos.statuses.items())},
        "honest requests with another answer": other,
        **times("honest", honest),
        **times("honest, no kill in the 5 s before,", calm),
        "connections broken by a kill, sent again": len(chaos.broken) - chaos.unexplained(),
        "connections broken otherwise": chaos.unexplained(),
        "health requests": len(health),
        **times("health", health),
        **times("health, at most one worker killed in the 5 s before,", served),
        **times("health, no kill in the 5 s before,", calm_health),
        "peak memory MB": round(chaos.peak / 2**20),
        "revoked keys accepted": chaos.accepted,
        **chaos.events,
        "hostile requests": sum(attacks.values()),
        "attacks": dict(sorted(attacks.items())),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--port", type=int, default=8766)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    model = None if arguments.model is None else resolve(arguments.model)
    found = run(model, minutes=arguments.minutes, port=arguments.port)
    found["made with"] = {"model": arguments.model or "tercet/small", "commit": commit()}
    text = json.dumps(found, indent=2)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(text + "\n", "utf-8")
    wrong = ("honest requests with another answer", "connections broken otherwise")
    return int(any(found[name] for name in (*wrong, "revoked keys accepted")))


if __name__ == "__main__":
    sys.exit(main())
