"""Workers that die while they train are started again by torchrun, and nothing shows afterwards."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

STEPS = 40
SECONDS = 120.0
# Dropout, drawn tasks and checkpoints that lag behind: a restart must redo some steps, exactly.
STAGES = f"""
[[stages]]
schedule = {{ kind = "random", weights = {{ sentiment = 2, paraphrase = 1, similarity = 1 }} }}
steps = {STEPS}
batch = 7
optimiser = {{ lr = 1e-3 }}

[evaluation]
every = 10
rows = 12

[checkpoint]
every = 6
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="finds workers by what Linux says of processes"
)

# Else torchrun hands restarted workers the addresses of those that died, and new machines wait for
# one that was logged before they came.
FRESH_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tercet: Any, write_recipe: Any, train_arguments: Any) -> Iterator[Start]:
    """Start torchrun on the recipe of this file, into a run folder; ended at the latest here."""
    recipe = write_recipe(STAGES)
    started: list[subprocess.Popen[str]] = []

    def run(out: Path, *options: str) -> subprocess.Popen[str]:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--monitor-interval=0.1"]
        command = ["-m", "tercet", *map(str, train_arguments(recipe, out, "--resume"))]
        started.append(
            subprocess.Popen(
                [*torchrun, *options, *command],
                env=tercet.environment | FRESH_STORE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            kill_with_workers(process)
            process.communicate()


def test_a_killed_worker_is_started_again(start: Start, tmp_path: Path) -> None:
    options = ("--standalone", "--nproc-per-node=2", "--max-restarts=1")
    whole, sewn = tmp_path / "whole", tmp_path / "sewn"
    succeed(start(whole, *options))
    process = start(sewn, *options)
    wait_for_steps(sewn, STEPS // 2, process)
    os.kill(worker(process, rank=1), signal.SIGKILL)
    said = succeed(process)
    assert "Resuming after step 18." in said
    assert_same(sewn, whole)


@pytest.mark.skipif(not os.environ.get("TERCET_WHOLE"), reason="takes a minute: TERCET_WHOLE=1")
def test_a_killed_machine_is_waited_for(start: Start, tmp_path: Path) -> None:
    """Two machines of one worker each; the second dies with its torchrun, and is set up again."""
    whole, sewn = tmp_path / "whole", tmp_path / "sewn"
    succeed(start(whole, "--standalone", "--nproc-per-node=2"))
    port = free_port()
    options = (
        "--nnodes=2",
        "--nproc-per-node=1",
        "--max-restarts=3",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{port}",
        "--rdzv-id=elastic",
    )
    first = start(sewn, *options)
    # The machine where all meet is the one that opens the port, and must be the one that stays.
    wait_for_port(port, first)
    second = start(sewn, *options)
    wait_for_steps(sewn, STEPS // 2, first)
    kill_with_workers(second)
    again = start(sewn, *options)
    assert "Resuming after step 18." in succeed(first) + succeed(again)
    assert_same(sewn, whole)


def succeed(process: subprocess.Popen[str]) -> str:
    """What a command said that ends well."""
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    return said


def wait_for_steps(run: Path, steps: int, process: subprocess.Popen[str]) -> None:
    metrics = run / "metrics.jsonl"
    while not metrics.is_file() or metrics.read_bytes().count(b'"loss"') < steps:
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)


def wait_for_port(port: int, process: subprocess.Popen[str]) -> None:
    while True:
        assert process.poll() is None, process.communicate()
        with socket.socket() as tried:
            if tried.connect_ex(("localhost", port)) == 0:
                return
        time.sleep(0.05)


def worker(process: subprocess.Popen[str], *, rank: int) -> int:
    """The worker of torchrun that has this rank."""
    (found,) = [
        child
        for child in children(process.pid)
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    ]
    return found


def children(process: int) -> list[int]:
    return [
        int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def kill_with_workers(process: subprocess.Popen[str]) -> None:
    for one in (process.pid, *children(process.pid)):
        os.kill(one, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port: int = found.getsockname()[1]
        return port


def assert_same(sewn: Path, whole: Path) -> None:
    for file in ("metrics.jsonl", "model/model.safetensors", "model/heads.safetensors"):
        assert (sewn / file).read_bytes() == (whole / file).read_bytes(), file
