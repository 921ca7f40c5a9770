from __future__ import annotations

from pathlib import Path

import pytest

import tercet
from tercet.evaluation import compare as comparing
from tercet.evaluation.evaluation import evaluate
from tercet.evaluation.metrics import Estimate
from tercet.evaluation.presentation import Headline
from tercet.evaluation.suite import Context, Missing, Suite, SuiteResult
from tercet.evaluation.suites import SUITES
from tercet.report import report as reports
from tercet.report.report import Report


class LengthResult(SuiteResult):
    def __init__(self, words: float) -> None:
        self.words = words
        self.missing = [Missing("length", "other", "other.csv")]

    def metrics(self) -> dict[str, Estimate]:
        return {"words per sentence": Estimate(self.words, (1.0, 9.0))}

    def headlines(self) -> list[Headline]:
        return [Headline("Length", "words", Estimate(0.25))]

    def findings(self) -> dict[str, str]:
        return {"Length": "Sentences are short."}

    def notes(self) -> list[str]:
        return ["length: a note."]


class Length(Suite):
    name = "length"
    title = "Sentence length"
    description = "words per sentence"
    intro = "How long sentences are."

    def run(self, context: Context) -> LengthResult:
        context.texts.embed(["one", "two"])
        return LengthResult(4.25)


@pytest.fixture
def length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITES, "_parts", dict(SUITES._parts))
    monkeypatch.setattr(SUITES, "_plugins", dict(SUITES._plugins))
    tercet.register(Length)


def test_a_suite_of_ones_own_is_measured_and_shown(length, tiny_encoder: Path, tmp_path) -> None:
    evaluation = evaluate(tercet.load(tiny_encoder), tmp_path, suites=["length"], name="mine")
    assert evaluation.notes == ["length: a note."]
    report = Report([evaluation])
    document = report.to_json()
    assert document["suites"]["length"] == {
        "metrics": {"words per sentence": {"value": 4.25, "interval": (1.0, 9.0)}}
    }
    assert document["missing"] == [{"suite": "length", "task": "other", "file": "other.csv"}]
    page, text = report.to_html(), report.to_markdown()
    for shown in (
        "Sentence length",
        "4.250",
        "1.000 to 9.000",
        "Sentences are short.",
        "other.csv",
    ):
        assert shown in page
        assert shown in text
    assert "How long sentences are." in page
    ((title, table),) = report.tables()
    assert (title, table.rows[0][1].full) == ("Sentence length", "4.2500")
    comparison = Report([evaluation, evaluation]).tables()[0][1]
    assert [cell.text for cell in comparison.rows[0]] == [
        "Sentence length", "words per sentence", "4.250", "4.250",
    ]  # fmt: skip


def test_models_are_compared_once_for_all_formats(evaluation, monkeypatch) -> None:
    calls = []

    def counting(evaluations):
        calls.append(len(evaluations))
        return comparing.compare(evaluations)

    monkeypatch.setattr(reports, "compare", counting)
    report = Report([evaluation("a"), evaluation("b", skill=0.2)])
    for render in (report.to_json, report.to_html, report.to_markdown, report.tables):
        assert render()
    assert calls == [2]


def test_a_terminal_gets_no_sentences(evaluation, suites) -> None:
    tables = Report([evaluation(suites=suites())]).tables()
    assert [title for title, _ in tables] == [
        "Tasks", "Tasks", "Semantic textual similarity", "Transfer",
        "Robustness", "Robustness", "Robustness", "Geometry",
    ]  # fmt: skip
    assert all("Sentence" not in table.columns for _, table in tables)
