"""`tercet fit`: what options become, what is printed, and mistakes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tercet.cli.app import main
from tercet.errors import TercetError
from tercet.fitting.budget import LIMITED
from tercet.fitting.result import TaskScore

Command = Callable[..., tuple[object, str, str]]


@pytest.fixture
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of `tercet.fit`, which is not called itself; a parameter is its shortage."""
    noted: list[dict[str, Any]] = []
    shortage = getattr(request, "param", None)

    def fit(*files: str, **options: Any) -> Any:
        noted.append({"files": files, **options})
        scores = {
            "one": TaskScore("accuracy", 0.91234, (0.85, 0.97), 0.5, 0.88, 1200),
            "two": TaskScore("pearson", None, None, None, None, 3),
        }
        return SimpleNamespace(
            folder=Path("runs/one"), data=Path("/data"), scores=scores, shortage=shortage
        )

    monkeypatch.setattr("tercet.fitting.fit.fit", fit)
    return noted


@pytest.fixture
def tercet(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Command:
    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", "fit", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        return end.value.code, output.out, output.err

    return run


def test_scores_and_what_to_do_next_are_printed(tercet: Command, calls: list[Any]) -> None:
    code, out, talk = tercet("one.csv", "b/two.csv")
    assert code == 0, talk
    assert [line.split("\t") for line in out.splitlines()] == [
        ["Task", "Metric", "Score", "Interval", "Linear model", "Majority class", "Rows"],
        ["one", "accuracy", "0.912", "0.850 to 0.970", "0.880", "0.500", "1,200"],
        ["two", "pearson", "", "", "", "", "3"],
    ]
    assert "Model: runs/one/model. Report: runs/one/report.html." in talk
    assert "tercet predict one FILE --model runs/one --out predicted.csv" in talk
    assert "tercet train runs/one/recipe.toml --data /data --out DIR" in talk
    (call,) = calls
    assert call["files"] == ("one.csv", "b/two.csv")
    assert (call["minutes"], call["seed"]) == (10.0, 11711)
    unset = ("text", "label", "kind", "task", "dev", "group", "encoder", "onto", "out", "device")
    assert all(call[name] is None for name in unset)


@pytest.mark.parametrize("calls", [None, "Time limited this model."], indirect=True)
def test_the_last_line_says_what_time_did_not_allow(
    tercet: Command, calls: list[Any], request: pytest.FixtureRequest
) -> None:
    last = tercet("one.csv")[2].splitlines()[-1]
    is_short = "Time" in request.node.callspec.id
    assert (last == "Warning: Time limited this model.") == is_short


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--text", "a", "--text", "b"], {"text": ["a", "b"]}),
        (["--text", "one=a", "--text", "two=b", "--text", "two=c"],
         {"text": {"one": ["a"], "two": ["b", "c"]}}),
        (["--label", "team"], {"label": "team"}),
        (["--label", "two=a=b"], {"label": {"two": "a=b"}}),
        (["--label", "x=y"], {"label": "x=y"}),
        (["--kind", "one=grades", "--kind", "two=classes"],
         {"kind": {"one": "grades", "two": "classes"}}),
        (["--dev", "one=dev.csv", "--group", "who"], {"dev": {"one": "dev.csv"}, "group": "who"}),
        (["--task", "a", "--task", "b", "--label", "a=x"],
         {"task": ["a", "b"], "label": {"a": "x"}}),
        (["--minutes", "2.5", "--seed", "3", "--out", "runs/x", "--onto", "runs/y"],
         {"minutes": 2.5, "seed": 3, "out": Path("runs/x"), "onto": "runs/y"}),
    ],
)  # fmt: skip
def test_options_are_for_all_files_or_for_one(
    tercet: Command, calls: list[Any], options: list[str], expected: dict[str, Any]
) -> None:
    code, _, talk = tercet("one.csv", "two.csv", *options)
    assert code == 0, talk
    assert {name: calls[0][name] for name in expected} == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--label", "a", "--label", "b"],
         "a and b: write NAME=VALUE for each file; the names are one, two."),
        (["--label", "one=a", "--label", "b"], "b: write NAME=VALUE for every file"),
        (["--dev", "d.csv"], "d.csv: write NAME=VALUE for each file; the names are one, two."),
        (["--task", "a"], "--task gives 1 names for 2 files"),
        (["--minutes", "0"], "--minutes"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(
    tercet: Command, calls: list[Any], options: list[str], sentence: str
) -> None:
    code, out, talk = tercet("one.csv", "two.csv", *options)
    assert (code, out) == (2, "")
    assert sentence in talk
    assert not calls


def test_what_cannot_be_guessed_names_the_option(tercet: Command, tmp_path: Path) -> None:
    rows = [f"{row},{'ab'[row % 2]}" for row in range(9)]
    (tmp_path / "n.csv").write_text("\n".join(["n,team", *rows]), "utf-8")
    code, out, talk = tercet(tmp_path / "n.csv")
    assert (code, out) == (2, "")
    assert "no column looks like a text; its columns are `n`, `team`; name one with --text." in talk
    assert talk.count("\n") == 1


def test_what_is_not_certain_speaks_of_flags(
    tercet: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*files: str, listener: Any, **options: Any) -> Any:
        listener.say('Not certain: the label is `label`: say `label="COLUMN"`.')
        listener.say('Not certain: grades: say `kind="multi-label"`, or `dev="FILE"`.')
        raise TercetError("enough.")

    monkeypatch.setattr("tercet.fitting.fit.fit", fit)
    assert tercet("one.csv")[2].splitlines() == [
        "Not certain: the label is `label`: say --label COLUMN.",
        "Not certain: grades: say --kind multi-label, or --dev FILE.",
        "error: enough.",
    ]


def test_that_time_limited_the_model_is_said_once(
    tercet: Command, calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tercet.fitting import fit as fitting

    limited, fake = f"{LIMITED}: nothing was tuned.", fitting.fit

    def fit(*files: str, listener: Any, **options: Any) -> Any:
        listener.say(f"Warning: {limited}")
        listener.say("Warning: one: never predicts a.")
        result = fake(*files, **options)
        result.shortage = limited
        return result

    monkeypatch.setattr(fitting, "fit", fit)
    warnings = [line for line in tercet("one.csv")[2].splitlines() if line.startswith("Warning")]
    assert warnings == ["Warning: one: never predicts a.", f"Warning: {limited}"]
