from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.evaluation.metrics import Estimate
from tercet.evaluation.suite import Missing
from tercet.report.markdown import SHOWN, escape
from tercet.report.report import Report


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [[split(line) for line in block.splitlines()] for block in blocks]


def split(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def render(*evaluations) -> str:
    return Report(evaluations).to_markdown()


def test_every_table_is_whole(evaluation, texts, suites) -> None:
    texts["sentiment"][0][:] = [f"a | b *c* <i>\n{text}" for text in texts["sentiment"][0]]
    results = suites([Missing("sts", "STS13", "STS13.tsv")])
    text = render(evaluation("a|b", texts=texts, suites=results))
    assert text.startswith("# Evaluation of a\\|b\n")
    for table in tables(text):
        assert len({len(row) for row in table}) == 1
        assert len(table) > 2
        assert all(set(cell) <= set("-:") for cell in table[1])
    for title in ("Tasks", "Transfer", "Robustness", "Mistakes", "Missing data"):
        assert f"\n## {title}\n" in text
    assert "STS13.tsv" in text
    assert "<i>" not in text.replace("\\<i\\>", "")


def test_values_are_those_of_the_evaluation(evaluation) -> None:
    measured = evaluation()
    similarity = measured.suites["tasks"].tasks["similarity"].best.metrics
    similarity["spearman"] = Estimate(None)
    rows = {(row[0], row[1]): row[2:4] for row in tables(render(measured))[0]}
    value, bounds = rows["similarity", "pearson\\*"]
    assert value == f"{similarity['pearson'].value:.3f}"
    assert bounds == " to ".join(f"{bound:.3f}" for bound in similarity["pearson"].interval)
    assert rows["similarity", "spearman"] == ["undefined", ""]
    assert rows["overall", "mean"] == ["0.700", ""]


def test_a_pull_request_has_few_sentences(evaluation) -> None:
    mistakes = tables(render(evaluation(skill=0.0)))[-1]
    tasks = [row[1] for row in mistakes[2:]]
    assert {tasks.count(task) for task in tasks} == {SHOWN}


def test_models_side_by_side(evaluation) -> None:
    metrics, against, differing = tables(render(evaluation("one"), evaluation("two", skill=0.1)))
    assert metrics[0][2:4] == ["one", "two"]
    assert {row[-1] for row in against[2:]} <= {"worse", "no clear difference"}
    assert any("✓" in cell for row in differing for cell in row)


@pytest.mark.parametrize("mark", list("\\`*_[]<>|#~$"))
def test_marks_are_escaped(mark: str) -> None:
    assert escape(f"a{mark}b") == f"a\\{mark}b"


@given(st.text())
def test_a_cell_stays_a_cell(text: str) -> None:
    shown = escape(text)
    assert len(shown.splitlines()) <= 1
    assert not re.search(r"(?<!\\)(\\\\)*\|", shown)
