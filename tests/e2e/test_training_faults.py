"""What can go wrong while training: losses that explode, disks that fill up, other weights."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

STAGES = """
[[stages]]
name = "calm"
schedule = { kind = "round-robin" }
steps = 6
batch = 8

[[stages]]
name = "second"
tasks = ["similarity"]
steps = 6
batch = 8

[evaluation]
every = 4
rows = 12

[checkpoint]
every = 2
keep = 9
"""
EXPLODING = ["--set", "stages.second.optimiser.lr=1e30", "--set", "stages.second.batch=10"]


@pytest.fixture(scope="module")
def recipe(write_recipe: Any) -> Any:
    return write_recipe(STAGES)


@pytest.fixture
def whole(here: Any, recipe: Path, train_arguments: Any, tmp_path: Path) -> Path:
    """A run that had all the room that it needed."""
    out = tmp_path / "whole"
    ended = here(*train_arguments(recipe, out))
    assert ended.code == 0, ended.err
    return out


def test_a_loss_that_is_not_finite_stops_the_run(
    here: Any, recipe: Path, train_arguments: Any, sample_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    arguments = train_arguments(recipe, out, "--set", "checkpoint.every=0", *EXPLODING)
    ended = here(*arguments)
    assert ended.code == 2
    error = ended.err.splitlines()[-1]
    assert error.startswith("error: the ")
    for result in ("`similarity`", "at step ", "stage `second`", "a batch of 10 rows"):
        assert result in error
    assert str(sample_data / "sts-train.csv") in error
    assert not (out / "model").exists()
    # The checkpoint at the end of the first stage is the last good one: it loads, and as nothing
    # in the run is left to chance, the same thing happens again.
    assert [path.name for path in (out / "checkpoints").glob("step-*")] == ["step-00000006"]
    metrics = (out / "metrics.jsonl").read_bytes()
    again = here(*arguments, "--resume")
    assert "Resuming after step 6." in again.err
    assert again.err.splitlines()[-1] == error
    assert (out / "metrics.jsonl").read_bytes() == metrics


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with 2 MB of room, which holds a few checkpoints of the tiny encoder."""
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        mounted = not mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", disk)
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_leaves_an_intact_checkpoint(
    here: Any, recipe: Path, train_arguments: Any, whole: Path, small_disk: Path
) -> None:
    out = small_disk / "run"
    ended = here(*train_arguments(recipe, out))
    assert ended.code == 2
    error = ended.err.splitlines()[-1]
    assert error.startswith(f"error: {out}")
    assert "No space left on device" in error
    assert "--resume" in error
    assert not (out / "model").exists()
    assert not list(out.rglob(".*"))
    mount("-o", "remount,size=64m", small_disk)
    assert_resumes_to(whole, out, here(*train_arguments(recipe, out, "--resume")))


def test_a_file_that_may_not_grow_leaves_an_intact_checkpoint(
    tercet: Any, here: Any, recipe: Path, train_arguments: Any, whole: Path, tmp_path: Path
) -> None:
    """The same without root: half of a checkpoint's largest file is all that may be written."""
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    shutil.rmtree(out / "model")
    (out / "summary.json").unlink()
    for folder in sorted((out / "checkpoints").glob("step-*"))[3:]:
        shutil.rmtree(folder)
    largest = max(path.stat().st_size for path in (out / "checkpoints").rglob("*"))
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (largest // 2, largest // 2))
    ended = tercet.run(*train_arguments(recipe, out, "--resume"), preexec_fn=limit)
    assert ended.code == 2, ended.err
    error = ended.err.splitlines()[-1]
    assert error.startswith(f"error: {out}")
    assert os.strerror(27) in error
    assert not list(out.rglob(".*"))
    assert_resumes_to(whole, out, here(*train_arguments(recipe, out, "--resume")))


def assert_resumes_to(whole: Path, out: Path, ended: Any) -> None:
    assert ended.code == 0, ended.err
    assert "Resuming after step" in ended.err
    for name in ("metrics.jsonl", "model/model.safetensors", "model/heads.safetensors"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def mount(*arguments: object) -> int:
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True).returncode


def test_other_weights_under_a_known_name_are_refused(
    here: Any,
    recipe: Path,
    train_arguments: Any,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table that names an encoder must not be of another."""
    shelf = tmp_path / "shelf"
    stand_in = shutil.copytree(tiny_encoder, shelf / "all-minilm-l6-v2")
    monkeypatch.setenv("TERCET_WEIGHTS", str(shelf))
    out = tmp_path / "run"
    named = ("--set", "encoder.name=all-MiniLM-L6-v2")
    ended = here(*train_arguments(recipe, out, *named))
    assert ended.code == 2
    assert ended.err.splitlines()[-1].startswith(f"error: {stand_in} holds other weights than ")
    assert not out.exists()
    itself = here(*train_arguments(recipe, out, "--set", f"encoder.name={stand_in}"))
    assert itself.code == 0, itself.err
