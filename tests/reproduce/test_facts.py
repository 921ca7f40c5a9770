"""A folder keeps what earlier calls left, and its table says how each of them was made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tercet.errors import TercetError
from tercet.recipe import Recipe
from tercet.reproduce.facts import facts_of
from tercet.reproduce.runs import Experiment, Outcome, with_earlier
from tercet.reproduce.table import build_rows


def leave(out: Path, name: str, seed: int, changes: Sequence[str] = ()) -> Outcome:
    """What a finished run leaves, with a figure that grows with the seed."""
    experiment = Experiment(name, seed)
    folder = experiment.folder(out)
    folder.mkdir(parents=True)
    recipe = Recipe.load(name, [f"seed={seed}", *changes])
    (folder / "recipe.toml").write_text(recipe.to_toml(), "utf-8")
    summary = {
        "dev": {"similarity": {"bi": {"pearson": seed / 10}}},
        "rows": {"similarity": 100},
        "made_with": {"tercet": "0", "torch": "2", "machine": "a CPU", "weights": f"w{seed}"},
    }
    (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
    return Outcome(experiment, None)


def test_rows_and_seeds_of_earlier_calls_stay(tmp_path: Path) -> None:
    leave(tmp_path, "siamese/sts-mse", 1)
    leave(tmp_path, "siamese/sts-l1", 1)
    now = [
        leave(tmp_path, "siamese/sts-mse", 2),
        Outcome(Experiment("siamese/sts-mse", 3), "no memory"),
    ]
    rows = build_rows(with_earlier(now, tmp_path), tmp_path)
    assert [row.name for row in rows] == ["siamese/sts-l1", "siamese/sts-mse"]
    assert rows[0].measured["similarity"].values == [0.1]
    assert rows[1].measured["similarity"].values == [0.1, 0.2]
    assert rows[1].failures == ["seed 3: no memory"]


def test_what_this_call_says_of_a_run_counts(tmp_path: Path) -> None:
    again = Outcome(leave(tmp_path, "siamese/sts-mse", 1).experiment, "another recipe")
    assert with_earlier([again], tmp_path) == [again]


def test_a_run_that_is_not_finished_has_no_row(tmp_path: Path) -> None:
    left = leave(tmp_path, "siamese/sts-mse", 1).experiment.folder(tmp_path)
    (left / "summary.json").unlink()
    assert with_earlier([], tmp_path) == []


def test_changes_are_those_of_the_runs(tmp_path: Path) -> None:
    shared = ["checkpoint.every=0", "encoder.name=all-minilm-l6-v2"]
    outcomes = [
        leave(tmp_path, "siamese/sts-mse", 1, shared),
        leave(tmp_path, "siamese/sts-mse", 2, [*shared, "evaluation.patience=3"]),
        leave(tmp_path, "siamese/sts-l1", 2, [*shared, "stages.0.batch=7"]),
    ]
    facts = facts_of(outcomes, tmp_path)
    assert facts["encoder"] == "all-minilm-l6-v2"
    assert facts["weights at the start"] == "w1; w2"
    assert facts["changes"] == (
        "checkpoint.every=0, evaluation.patience=3 (1 of 3 runs), stages.0.batch=7 (1 of 3 runs)"
    )


def test_a_recipe_as_it_is_has_no_changes(tmp_path: Path) -> None:
    teachers = ['tasks.sentiment.teacher.folder=["elsewhere"]']
    outcomes = [
        leave(tmp_path, "siamese/sts-mse", 1),
        leave(tmp_path, "tercet/small", 1, teachers),
    ]
    facts = facts_of(outcomes, tmp_path)
    assert facts["changes"] == "none"
    assert facts["encoder"] == "all-minilm-l6-v2; bert-base-uncased"


def test_with_nothing_done_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert facts_of([], tmp_path)["made with"] == "nothing yet"


@pytest.mark.parametrize("summary", ["{", "{}", '{"made_with": 3}', '{"made_with": {}}'])
def test_a_summary_that_does_not_say_how_it_was_made_is_one_sentence(
    tmp_path: Path, summary: str
) -> None:
    outcome = leave(tmp_path, "siamese/sts-mse", 1)
    (outcome.experiment.folder(tmp_path) / "summary.json").write_text(summary, "utf-8")
    with pytest.raises(TercetError, match=str(tmp_path)) as error:
        facts_of([outcome], tmp_path)
    assert "\n" not in str(error.value)
