from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest

from tercet.data.spreadsheet import describe_formulas, without_formulas
from tercet.data.table_files import write_table


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd|x", "@SUM(1)", "\tx", "\rx", "-", "=-1"])
def test_a_text_that_begins_like_a_formula_gets_a_quote(text: str) -> None:
    for kind in (pa.string(), pa.large_string()):
        changed, count = without_formulas(pa.array([text, "plain", None], kind))
        assert changed.to_pylist() == ["'" + text, "plain", None]
        assert count == 1


@pytest.mark.parametrize("text", ["-1", "+1.5", "-.5", "-1e-5", "a=b", "", " =x", "'=x"])
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert without_formulas(pa.array([text]))[0].to_pylist() == [text]
    assert without_formulas(pa.array([text]))[1] == 0


def test_only_files_for_spreadsheets_change(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"text": ["=1", "two"], "score": [-0.5, 0.5]})
    for suffix, count in ((".csv", 1), (".tsv", 1), (".jsonl", 0), (".parquet", 0)):
        assert write_table(tmp_path / f"out{suffix}", batch.schema, [batch]) == count
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["text", "score"], ["'=1", "-0.5"], ["two", "0.5"]]
    assert '"=1"' in (tmp_path / "out.jsonl").read_text("utf-8")


def test_how_many_is_said() -> None:
    assert describe_formulas(1).startswith("1 cell begins like a formula")
    assert describe_formulas(1200).startswith("1,200 cells begin like a formula")
