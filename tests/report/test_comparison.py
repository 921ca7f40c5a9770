from __future__ import annotations

import dataclasses

from tercet.evaluation.compare import compare
from tercet.report.comparison import (
    differences_chart,
    disagreements_table,
    metrics_chart,
    suite_metrics_table,
    verdict,
)
from tercet.report.report import Report
from tercet.report.svg import Plot, plot


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


def judged(evaluation, *skills: float):
    names = "abc"
    return compare(
        [evaluation(names[place], skill=skill, seed=place) for place, skill in enumerate(skills)]
    )


def test_a_verdict_says_who_is_better_on_what(evaluation) -> None:
    sentence = verdict(judged(evaluation, 0.0, 3.0))
    assert sentence.startswith("b is better on sentiment (accuracy +0.")
    assert sentence.endswith(" than a, beyond chance.")
    assert "worse on" in verdict(judged(evaluation, 3.0, 0.0))
    same = evaluation("a")
    assert verdict(compare([same, same])) == (
        "Between a (2) and a (1) there is no difference beyond chance on sentiment, paraphrase and "
        "similarity."
    )
    assert verdict(judged(evaluation, 0.0, 3.0, 0.0)).count(" a, ") >= 1


def test_a_verdict_without_shared_tasks(evaluation) -> None:
    mute = dataclasses.replace(evaluation("mute"), suites={})
    assert "share no task" in verdict(compare([evaluation("a"), mute]))


def test_the_verdict_is_at_the_top_of_every_format(evaluation) -> None:
    report = Report([evaluation("a", skill=0.0), evaluation("b", skill=3.0)])
    page, text = report.to_html(), report.to_markdown()
    assert page.index("b is better on") < page.index("<nav")
    assert text.splitlines()[2].startswith("b is better on")


def test_dots_show_each_model_and_its_interval(evaluation) -> None:
    comparison = judged(evaluation, 0.0, 3.0)
    chart = metrics_chart(comparison)
    assert chart.y.names == ["sentiment, accuracy", "paraphrase, accuracy", "similarity, pearson"]
    assert [series.name for series in chart.series] == ["a", "b"]
    for place, series in enumerate(chart.series):
        chosen = [metric for metric in comparison.metrics if metric.chosen]
        assert [x for x, _ in series.points] == [metric.values[place] for metric in chosen]
        assert list(series.whiskers) == [metric.intervals[place] for metric in chosen]
        assert [round(y) for _, y in series.points] == [0, 1, 2]
    (series,) = differences_chart(comparison).series
    assert [x for x, _ in series.points] == [
        metric.differences[0].value for metric in comparison.metrics if metric.chosen
    ]
    svg = plot(chart)
    assert isinstance(svg, Plot)
    assert svg.frame.left > 100
    assert len(svg.series[1].dots) == 3
