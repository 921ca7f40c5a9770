"""What a labelled file is about."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tercet.data.look import look_at
from tercet.errors import TercetError

TEXTS = ["The invoice is wrong", "Where is my parcel", "I cannot log in", "It broke today"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_dates_addresses_and_links_are_neither_texts_nor_labels(tmp_path: Path) -> None:
    rows = [
        f"2024-03-{n + 10} 09:{n + 10};ann{n}@mail.org;https://a.org/{n};{TEXTS[n % 4]} {n};"
        f"{'billing' if n % 2 else 'delivery'}"
        for n in range(20)
    ]
    look = look_at(write(tmp_path / "t.csv", ["created;from;link;message;team", *rows]))
    assert (look.texts, look.label, look.doubts) == (("message",), "team", ())


def test_lists_of_labels_that_vary_as_much_as_texts_are_labels(tmp_path: Path) -> None:
    names = ["account access", "late parcels", "wrong invoices"]
    lists = [[names[k] for k in range(3) if n >> k & 1] for n in range(8)]
    rows = [json.dumps({"text": TEXTS[n % 4], "about": lists[n]}) for n in range(8)]
    look = look_at(write(tmp_path / "t.jsonl", rows))
    assert (look.texts, look.label, look.kind) == (("text",), "about", "multi-label")
    assert look.names == sorted(names)
    assert look.doubts == ()


def test_cells_of_several_labels_that_vary_as_much_as_texts_are_labels(tmp_path: Path) -> None:
    names = ["account access", "late parcels", "wrong invoices"]
    cells = ["; ".join(names[k] for k in range(3) if n >> k & 1) for n in range(8)]
    rows = [f"{TEXTS[n % 4]},{cells[n]}" for n in range(8)]
    look = look_at(write(tmp_path / "t.csv", ["text,tags", *rows]))
    assert (look.texts, look.label, look.kind) == (("text",), "tags", "multi-label")
    assert (look.names, look.separator) == (sorted(names), ";")


def test_many_numbers_are_grades_and_certainly_so_by_their_name(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{n % 10 + 1}" for n in range(40)]
    named = look_at(write(tmp_path / "a.csv", ["text,grade", *rows]))
    other = look_at(write(tmp_path / "b.csv", ["text,points", *rows]))
    assert (named.kind, named.range, named.doubts) == ("grades", (1.0, 10.0), ())
    assert other.kind == "grades"
    assert "--kind classes" in other.doubts[0]


def test_one_row_is_not_called_rows(tmp_path: Path) -> None:
    rows = ["The invoice is wrong,a", "The invoice is wrong,a", "Where is it now,b", ",b"]
    sentences = look_at(write(tmp_path / "t.csv", ["text,label", *rows])).sentences()
    assert sentences[1] == (
        "1 row without a text or a label is left out; 1 row repeats the texts of an earlier row."
    )


def test_objects_and_dates_in_other_columns_do_no_harm(tmp_path: Path) -> None:
    rows = [
        {"meta": {"lang": "en"}, "history": [{"at": n}], "body": f"{TEXTS[n % 4]} {n}",
         "labels": ["a", "b"][: 1 + n % 2]}
        for n in range(12)
    ]  # fmt: skip
    look = look_at(write(tmp_path / "t.jsonl", [json.dumps(row) for row in rows]))
    assert (look.texts, look.label, look.kind) == (("body",), "labels", "multi-label")
    frame = pa.table(
        {
            "at": [datetime(2024, 3, n + 1, 12, n, tzinfo=UTC) for n in range(12)],
            "text": [f"{TEXTS[n % 4]} {n}" for n in range(12)],
            "who": [b"\x00"] * 12,
            "team": ["a", "b"] * 6,
        }
    )
    pq.write_table(frame, tmp_path / "t.parquet")
    look = look_at(tmp_path / "t.parquet")
    assert (look.texts, look.label, look.doubts) == (("text",), "team", ())


def test_decimal_commas_are_grades(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n};{1 + n % 4},{5 * (n % 2)}" for n in range(24)]
    path = write(tmp_path / "t.csv", ["text;note", *rows])
    look = look_at(path)
    assert (look.kind, look.range) == ("grades", (1.0, 4.5))
    assert look.doubts == (
        "`note` is read as grades with a decimal comma: say --kind multi-label if cells hold "
        "several labels.",
    )
    assert look_at(path, kind="multi-label").names == ["0", "1", "2", "3", "4", "5"]


def test_rows_with_too_many_cells_are_counted(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{'ab'[n % 2]}" for n in range(12)]
    look = look_at(write(tmp_path / "t.csv", ["text,label", *rows, "a,b,c,d", "e,f,g"]))
    assert (look.rows, look.unreadable) == (12, 2)
    assert look.sentences()[1] == (
        "2 rows are left out, the first: line 14 has 4 cells where 2 are expected."
    )


def test_conflicts_are_rows_with_another_label_than_the_first(tmp_path: Path) -> None:
    rows = [f"the same text,{'ab'[n % 2]}" for n in range(10)]
    look = look_at(write(tmp_path / "t.csv", ["text,label", *rows]))
    assert (look.duplicates, look.conflicts) == (9, 5)


def test_many_classes_of_few_rows_are_doubtful(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{n % 20}%" for n in range(24)]
    (doubt,) = look_at(write(tmp_path / "t.csv", ["text,share", *rows])).doubts
    assert doubt.startswith("the 20 classes of `share` have 24 rows, too few to learn them")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["text,label"], "t.csv: contains no rows, only a header (`text`, `label`)."),
        (["text,label", *(f"{TEXTS[n % 4]} {n},yes" for n in range(9))],
         "column `label` has only one label, 'yes'; a task needs two or more."),
        (["text,label", *(f"{TEXTS[n % 4]} {n},l{n}" for n in range(9))],
         "column `label` has another value in each of its 9 rows; labels recur."),
        (["doc;note", *(f'{{"text": "{n}"}};{{"a": 1}}' for n in range(9))],
         "(`doc`, `note` hold objects: write what is in them as columns)"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_label_is_said(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(TercetError, match=re.escape(message)):
        look_at(write(tmp_path / "t.csv", lines))
