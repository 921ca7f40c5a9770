from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from tercet.errors import TercetError
from tercet.recipe import Recipe, bundled
from tercet.reproduce.figure import draw
from tercet.reproduce.runs import Experiment, Outcome, choose
from tercet.reproduce.table import (
    OLDER,
    build_rows,
    over_rows,
    over_seeds,
    to_markdown,
    write_table,
)
from tercet.reproduce.train_scores import TRAIN_FILE


def leave(out: Path, name: str, seed: int, dev: dict[str, Any]) -> Outcome:
    """What a finished run leaves."""
    experiment = Experiment(name, seed)
    folder = experiment.folder(out)
    folder.mkdir(parents=True)
    rows = dict.fromkeys(dev, 1000)
    summary = {"dev": dev, "rows": rows, "made_with": {"commit": "abc"}}
    (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
    return Outcome(experiment, None)


def dev(sst: float, para: float, sts: float | None) -> dict[str, Any]:
    return {
        "sentiment": {"single": {"accuracy": sst}},
        "paraphrase": {"bi": {"accuracy": para}},
        "similarity": {"bi": {"pearson": sts}},
    }


def test_seeds_are_averaged_and_failures_told(tmp_path: Path) -> None:
    name = "bertology/head-mod"
    outcomes = [
        leave(tmp_path, name, 1, dev(0.4, 0.7, 0.8)),
        leave(tmp_path, name, 2, dev(0.5, 0.8, None)),
        Outcome(Experiment(name, 3), "no room | on the disk"),
        Outcome(Experiment("bertology/sst-knn", 1), "no such file"),
    ]
    first, second = build_rows(outcomes, tmp_path)
    assert first.published == {"sentiment": 0.48, "paraphrase": 0.752, "similarity": 0.721}
    assert first.measured["sentiment"].mean == pytest.approx(0.45)
    assert first.measured["similarity"].values == [0.8, 0.0]
    assert first.failures == ["seed 3: no room | on the disk"]
    assert (second.measured, second.failures) == ({}, ["seed 1: no such file"])
    table = to_markdown([first, second], facts={"encoder": "tiny"})
    lines = table.splitlines()
    cells = [cell.strip() for cell in lines[-2].replace("\\|", "/").strip("|").split("|")]
    assert cells[0] == name
    assert cells[1] == "0.480"
    assert cells[7] == f"{(0.48 + 0.752 + 0.721) / 3:.3f}"
    assert cells[8] == f"{(0.45 + 0.75 + 0.4) / 3:.3f}"
    assert cells[9:] == ["2", "best", "abc", "seed 3: no room / on the disk"]
    assert "no such file" in lines[-1]


def test_a_figure_of_other_data_than_its_column_names_says_so(tmp_path: Path) -> None:
    figures = {"sentiment": {"single": {"accuracy": 0.9}}}
    names = ["sbert/cfimdb-finetune", "sbert/sst-finetune"]
    rows = build_rows([leave(tmp_path, name, 1, figures) for name in names], tmp_path)
    assert [row.remarks for row in rows] == [["CFIMDB's reviews, not SST"], []]
    reviews, sentences = to_markdown(rows, facts={}).splitlines()[-2:]
    assert reviews.endswith("| 1 | best | abc | CFIMDB's reviews, not SST |")
    assert sentences.endswith("| 1 | best | abc |  |")


def test_one_seed_has_the_interval_of_its_rows(tmp_path: Path) -> None:
    (row,) = build_rows([leave(tmp_path, "bertology/head-mod", 1, dev(0.4, 0.7, 0.8))], tmp_path)
    for task, value in (("sentiment", 0.4), ("paraphrase", 0.7), ("similarity", 0.8)):
        low, high = row.measured[task].interval or (0.0, 0.0)
        assert value - 0.04 < low < value < high < value + 0.04


def test_intervals_agree_with_scipy() -> None:
    wilson = stats.binomtest(k=300, n=1000).proportion_ci(method="wilson")
    assert over_rows(0.3, 1000, correlation=False) == pytest.approx((wilson.low, wilson.high))
    x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    y = [1.0, 3.0, 2.0, 5.0, 4.0, 7.0]
    result = stats.pearsonr(x, y)
    fisher = result.confidence_interval()
    found = over_rows(float(result.statistic), 6, correlation=True)
    assert found == pytest.approx((fisher.low, fisher.high))
    values = [0.5, 0.6, 0.4]
    mean, spread = 0.5, stats.sem(values)
    expected = stats.t.interval(0.95, 2, loc=mean, scale=spread)
    assert over_seeds(values, correlation=False) == pytest.approx(expected)


def test_the_interval_of_two_seeds_stays_within_the_metric() -> None:
    """Student's t of two seeds is wide: a share of 1.9 would squash the chart of all others."""
    assert over_seeds([0.63, 0.82], correlation=False) == (0.0, 1.0)
    assert over_seeds([0.1, 0.9], correlation=True) == (-1.0, 1.0)


def test_files_are_written(tmp_path: Path) -> None:
    outcomes = [leave(tmp_path, "bertology/head-mod", 1, dev(0.4, 0.7, 0.8))]
    rows = build_rows([*outcomes, Outcome(Experiment("simcse/all-tasks", 1), "why")], tmp_path)
    write_table(rows, tmp_path, facts={"seeds": "1"})
    draw(rows, tmp_path / "figure.svg")
    stored = json.loads((tmp_path / "table.json").read_text())
    assert stored["facts"] == {"seeds": "1"}
    assert [row["name"] for row in stored["rows"]] == ["bertology/head-mod", "simcse/all-tasks"]
    drawn = (tmp_path / "figure.svg").read_text()
    assert drawn.startswith("<?xml")
    draw(rows, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text() == drawn


def test_scores_on_other_rows_are_shown_apart(tmp_path: Path) -> None:
    names = ["sbert/exp1", "siamese/sts-mse"]
    outcomes = [leave(tmp_path, name, 1, dev(0.4, 0.7, 0.8)) for name in names]
    scores = {"sentiment": {"single": {"accuracy": 0.9}}}
    (outcomes[0].experiment.folder(tmp_path) / TRAIN_FILE).write_text(json.dumps(scores), "utf-8")
    rows = build_rows(outcomes, tmp_path)
    page = to_markdown(rows, facts={})
    on_dev, on_train, on_test = re.split(r"\n## .* rows\n", page)
    assert "| sbert/exp1 | 0.490 | 0.400" in on_dev
    assert "| sbert/exp1 | 1.000 | 0.900 | 0.990 |  | 0.991 |  |" in on_train
    assert "| siamese/sts-mse |  |  |  |  | 0.780 |  |" in on_train
    assert "| sbert/exp1 | 0.508 | 0.785 | 0.569 |" in on_test
    assert "siamese" not in on_test


def test_runs_of_an_older_recipe_are_shown_apart(tmp_path: Path) -> None:
    name = "siamese/concat-uv"
    older = leave(tmp_path / OLDER, name, 1, {"paraphrase": {"bi": {"accuracy": 0.7}}})
    then = Recipe.load(name, ["tasks.paraphrase.subset.share=0.5", "evaluation.patience=3"])
    folder = older.experiment.folder(tmp_path / OLDER)
    (folder / "recipe.toml").write_text(then.to_toml(), "utf-8")
    write_table([], tmp_path, facts={})
    page = (tmp_path / "table.md").read_text()
    assert "## Trained before their recipe was corrected" in page
    assert "| older recipe: tasks.paraphrase.subset.share=0.5 |" in page
    (row,) = json.loads((tmp_path / "table.json").read_text())["older"]
    assert row["measured"]["paraphrase"]["mean"] == 0.7


def test_recipes_are_chosen_by_name_and_by_group() -> None:
    known = [recipe.name for recipe in bundled()]
    assert choose([]) == [name for name in known if not name.startswith("tercet/")]
    robust = [name for name in known if name.startswith("robust/")]
    assert choose(["simcse/all-tasks", "robust", "robust/exp03"]) == ["simcse/all-tasks", *robust]
    with pytest.raises(
        TercetError, match=r"robst: neither .* recipes \(did you mean `robust`\?\);"
    ):
        choose(["robst"])


@pytest.mark.parametrize("summary", ["{", "[]", "{}", '{"dev": 3}', '{"dev": {"sentiment": []}}'])
def test_a_damaged_summary_is_one_sentence(tmp_path: Path, summary: str) -> None:
    outcome = leave(tmp_path, "bertology/head-mod", 1, dev(0.4, 0.7, 0.8))
    file = outcome.experiment.folder(tmp_path) / "summary.json"
    file.write_text(summary, "utf-8")
    with pytest.raises(TercetError, match=str(tmp_path)):
        build_rows([outcome], tmp_path)
