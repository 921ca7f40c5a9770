"""benchmarks/fit.py: what is drawn, who runs what, and what the table counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def single(number: int, label: str) -> tuple[tuple[str, ...], str]:
    return (f"text {number}",), label


def test_no_text_is_in_training_and_test_rows() -> None:
    from fit_peers.draws import split

    pool = [((f"a {n % 90}", f"b {n}"), "yes") for n in range(5000)]
    rest, test = split("quora", pool, None)
    texts = {text for row in test for text in row[0]}
    assert len(test) == 2000
    assert texts.isdisjoint(text for row in rest for text in row[0])


def test_texts_that_differ_in_case_and_blanks_are_one_text() -> None:
    from fit_peers.draws import split

    rest, test = split(
        "trec", [(("A  Text",), "x"), single(1, "y"), single(1, "z")], [(("a text",), "x")]
    )
    assert rest == [single(1, "y")]
    assert test == [(("a text",), "x")]


def test_sick_may_share_sentences_but_no_pair() -> None:
    from fit_peers.draws import split

    pool = [(("a", "b"), "NEUTRAL"), (("a", "c"), "NEUTRAL")]
    rest, _ = split("sick", pool, [(("B", "A"), "NEUTRAL")])
    assert rest == [(("a", "c"), "NEUTRAL")]


def test_a_size_per_class_draws_as_many_of_each_class() -> None:
    from fit_peers.cells import Cell
    from fit_peers.draws import draw_rows

    pool = [single(n, "rare" if n < 10 else "common") for n in range(500)]
    rows = draw_rows(Cell("cr", "8-per-class"), pool, draw=1)
    assert sorted(label for _, label in rows) == ["common"] * 8 + ["rare"] * 8
    assert rows == draw_rows(Cell("cr", "8-per-class"), pool, draw=1)
    assert rows != draw_rows(Cell("cr", "8-per-class"), pool, draw=2)


def test_rows_survive_the_csv_file(tmp_path: Path) -> None:
    from fit_peers.cells import read_rows, write_rows

    rows = [(('say "no", twice', "two\nlines"), "1.50"), (("ü", " x "), "2.00")]
    write_rows(tmp_path / "rows.csv", "grades", rows)
    assert read_rows(tmp_path / "rows.csv") == rows


def test_setfit_gets_no_pairs_and_no_grades() -> None:
    from fit_peers.cells import CELLS
    from fit_peers.jobs import jobs_of

    assert {job.cell.kind for job in jobs_of("setfit", CELLS, [1])} == {"texts"}
    assert len(jobs_of("tercet", CELLS, [1, 2, 3])) == 69


def result(method: str, data: str, size: str, draw: int, **values: Any) -> dict[str, Any]:
    return {
        "method": method,
        "data": data,
        "size": size,
        "draw": draw,
        "seconds": 10.0,
        "device": "cpu",
        "machine": "a machine",
        "threads": 2,
        "jobs at once": 1,
        "commit": None,
        "versions": {},
        **values,
    }


def test_the_table_counts_wins_and_cells_below_the_linear_model(tmp_path: Path) -> None:
    from fit_peers.table import write

    results = [
        result("tercet", "cr", "600", 1, accuracy=0.90, macro_f1=0.9, seconds=30.0),
        result(
            "tercet",
            "cr",
            "600",
            2,
            accuracy=0.80,
            macro_f1=0.8,
            seconds=10.0,
            **{"beside other work": True},
        ),
        result("linear", "cr", "600", 1, accuracy=0.86, macro_f1=0.8),
        result("setfit", "cr", "600", 1, accuracy=0.84, macro_f1=0.8),
        # Cut short on another machine: a time, and no scores.
        result(
            *("setfit", "cr", "600", 1),
            device="cuda",
            seconds=900.0,
            settings={"seconds left": 800.0},
        ),
        result("tercet", "sts", "1000", 1, pearson=0.8, spearman=0.7),
        result("linear", "sts", "1000", 1, pearson=0.8, spearman=0.7),
    ]
    for number, values in enumerate(results):
        (tmp_path / f"{number}.json").write_text(json.dumps(values), encoding="utf-8")
    (tmp_path / "results").mkdir()
    write([tmp_path], tmp_path / "results")
    collected = json.loads((tmp_path / "results" / "fit.json").read_text(encoding="utf-8"))
    summary = collected["summary"]
    assert len(collected["jobs"]) == len(results)
    assert summary["wins"]["setfit"] == {"better": 1, "equal": 0, "worse": 0}
    assert summary["wins"]["linear"] == {"better": 0, "equal": 1, "worse": 1}
    assert summary["mean by size"]["600"]["tercet"]["mean"] == pytest.approx(85.0)
    assert summary["below linear"]["tercet"] == ["cr/600"]
    assert summary["slower than setfit"] == ["cr/600 (cpu)"]
    text = (tmp_path / "results" / "fit.md").read_text(encoding="utf-8")
    assert "| cr | 600 | 85.0 | 84.0 | not run | **86.0** |" in text
    assert "| sts | 1,000 | **80.0** | - | - | **80.0** |" in text
    assert "upper bound: tercet cr/600, draw 2." in text
    assert "| cuda | 1 | cr/600 | - | ~900.0 | - | - |" in text
    assert "setfit 1 of 54" in text
