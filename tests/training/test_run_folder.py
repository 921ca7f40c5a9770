"""A run folder belongs to one run on one set of rows, and to one process at a time."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tercet
from tercet.errors import TercetError
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe
from tercet.training.run_folder import RunFolder


@pytest.fixture
def data(sample_data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_data, tmp_path / "data"))


@pytest.fixture
def recipe(tiny_encoder: Path) -> Recipe:
    tree = {
        "name": "small",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
        "tasks": {
            "sentiment": {
                "data": {"layout": "cs224n-sst", "limit": 24},
                "labels": ["0", "1", "2", "3", "4"],
                "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
            }
        },
        "stages": [{"steps": 4, "batch": 6}],
        "checkpoint": {"every": 2, "keep": 5},
    }
    return Recipe.from_tree(tree, where="small")


@pytest.fixture
def train(
    recipe: Recipe, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))

    def run(**options: Any) -> Path:
        out = tmp_path / "run"
        train_recipe(recipe, data=data, out=out, device="cpu", listener=Silent(), **options)
        return out

    return run


def undo(run: Path) -> None:
    """Take a finished run back to its first checkpoint."""
    shutil.rmtree(run / "model")
    (run / "summary.json").unlink()
    shutil.rmtree(run / "checkpoints" / "step-00000004")


def test_a_run_does_not_resume_on_other_rows_unless_told(
    train: Callable[..., Path], data: Path
) -> None:
    run = train()
    undo(run)
    file = data / "ids-sst-train.csv"
    content = file.read_text("utf-8")
    lines = content.splitlines(keepends=True)
    for changed in (content.replace(" the ", " these "), "".join([lines[0], *lines[2:]])):
        assert changed != content
        file.write_text(changed, "utf-8")
        with pytest.raises(TercetError, match="rows of sentiment train have changed"):
            train(resume=True)
    train(resume=True, changed_data=True)
    undo(run)
    train(resume=True)  # the rows are now known
    assert (run / "summary.json").is_file()


def test_damaged_metrics_stop_a_run_before_it_trains(train: Callable[..., Path]) -> None:
    run = train()
    undo(run)
    file = run / "metrics.jsonl"
    whole = file.read_bytes()
    for damaged in (b"\0" * 20 + whole[20:], b"[]\n" + whole[3:], whole[:30], b"[" * 10**5, b""):
        file.write_bytes(damaged)
        with pytest.raises(TercetError, match=r"metrics.jsonl line 1: is damaged"):
            train(resume=True)
        assert not (run / "checkpoints" / "step-00000004").exists()
    file.write_bytes(whole)
    train(resume=True)
    assert file.read_bytes() == whole


def test_a_run_trains_in_any_thread(train: Callable[..., Path]) -> None:
    """Although only the main thread can handle Ctrl-C."""
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(train).result()
    assert (run / "summary.json").is_file()


def hold(path: Path, recipe: Recipe, ready: Any, end: Any) -> None:
    with RunFolder(path, recipe).locked(resume=False):
        ready.set()
        end.wait(60)


def test_two_processes_do_not_train_in_one_folder(
    train: Callable[..., Path], recipe: Recipe, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("fork")
    ready, end = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path / "run", recipe, ready, end))
    other.start()
    try:
        assert ready.wait(60)
        for resume in (False, True):
            with pytest.raises(TercetError, match="another process trains in this folder"):
                train(resume=resume)
    finally:
        other.kill()
        other.join()
    # The lock of a process that was killed holds nobody up.
    run = train()
    assert not (run / ".lock").exists()
    assert set(json.loads((run / "inputs.json").read_text())) == {
        "encoder",
        "sentiment train",
        "sentiment dev",
    }


def test_a_run_that_came_second_does_not_start_over_the_first(
    train: Callable[..., Path], recipe: Recipe
) -> None:
    """Although the folder was empty when it looked first."""
    run = train()
    with (
        pytest.raises(TercetError, match="already holds files"),
        RunFolder(run, recipe).locked(resume=False),
    ):
        pytest.fail("entered")


@pytest.mark.parametrize(
    ("overrides", "difference"),
    [
        ({"seed": 7}, "`seed` is 11711 there and 7 here"),
        ({"stages": [{"steps": 8, "batch": 6}]}, "`stages.0.steps` is 4 there and 8 here"),
        ({"stages": [{"epochs": 1, "batch": 6}]}, "`stages.0.steps` is 4 there and not set here"),
        ({"stages": [{"steps": 4}, {"steps": 4}]}, "`stages` is "),
    ],
)
def test_what_differs_from_the_recipe_of_a_run_is_named(
    recipe: Recipe, tmp_path: Path, overrides: dict[str, Any], difference: str
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "recipe.toml").write_text(recipe.to_toml(), "utf-8")
    tree = recipe.model_dump(mode="json", exclude_none=True) | overrides
    other = Recipe.from_tree(tree, where="other")
    with pytest.raises(TercetError) as error:
        RunFolder(folder, other).check(resume=True)
    assert f"the run was started with another recipe: {difference}" in str(error.value)


def test_a_tree_of_keys_need_not_name_the_files_of_tables(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    rows = {"said": ["a dull film", "fun", "a bore", "a joy"] * 5, "mood": [0, 4] * 10}
    tree = recipe.model_dump(mode="json", exclude_none=True)
    columns = {"texts": "said", "label": "mood"}
    tree["tasks"] = {"sentiment": {**tree["tasks"]["sentiment"], "data": {**columns, "dev": 0.25}}}
    run = tercet.train(tree, {"sentiment": rows}, tmp_path / "run", device="cpu", progress=False)
    assert "accuracy" in run.dev["sentiment"]["single"]
    assert tree["tasks"]["sentiment"]["data"] == {**columns, "dev": 0.25}
    with pytest.raises(TercetError, match="`dev` is a share of the training rows, and `train`"):
        tercet.train(tree, tmp_path, tmp_path / "other", device="cpu", progress=False)


def test_tables_for_some_of_the_tasks_are_not_enough(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    rows = {"sentence": ["a dull film", "fun"] * 5, "sentiment": [0, 4] * 5}
    with pytest.raises(TercetError) as error:
        tercet.train(recipe, {"sentiment": rows}, tmp_path / "out", device="cpu", progress=False)
    assert str(error.value) == (
        "`data` has tables for sentiment, and the recipe also needs ids-sst-dev.csv: give tables "
        "for all tasks, as `TASK` and `TASK-dev`."
    )


def test_tables_of_a_run_are_not_replaced_by_those_of_a_call_that_is_refused(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    rows = {"sentence": ["a dull film", "fun"] * 5, "sentiment": [0, 4] * 5}
    other = {"sentence": ["fun", "a dull film"] * 5, "sentiment": [4, 0] * 5}
    out, options = tmp_path / "out", {"device": "cpu", "progress": False}
    tercet.train(recipe, {"sentiment": rows, "sentiment-dev": rows}, out, **options)
    kept = tmp_path / "out-data" / "sentiment.parquet"
    before = kept.read_bytes()
    undo(out)
    for resume, refusal in ((False, "already holds"), (True, "rows of sentiment train have")):
        tables = {"sentiment": other, "sentiment-dev": rows}
        with pytest.raises(TercetError, match=refusal):
            tercet.train(recipe, tables, out, resume=resume, **options)
        assert kept.read_bytes() == before
    tercet.train(recipe, {"sentiment": rows, "sentiment-dev": rows}, out, resume=True, **options)
    assert (out / "summary.json").is_file()
