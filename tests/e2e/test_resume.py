"""A run that is broken off, however rudely, goes on to the very same metrics and weights."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

STEPS = 40
# Something of everything that a checkpoint must bring back: two stages, drawn tasks, surgery with a
# memory, dropout, warm-up, and the best score so far.
STAGES = """
[[stages]]
name = "drawn"
schedule = { kind = "random", weights = { sentiment = 2, paraphrase = 1, similarity = 1 } }
steps = 20
batch = 8
optimiser = { lr = 1e-3, warmup = 0.3 }

[[stages]]
name = "together"
schedule = { kind = "together" }
surgery = "gradvac"
steps = 20
batch = 6
accumulate = 2
optimiser = { lr = 1e-3, decay = "cosine" }

[evaluation]
every = 4
rows = 12

[checkpoint]
every = 3
keep = 3
"""


@pytest.fixture(scope="module")
def recipe(write_recipe: Any) -> Path:
    return write_recipe(STAGES)


@pytest.fixture(scope="module")
def unbroken(
    tercet: Any, recipe: Path, train_arguments: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run that nothing disturbed."""
    out = tmp_path_factory.mktemp("unbroken") / "run"
    tercet.succeed(*train_arguments(recipe, out))
    return out


@pytest.fixture
def unfinished(unbroken: Path, tmp_path: Path) -> Path:
    """The unbroken run as it stood before its last steps: no model, no summary."""
    out = tmp_path / "unfinished"
    shutil.copytree(unbroken, out)
    (out / "summary.json").unlink()
    shutil.rmtree(out / "model")
    return out


def test_kill_at_five_moments(
    tercet: Any, here: Any, recipe: Path, unbroken: Path, train_arguments: Any, tmp_path: Path
) -> None:
    chance = random.Random(20)
    out = tmp_path / "run"
    for step in sorted(chance.sample(range(2, STEPS - 4), 5)):
        process = tercet.start(*train_arguments(recipe, out, "--resume"))
        wait_for_lines(out / "metrics.jsonl", step, process)
        time.sleep(chance.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    ended = here(*train_arguments(recipe, out, "--resume"))
    assert ended.code == 0, ended.err
    assert "Resuming after step" in ended.err
    assert_same_run(out, unbroken)


def test_ctrl_c_saves_and_resume_goes_on(
    tercet: Any, here: Any, recipe: Path, unbroken: Path, train_arguments: Any, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = tercet.start(*train_arguments(recipe, out))
    # Between two checkpoints of the recipe's own.
    wait_for_lines(out / "metrics.jsonl", 10, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "--resume" in err.splitlines()[-1]
    steps = len([line for line in metrics(out).splitlines() if b'"loss"' in line])
    assert newest_checkpoint(out).name == f"step-{steps:08d}"
    ended = here(*train_arguments(recipe, out, "--resume"))
    assert ended.code == 0
    assert f"Resuming after step {steps}." in ended.err
    assert_same_run(out, unbroken)


@pytest.mark.parametrize("file", ["optimiser.safetensors", "state.json", "manifest.json"])
def test_a_truncated_checkpoint_is_passed_over(
    here: Any, recipe: Path, unbroken: Path, unfinished: Path, train_arguments: Any, file: str
) -> None:
    damaged = newest_checkpoint(unfinished)
    content = (damaged / file).read_bytes()
    (damaged / file).write_bytes(content[: len(content) // 2])
    ended = here(*train_arguments(recipe, unfinished, "--resume"))
    assert ended.code == 0, ended.err
    assert f"checkpoint {damaged.name} is damaged" in ended.err
    assert "Resuming after step 39." in ended.err
    assert_same_run(unfinished, unbroken)


def test_when_all_checkpoints_are_damaged_the_run_starts_again(
    here: Any, recipe: Path, unbroken: Path, unfinished: Path, train_arguments: Any
) -> None:
    for folder in (unfinished / "checkpoints").glob("step-*"):
        (folder / "network.safetensors").unlink()
    ended = here(*train_arguments(recipe, unfinished, "--resume"))
    assert ended.code == 0, ended.err
    assert ended.err.count("is damaged") == 3
    assert "the run starts again" in ended.err
    assert_same_run(unfinished, unbroken)


@pytest.mark.parametrize("finished", [True, False])
def test_another_recipe_is_refused(
    here: Any, recipe: Path, unbroken: Path, unfinished: Path, train_arguments: Any, finished: bool
) -> None:
    out = unbroken if finished else unfinished
    before = tree(out)
    ended = here(*train_arguments(recipe, out, "--resume", "--set", "seed=6"))
    assert ended.code == 2
    assert "started with another recipe: `seed` is 5 there and 6 here; use that one" in ended.err
    assert tree(out) == before


def test_a_finished_run_says_so(
    here: Any, recipe: Path, unbroken: Path, train_arguments: Any
) -> None:
    before = tree(unbroken)
    ended = here(*train_arguments(recipe, unbroken, "--resume"))
    assert ended.code == 0
    assert "is finished" in ended.err
    assert ended.out.strip() == str(unbroken / "model")
    assert tree(unbroken) == before


def test_a_folder_that_holds_files_is_refused(
    here: Any, recipe: Path, unbroken: Path, train_arguments: Any, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine", "utf-8")
    for out, more in ((unbroken, []), (foreign, []), (foreign, ["--resume"])):
        before = tree(out)
        ended = here(*train_arguments(recipe, out, *more))
        assert ended.code == 2
        assert ended.err.startswith(f"error: {out}: ")
        assert tree(out) == before


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Until a process that was just started has written on and the file has that many lines."""
    before = path.stat().st_mtime_ns if path.is_file() else None
    while (
        not path.is_file()
        or path.stat().st_mtime_ns == before
        or path.read_bytes().count(b"\n") < count
    ):
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)


def metrics(run: Path) -> bytes:
    return (run / "metrics.jsonl").read_bytes()


def newest_checkpoint(run: Path) -> Path:
    return max((run / "checkpoints").glob("step-*"))


def assert_same_run(sewn: Path, unbroken: Path) -> None:
    """Same metrics, byte for byte, and all the same files, the weights among them."""
    assert metrics(sewn) == metrics(unbroken)
    assert tree(sewn) == tree(unbroken)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder and what it holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
