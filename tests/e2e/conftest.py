"""The command line as these tests drive it: in processes of its own, or quicker in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tercet.cli.app import main

SECONDS = 120.0
"""No command of these tests may take longer, however busy the machine."""

TASKS = """
[tasks.sentiment]
data = { layout = "cs224n-sst" }
labels = ["negative", "somewhat negative", "neutral", "somewhat positive", "positive"]

[tasks.sentiment.single]
head = { kind = "mlp", hidden = [16], dropout = DROPOUT }
objective = { kind = "cross-entropy" }

[tasks.paraphrase]
data = { layout = "cs224n-quora" }
labels = ["different", "paraphrase"]

[tasks.paraphrase.cross]
head = { kind = "mlp", dropout = DROPOUT }
objective = { kind = "binary-cross-entropy" }

[tasks.similarity]
data = { layout = "cs224n-sts" }
range = [0, 5]

[tasks.similarity.bi]
head = { kind = "cosine" }
objective = { kind = "mean-squared-error", targets = [0, 1] }
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Commands in processes of their own."""

    environment: dict[str, str]

    def start(self, *arguments: object, torchrun: int = 0, **options: Any) -> subprocess.Popen[str]:
        """Start a command, in `torchrun` processes if that is not 0."""
        several = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={torchrun}"]
        return subprocess.Popen(
            [sys.executable, *(several if torchrun else []), "-m", "tercet", *map(str, arguments)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *arguments: object, torchrun: int = 0, **options: Any) -> Ended:
        return end_of(self.start(*arguments, torchrun=torchrun, **options))

    def succeed(self, *arguments: object, torchrun: int = 0) -> Ended:
        ended = self.run(*arguments, torchrun=torchrun)
        assert ended.code == 0, ended.err
        return ended


def end_of(process: subprocess.Popen[str]) -> Ended:
    """Wait for a process that `start` gave."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Ended(process.returncode, out, err)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TERCET_")}
    # Threads that wait for each other only slow the tiny encoder down, more so on a busy machine.
    return kept | {"TERCET_CACHE": str(tmp_path_factory.mktemp("cache")), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def tercet(environment: dict[str, str]) -> CommandLine:
    return CommandLine(environment)


Here = Callable[..., Ended]


@pytest.fixture
def here(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Here]:
    """The command line in this process, which need not import torch each time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(int(environment["OMP_NUM_THREADS"]))
    for key in [key for key in os.environ if key.startswith("TERCET_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("TERCET_CACHE", environment["TERCET_CACHE"])

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["tercet", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        result = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Ended(end.value.code, result.out, result.err)

    yield run
    torch.set_num_threads(threads)


WriteRecipe = Callable[..., Path]


@pytest.fixture(scope="session")
def write_recipe(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> WriteRecipe:
    """Writes a recipe of the three tasks on the tiny encoder; the caller gives what follows."""

    def write(rest: str, *, dropout: float = 0.1, tasks: str = TASKS) -> Path:
        path = tmp_path_factory.mktemp("recipe") / "recipe.toml"
        head = f"""
name = "e2e"
summary = "A recipe of the tests"
seed = 5

[encoder]
name = '{tiny_encoder}'
max_tokens = 24
dropout = {dropout}
attention_dropout = {dropout}
"""
        path.write_text(head + tasks.replace("DROPOUT", str(dropout)) + rest, "utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def train_arguments(sample_data: Path) -> Callable[..., Sequence[object]]:
    """The arguments that train a recipe on the sample."""

    def arguments(recipe: Path, out: Path, *more: object) -> Sequence[object]:
        return ["train", recipe, "--data", sample_data, "--out", out, "--device", "cpu", *more]

    return arguments
