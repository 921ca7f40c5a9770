from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.errors import TercetError
from tercet.evaluation.simple_scores import SimpleScores, read_baselines
from tercet.report.html import render_html
from tercet.report.markdown import render_markdown
from tercet.report.page import evaluation_page
from tercet.report.training import RunHistory, read_run

TASKS: dict[str, Any] = {
    "sentiment": {
        "metric": "accuracy", "majority": 0.31, "linear": 0.999, "rows": 900,
        "method": "5-fold cross-validation",
    },
    "paraphrase": {"metric": "accuracy", "majority": 0.52, "rows": 60, "method": "dev"},
}  # fmt: skip


def history(**fields: Any) -> RunHistory:
    return RunHistory("mine", 4, [], {}, {}, {}, {}, [], **fields)


@pytest.fixture
def page(evaluation):
    baselines = {name: SimpleScores(**block) for name, block in TASKS.items()}
    run = history(baselines=baselines, warnings=["tags: never predicts spam (3 rows)."])
    return evaluation_page(evaluation(skill=1.5), run)


def test_baselines_are_beside_the_score(page) -> None:
    section = page.sections[0]
    assert section.title == "Simple baselines"
    rows = [[cell.text for cell in row] for row in section.tables[0].rows]
    score, both = rows[0][2], rows[1][2]
    assert rows == [
        ["sentiment", "accuracy", score, "0.310", "0.999", f"{float(score) - 0.999:+.3f}",
         "900 rows, 5-fold cross-validation"],
        ["paraphrase", "accuracy", both, "0.520", "", f"{float(both) - 0.52:+.3f}",
         "60 rows, dev"],
    ]  # fmt: skip
    notes = {each.subject: each.note for each in page.headlines}
    assert notes == {
        "sentiment": "linear model 0.999, majority class 0.310",
        "paraphrase": "majority class 0.520",
        "similarity": "",
    }


def test_warnings_come_before_the_headlines(page) -> None:
    below, *others = page.warnings
    assert below.startswith("sentiment: accuracy 0.")
    assert "a linear model on the untouched encoder (0.999)" in below
    assert others[-1] == "tags: never predicts spam (3 rows)."
    text = render_html(page)
    assert text.index('class="warnings"') < text.index('class="cards"')
    assert text.index("never predicts spam") < text.index('class="cards"')
    assert "linear model 0.999, majority class 0.310" in text
    assert "- **Warning**: tags: never predicts spam (3 rows)." in render_markdown(page)


def test_a_warning_of_the_run_is_not_repeated(evaluation) -> None:
    once = evaluation_page(evaluation(skill=0.0)).warnings
    assert once
    again = evaluation_page(evaluation(skill=0.0), history(warnings=list(once))).warnings
    assert again == once


def test_that_time_limited_a_run_comes_first(evaluation) -> None:
    short = "Time limited this model."
    run = history(warnings=[short, "tags: never predicts spam (3 rows)."], shortage=short)
    warnings = evaluation_page(evaluation(skill=0.0), run).warnings
    assert warnings[0] == short
    assert warnings.count(short) == 1
    assert len(warnings) > 2


def test_a_model_without_a_run_is_compared_with_the_majority(evaluation) -> None:
    page = evaluation_page(evaluation(skill=-2.0))
    assert any("always predicting the majority class" in each for each in page.warnings)
    assert "Simple baselines" not in [section.title for section in page.sections]


def test_a_report_without_warnings_has_no_box(evaluation) -> None:
    page = evaluation_page(evaluation(skill=3.0))
    assert page.warnings == []
    assert 'class="warnings"' not in render_html(page)


def test_baselines_and_warnings_are_read_from_the_run(tmp_path: Path) -> None:
    from tercet.recipe import Recipe

    recipe = Recipe.load("tercet/quick")
    (tmp_path / "recipe.toml").write_text(recipe.to_toml(), "utf-8")
    (tmp_path / "metrics.jsonl").write_text("", "utf-8")
    assert (read_run(tmp_path).baselines, read_run(tmp_path).warnings) == ({}, [])
    (tmp_path / "baselines.json").write_text(json.dumps({"tasks": TASKS}), "utf-8")
    (tmp_path / "summary.json").write_text('{"warnings": ["One."]}', "utf-8")
    run = read_run(tmp_path)
    assert run.warnings == ["One."]
    assert run.baselines["sentiment"].linear == 0.999
    assert run.baselines["paraphrase"].linear is None
    (tmp_path / "baselines.json").write_text('{"tasks": {"a": {"majority": 1}}}', "utf-8")
    with pytest.raises(TercetError, match=r"baselines\.json"):
        read_baselines(tmp_path)
