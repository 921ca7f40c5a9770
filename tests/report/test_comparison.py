from __future__ import annotations

import dataclasses

from tercet.evaluation.compare import compare
from tercet.report.comparison import disagreements_table, suite_metrics_table


def test_sentences_show_the_models_that_predict_and_all_tasks_first(evaluation) -> None:
    mute = dataclasses.replace(evaluation("mute"), suites={})
    models = [evaluation("bad", skill=0.0, seed=9), mute, evaluation("good", skill=1.5)]
    table = disagreements_table(compare(models))
    assert table.columns == ["Sentence", "Task", "Expected", "bad", "good", "Apart"]
    tasks = [row[1].text for row in table.rows]
    assert set(tasks[:3]) == {"sentiment", "paraphrase", "similarity"}


def test_suites_are_side_by_side(evaluation, suites) -> None:
    comparison = compare([evaluation("one", suites=suites()), evaluation("two")])
    table = suite_metrics_table(comparison)
    assert table.columns == ["Suite", "Metric", "one", "two"]
    rows = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    assert rows["STS12, spearman"] == ["0.500", ""]
    assert rows["average without leaked pairs"] == ["undefined", ""]
    assert {row[0].text for row in table.rows} == {
        "Semantic textual similarity", "Transfer", "Robustness", "Geometry",
    }  # fmt: skip
