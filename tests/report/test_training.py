from __future__ import annotations

import json
from pathlib import Path

import pytest

from tercet.errors import TercetError
from tercet.report.training import POINTS, ROWS, is_run, read_run

RECIPE = """
name = "two-stages"
summary = "x"
[encoder]
name = "tiny"
[tasks.sentiment]
data = { layout = "cs224n-sst" }
labels = ["a", "b"]
single = { head = { kind = "mlp" }, objective = { kind = "cross-entropy" } }
[tasks.similarity]
data = { layout = "cs224n-sts" }
range = [0, 5]
bi = { head = { kind = "cosine" }, objective = { kind = "mean-squared-error", targets = [0, 1] } }
[[stages]]
name = "first"
steps = 4
[[stages]]
name = "second"
steps = 4
"""


def step(number: int, stage: str, **more: object) -> dict[str, object]:
    loss = {"sentiment": 1.0 / number, "similarity": 2.0}
    return {"step": number, "stage": stage, "loss": loss, "lr": 1e-3, "norm": 1.0, **more}


def scores(number: int, stage: str, accuracy: float, pearson: float | None) -> dict[str, object]:
    dev = {"sentiment": {"single": {"accuracy": accuracy}}, "similarity": {"bi": {}}}
    dev["similarity"]["bi"]["pearson"] = pearson
    return {"step": number, "stage": stage, "dev": dev, "score": accuracy}


def write_run(folder: Path, lines: list[dict[str, object]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "recipe.toml").write_text(RECIPE, "utf-8")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text, "utf-8")
    return folder


def test_curves_and_what_the_second_stage_forgot(tmp_path: Path) -> None:
    cosine = {"sentiment ~ similarity": -0.25}
    lines = [step(1, "first", cosine=cosine), step(2, "first", cosine=cosine)]
    lines += [scores(2, "first", 0.9, None), step(3, "second"), scores(3, "second", 0.7, 0.5)]
    run = read_run(write_run(tmp_path / "run", lines))
    assert (run.name, run.steps) == ("two-stages", 3)
    assert run.stages == [("first", 1), ("second", 3)]
    assert run.losses["sentiment"] == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]
    assert run.cosines == {"sentiment ~ similarity": [(1, -0.25), (2, -0.25)]}
    assert run.scores["sentiment"] == [(2, 0.9), (3, 0.7)]
    assert run.scores["similarity"] == [(3, 0.5)]
    assert [(moment.stage, moment.step) for moment in run.forgetting] == [
        ("first", 2),
        ("second", 3),
    ]
    last = run.forgetting[-1].tasks
    assert last["sentiment"].forgotten == pytest.approx(0.2)
    assert (last["similarity"].value, last["similarity"].forgotten) == (0.5, None)


def test_of_one_task_the_score_is_not_a_second_curve(tmp_path: Path) -> None:
    dev = {"sentiment": {"single": {"accuracy": 0.5}}}
    lines = [step(1, "first"), {"step": 1, "stage": "first", "dev": dev, "score": 0.5}]
    assert list(read_run(write_run(tmp_path / "run", lines)).scores) == ["sentiment"]
    assert list(read_run(write_run(tmp_path / "two", [scores(1, "first", 0.5, 0.2)])).scores) == [
        "sentiment",
        "similarity",
        "score",
    ]


def test_long_runs_are_thinned(tmp_path: Path) -> None:
    lines = [step(number, "first") for number in range(1, 5001)]
    lines += [scores(number, "first", 0.5, 0.5) for number in range(1, 100)]
    run = read_run(write_run(tmp_path / "run", lines))
    assert len(run.losses["similarity"]) == POINTS
    assert {value for _, value in run.losses["similarity"]} == {2.0}
    assert len(run.forgetting) == ROWS
    assert run.forgetting[-1].step == 99


def test_a_killed_run_can_be_read_and_a_broken_one_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [step(1, "first")])
    file = folder / "metrics.jsonl"
    file.write_text(file.read_text("utf-8") + '{"step": 2, "st', "utf-8")
    assert read_run(folder).steps == 1
    file.write_text("{\n" + file.read_text("utf-8"), "utf-8")
    with pytest.raises(TercetError, match=r"metrics\.jsonl, line 1: is not JSON"):
        read_run(folder)
    assert not is_run(tmp_path)
    with pytest.raises(TercetError, match="is not a run folder"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("summary.json", "{"),
        ("summary.json", "[]"),
        ("summary.json", '{"warnings": 3}'),
        ("summary.json", '{"shortage": 3}'),
        ("summary.json", '{"shortage": []}'),
        ("metrics.jsonl", "3\n"),
        ("metrics.jsonl", "[" * 10**5 + "\n"),
        ("metrics.jsonl", '{"step": "x", "dev": 3}\n'),
        ("metrics.jsonl", '{"step": 1, "stage": 3}\n'),
        ("metrics.jsonl", '{"step": 1, "stage": "first", "dev": {}, "score": "x"}\n'),
    ],
)
def test_a_damaged_run_is_one_sentence(tmp_path: Path, file: str, content: str) -> None:
    folder = write_run(tmp_path / "run", [step(1, "first")])
    (folder / file).write_text(content, "utf-8")
    with pytest.raises(TercetError, match="run") as error:
        read_run(folder)
    assert "\n" not in str(error.value)
