"""A user's own file: no list of labels, and dev rows as a share of it or none at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tercet.cli.app import main
from tercet.data.examples import read_examples
from tercet.evaluation.scaling import calibrate
from tercet.model import load
from tercet.recipe import Recipe
from tercet.report.training import read_run, training_section

Command = Callable[..., tuple[object, str, str]]
TEAMS = {
    "billing": "My invoice {} is wrong",
    "ship it": "Parcel {} is late",
    "it": "Error {} again",
}
MLP = {"kind": "mlp"}


@pytest.fixture
def tercet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Command:
    """Exit code, stdout and stderr of a call in a folder of its own."""
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TERCET_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        return end.value.code, output.out, output.err

    return run


@pytest.fixture
def write(tmp_path: Path, tiny_encoder: Path) -> Callable[..., None]:
    """Tickets with semicolons, graded pairs, and mine.toml, which trains on both."""
    (tmp_path / "own").mkdir()
    tickets = [f"{text.format(row)};{team}" for row in range(20) for team, text in TEAMS.items()]
    (tmp_path / "own" / "tickets.csv").write_text("\n".join(["subject;team", *tickets]), "utf-8")
    pairs = [f"It is {row}|It was {row + 1}|{1 + row % 10}" for row in range(40)]
    (tmp_path / "own" / "pairs.csv").write_text("\n".join(["a|b|grade", *pairs]), "utf-8")

    def write_recipe(team: dict[str, Any], alike: dict[str, Any], **blocks: Any) -> None:
        alike_data = {"train": "pairs.csv", "texts": ["a", "b"], "label": "grade", **alike}
        tree = {
            "name": "mine",
            "summary": "Tickets and pairs",
            "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
            "tasks": {
                "team": {
                    "data": {"train": "tickets.csv", "texts": "subject", "label": "team", **team},
                    "held_out": 0.1,
                    "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
                },
                "alike": {
                    "data": alike_data,
                    "cross": {"head": MLP, "objective": {"kind": "mean-squared-error"}},
                },
            },
            "stages": [{"epochs": 1, "batch": 16}],
            **blocks,
        }
        (tmp_path / "mine.toml").write_text(tomli_w.dumps(tree), "utf-8")

    return write_recipe


TRAIN = ("train", "mine.toml", "--data", "own", "--out", "run", "--device", "cpu")


def test_a_share_is_scored_and_found_labels_are_in_the_recipe(
    tercet: Command, write: Callable[..., None], tmp_path: Path
) -> None:
    write({"dev": 0.2}, {"dev": 0.25})
    code, _, talk = tercet(*TRAIN, "--set", "stages.0.steps=4")
    assert code == 0, talk
    assert "team train: 48 rows." in talk
    assert "team dev: 12 rows." in talk
    assert "team: 5 rows held out." in talk
    recipe = Recipe.load(tmp_path / "run" / "recipe.toml")
    assert recipe.tasks["team"].labels == ["billing", "it", "ship it"]
    assert recipe.tasks["alike"].range == (1.0, 10.0)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["rows"] == {"team": 12, "alike": 10}
    card = (tmp_path / "run" / "model" / "README.md").read_text("utf-8")
    assert "trained on tickets.csv; measured on 20% of these rows" in card

    code, _, talk = tercet("evaluate", "run", "--data", "own", "--json", "result.json")
    assert code == 0, talk
    tasks = json.loads((tmp_path / "result.json").read_text())["suites"]["tasks"]["tasks"]
    assert {name: task["rows"] for name, task in tasks.items()} == summary["rows"]
    measured = tasks["team"]["modes"]["single"]["metrics"]["accuracy"]["value"]
    assert measured == pytest.approx(summary["dev"]["team"]["single"]["accuracy"], abs=1e-9)

    code, _, talk = tercet(*TRAIN, "--set", "stages.0.steps=4", "--resume")
    assert code == 0
    assert "is finished" in talk


def test_without_dev_rows_nothing_is_scored_and_the_last_weights_are_kept(
    tercet: Command, write: Callable[..., None], tmp_path: Path
) -> None:
    write({}, {})
    code, out, talk = tercet(*TRAIN)
    assert code == 0, talk
    assert "team has no dev rows and is not scored" in talk
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["dev"], summary["rows"], summary["score"]) == ({}, {}, None)
    assert summary["kept"] == summary["steps"] > 0
    assert load(tmp_path / "run").predict("team", ["Parcel 3 is late"])
    code, out, talk = tercet("evaluate", "run", "--data", "own")
    assert (code, out) == (2, "")
    assert "Task `team` of this model has no dev rows" in talk
    assert training_section(read_run(tmp_path / "run")).tables == []


def test_a_task_without_dev_rows_beside_one_with_them(
    tercet: Command, write: Callable[..., None], tmp_path: Path
) -> None:
    write({"dev": 0.2}, {})
    code, _, talk = tercet(*TRAIN)
    assert code == 0, talk
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["dev"].keys() == {"team"}
    code, out, talk = tercet("evaluate", "run", "--data", "own", "--report", "report.html")
    assert code == 0, talk
    assert "alike: has no dev rows, so it is not measured." in talk
    assert "team\taccuracy*" in out
    code, _, talk = tercet(
        "evaluate", "run", "--data", "own", "--suite", "robustness", "--suite", "geometry"
    )
    assert "Traceback" not in talk


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"evaluation": {"tasks": ["team", "alike"]}}, "evaluation.tasks needs dev rows of task"),
        ({"evaluation": {"score": "alike.pearson"}}, "evaluation.score needs dev rows of task"),
        (
            {"stages": [{"epochs": 1, "schedule": {"kind": "needs", "goals": {"team": 0.5}}}]},
            "schedule `needs` needs dev rows of task `alike`",
        ),
    ],
)
def test_what_needs_dev_rows_names_the_task_that_has_none(
    tercet: Command, write: Callable[..., None], blocks: dict[str, Any], message: str
) -> None:
    write({"dev": 0.2}, {}, **blocks)
    code, out, talk = tercet(*TRAIN)
    assert (code, out) == (2, "")
    assert message in talk
    assert not Path("run").exists()


def test_a_missing_data_folder_is_named(tercet: Command, write: Callable[..., None]) -> None:
    write({"dev": 0.2}, {})
    code, out, talk = tercet("train", "mine.toml", "--data", "absent", "--out", "run")
    assert (code, out) == (2, "")
    assert "--data absent: no such folder; give the folder that holds tickets.csv." in talk
    assert talk.count("\n") == 1


def test_calibration_uses_held_out_rows_of_the_training_side(
    tercet: Command, write: Callable[..., None], tmp_path: Path
) -> None:
    write({"dev": 0.2}, {"dev": 0.2})
    assert tercet(*TRAIN)[0] == 0
    model = load(tmp_path / "run", device="cpu")
    info = calibrate(model, tmp_path / "own")
    assert info.scalings == model.info.scalings
    assert len(read_examples(model.tasks["team"], "train", tmp_path / "own")) == 48
