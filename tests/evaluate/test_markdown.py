from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.evaluate.markdown import SHOWN, comparison_to_markdown, escape, to_markdown


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [[split(line) for line in block.splitlines()] for block in blocks]


def split(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_every_table_is_whole(document, texts, suites) -> None:
    found = document("a|b")
    found["suites"] |= suites
    found["missing"] = [{"suite": "sts", "task": "STS13", "file": "STS13.tsv"}]
    texts["sentiment"][0][:] = [f"a | b *c* <i>\n{text}" for text in texts["sentiment"][0]]
    text = to_markdown(found, texts)
    assert text.startswith("# Evaluation of a\\|b\n")
    for table in tables(text):
        assert len({len(row) for row in table}) == 1
        assert len(table) > 2
        assert all(set(cell) <= set("-:") for cell in table[1])
    for title in ("Tasks", "Transfer", "Robustness", "Mistakes", "Missing data"):
        assert f"\n## {title}\n" in text
    assert "STS13.tsv" in text
    assert "<i>" not in text.replace("\\<i\\>", "")


def test_figures_are_those_of_the_document(document, texts) -> None:
    found = document()
    similarity = found["suites"]["tasks"]["tasks"]["similarity"]["modes"]["bi"]["metrics"]
    similarity["spearman"] = {"value": None, "interval": None}
    rows = {tuple(row[:2]): row[2:] for row in tables(to_markdown(found, texts))[0]}
    value, bounds = rows["similarity", "pearson \\*"][:2]
    assert value == f"{similarity['pearson']['value']:.3f}"
    assert bounds == " to ".join(f"{bound:.3f}" for bound in similarity["pearson"]["interval"])
    assert rows["similarity", "spearman"][:2] == ["undefined", ""]


def test_a_pull_request_sees_few_sentences(document, texts) -> None:
    mistakes = tables(to_markdown(document(skill=0.0), texts))[-1]
    tasks = [row[1] for row in mistakes[2:]]
    assert {tasks.count(task) for task in tasks} == {SHOWN}


def test_models_side_by_side(document, texts) -> None:
    text = comparison_to_markdown([document("one"), document("two", skill=0.1)], [texts, texts])
    figures, against, differing = tables(text)
    assert figures[0][2:4] == ["one", "two"]
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
