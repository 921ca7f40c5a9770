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
from tercet.data.tables import to_arrow
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
    assert '`kind="classes"`' in other.doubts[0]


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
        '`note` is read as grades with a decimal comma: say `kind="multi-label"` if cells hold '
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


def test_a_name_that_ends_like_a_label_is_the_label(tmp_path: Path) -> None:
    for name in ("answer_type", "answerType", "Answer type"):
        rows = [f"{TEXTS[n % 4]} {n},{n % 2},{n * 1.5},{'abc'[n % 3]}" for n in range(24)]
        look = look_at(write(tmp_path / "t.csv", [f"text,handled,cost,{name}", *rows]))
        assert look.label == name
        assert look.doubts == (
            f'the label is `{name}`, but it could be `handled`, `cost`: say `label="COLUMN"`.',
        )


def test_of_unknown_columns_the_one_that_texts_tell_of_is_the_label(tmp_path: Path) -> None:
    texts = ["der Drucker zieht kein Papier ein", "mein Monitor bleibt leider dunkel",
             "ich habe mein Kennwort vergessen"]  # fmt: skip
    desks = ["Drucker", "Bildschirm", "Konto"]
    rows = [f"{'xy'[n // 3 % 2]},{texts[n % 3]} {n},{desks[n % 3]}" for n in range(60)]
    look = look_at(write(tmp_path / "t.csv", ["Bearbeiter,Beschreibung,Stelle", *rows]))
    assert (look.texts, look.label) == (("Beschreibung",), "Stelle")
    (doubt,) = look.doubts
    assert doubt.startswith("the label is `Stelle`, but it could be `Bearbeiter`")
    # With few rows per value, chance would tell as much.
    look = look_at(write(tmp_path / "t.csv", ["Bearbeiter,Beschreibung,Stelle", *rows[:24]]))
    assert look.label == "Bearbeiter"


def test_measured_quantities_are_the_least_likely_labels(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{n % 2 + 0.5},{'abc'[n % 3]}" for n in range(24)]
    look = look_at(write(tmp_path / "t.csv", ["text,hours,desk", *rows]))
    assert look.label == "desk"


def test_of_several_texts_the_one_with_a_usual_name_is_read(tmp_path: Path) -> None:
    note = "We wrote to the customer, who has not answered our last message yet"
    rows = [f"Ann {n},{TEXTS[n % 4]} {n},{note} {n},{'ab'[n % 2]}" for n in range(24)]
    rows = [row.replace("customer, who", "customer who") for row in rows]
    path = write(tmp_path / "t.csv", ["from,Body,internal,team", *rows])
    look = look_at(path)
    assert look.texts == ("Body",)
    assert look.doubts[0].endswith(
        '`Body` is read: say `text="COLUMN"` for another one, or name two for pairs.'
    )


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("label", list(range(12)), "classes"),
        ("intent", list(range(12)), "classes"),
        ("dept_code", [10, 20, 30, 40, 50, 60, 70], "classes"),
        ("desk", [1200, 1300, 2000, 3000, 4711, 9100], "classes"),
        ("points", list(range(12)), "grades"),
        ("points", list(range(0, 101, 10)), "grades"),
        ("score", [1, 2, 3, 4, 5, 6, 200], "grades"),
    ],
)
def test_whole_numbers_by_their_column_and_their_gaps(
    tmp_path: Path, name: str, values: list[int], kind: str
) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{values[n % len(values)]}" for n in range(84)]
    look = look_at(write(tmp_path / "t.csv", [f"text,{name}", *rows]))
    assert look.kind == kind
    other = "grades" if kind == "classes" else "classes"
    assert look.doubts == (
        f"the {len(values)} numbers in `{name}` are read as {kind}: "
        f'say `kind="{other}"` otherwise.',
    )


def test_numbers_far_apart_that_hardly_recur_are_grades(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{(n % 12) ** 4}" for n in range(24)]
    assert look_at(write(tmp_path / "t.csv", ["text,points", *rows])).kind == "grades"


def test_a_column_that_splits_the_rows_is_named_and_is_no_label(tmp_path: Path) -> None:
    parts = ["train"] * 4 + ["dev", "test"]
    rows = [f"{TEXTS[n % 4]} {n},{parts[n % 6]},{'abcde'[n % 5]}" for n in range(60)]
    look = look_at(write(tmp_path / "t.csv", ["text,part,desk", *rows]))
    assert look.label == "desk"
    assert look.doubts == (
        "`part` divides the rows (train 40, dev 10, test 10), but all of them are used alike: "
        "write each part to a file of its own, fit the one for training, and say "
        '`dev="FILE"` for the one to measure on.',
    )


def test_a_class_called_test_does_not_split_the_rows(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{['test', 'bug'][n % 2]}" for n in range(20)]
    assert look_at(write(tmp_path / "t.csv", ["text,desk", *rows])).names == ["bug", "test"]
    rows = [f"{TEXTS[n % 4]} {n},{['dev', 'test'][n % 2]}" for n in range(20)]
    assert look_at(write(tmp_path / "t.csv", ["text,desk", *rows])).names == ["dev", "test"]


def test_classes_that_differ_only_in_case_or_spaces_are_named(tmp_path: Path) -> None:
    names = ["Late  parcel", "late parcel", "other"]
    rows = [f"{TEXTS[n % 4]} {n},{names[n % 3]}" for n in range(30)]
    look = look_at(write(tmp_path / "t.csv", ["text,desk", *rows]))
    assert look.doubts == (
        "`desk` has names that differ only in case or spaces and are learnt apart ('Late  parcel', "
        "'late parcel'): write each in one way.",
    )


def test_texts_that_hold_the_names_of_their_classes_are_noticed(tmp_path: Path) -> None:
    names = ["Billing", "Late parcel", "Log-in"]
    rows = [f"[{names[n % 3].upper()}] {TEXTS[n % 4]} {n},{names[n % 3]}" for n in range(30)]
    assert look_at(write(tmp_path / "a.csv", ["text,desk", *rows])).doubts == (
        "100% of the texts hold the name of their own class in `desk`, which a model may learn to "
        "look for: take the names out if texts to come are without them.",
    )
    # Names that are parts of other words, and lists of all names, tell nothing.
    rows = [f"{names[n % 3]}ness {TEXTS[n % 4]} {n},{names[n % 3]}" for n in range(30)]
    assert look_at(write(tmp_path / "b.csv", ["text,desk", *rows])).doubts == ()
    rows = [f"{' or '.join(names)}? {TEXTS[n % 4]} {n},{names[n % 3]}" for n in range(30)]
    assert look_at(write(tmp_path / "c.csv", ["text,desk", *rows])).doubts == ()


def test_one_column_per_label_is_explained(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{n % 2},{n // 2 % 2},{n // 4 % 2}" for n in range(24)]
    look = look_at(write(tmp_path / "t.csv", ["text,cold,dry,late", *rows]))
    assert look.label == "cold"
    assert look.doubts[1] == (
        "if `cold`, `dry`, `late` mark several labels of a row, write the names of its labels into "
        "one column, such as `cold; dry`."
    )


def test_a_text_file_has_no_labels(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match=r"t\.txt: has a text per line and no columns"):
        look_at(write(tmp_path / "t.txt", ["text|label", "It broke|it", "Where is it|post"]))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("t.json", "for JSON, one object per line in a file with the suffix .jsonl is read."),
        ("t.xlsx", "save it from the spreadsheet as CSV in UTF-8."),
        ("t.zip", "unpack an archive first."),
    ],
)
def test_what_to_do_with_other_kinds_of_files_is_said(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(TercetError, match=re.escape(hint)):
        look_at(write(tmp_path / name, ["[]"]))


@pytest.mark.parametrize("name", ["intent_id", "Category ID"])
def test_numbers_of_classes_are_not_the_ids_of_rows(tmp_path: Path, name: str) -> None:
    rows = [f"{n},{TEXTS[n % 4]} {n},{n % 9}" for n in range(36)]
    look = look_at(write(tmp_path / "t.csv", [f"user_id,text,{name}", *rows]))
    assert (look.label, look.kind, len(look.names)) == (name, "classes", 9)
    assert look.doubts == (
        f'the 9 numbers in `{name}` are read as classes: say `kind="grades"` otherwise.',
    )


def test_a_mark_for_a_missing_label_is_named(tmp_path: Path) -> None:
    rows = [
        f"{TEXTS[n % 4]} {n},{['good', 'bad', 'N/A', '-'][n % 4 if n < 5 else n % 2]}"
        for n in range(30)
    ]
    look = look_at(write(tmp_path / "t.csv", ["text,label", *rows]))
    assert look.names == ["-", "bad", "good", "N/A"]
    assert look.doubts == (
        "`label` has '-' in 1, 'N/A' in 1 rows, which is learnt like any other name: delete these "
        "cells if they mean that the label is missing.",
    )


def test_numbers_that_are_names_for_a_few_cells_are_doubtful(tmp_path: Path) -> None:
    values = [*range(1, 8), "n/a", *range(1, 8)]
    rows = [f"{TEXTS[n % 4]} {n};{values[n % 15]}" for n in range(45)]
    path = write(tmp_path / "t.csv", ["text;grade", *rows])
    look = look_at(path)
    assert look.kind == "classes"
    assert look.doubts == (
        "42 cells of `grade` are numbers and 3 are not ('n/a'), so that all are read as names: "
        "mend or delete these if the numbers are grades.",
    )
    (doubt,) = look_at(path, kind="classes").doubts
    assert doubt.startswith("`grade` has 'n/a' in 3 rows")


def test_decimal_commas_of_many_digits_are_grades(tmp_path: Path) -> None:
    grades = ["0,667", "3,3333333333333335", "4,25", "2"]
    rows = [f"{TEXTS[n % 4]} {n};{grades[n % 4]}" for n in range(24)]
    look = look_at(write(tmp_path / "t.csv", ["text;note", *rows]))
    assert (look.kind, look.range) == ("grades", (0.667, 4.25))
    codes = ["1203,1507", "1507,2210", "1203", "2210"]
    rows = [f"{TEXTS[n % 4]} {n};{codes[n % 4]}" for n in range(24)]
    look = look_at(write(tmp_path / "t.csv", ["text;note", *rows]))
    assert (look.kind, look.names) == ("multi-label", ["1203", "1507", "2210"])


@pytest.mark.parametrize("listed", [False, True])
def test_numbers_have_the_names_that_datasets_gives_them(tmp_path: Path, *, listed: bool) -> None:
    names = ["world", "sports", "business", "science"]
    feature: dict[str, object] = {"names": names, "_type": "ClassLabel"}
    feature = {"feature": feature, "_type": "List"} if listed else feature
    features = {"text": {"dtype": "string", "_type": "Value"}, "label": feature}
    numbers = [n % 3 for n in range(12)]  # none of the last class
    table = pa.table(
        {
            "text": [f"{TEXTS[n % 4]} {n}" for n in range(12)],
            "label": [[number] for number in numbers] if listed else numbers,
        }
    ).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(to_arrow(table), tmp_path / "t.parquet")
    look = look_at(tmp_path / "t.parquet")
    assert (look.kind, look.names) == ("multi-label" if listed else "classes", names)
    assert look.counts == {"world": 4, "sports": 4, "business": 4, "science": 0}
    assert look.doubts == ()
    if not listed:
        assert look_at(tmp_path / "t.parquet", kind="grades").range == (0.0, 2.0)
    unknown = table.set_column(1, "label", pa.array([n - 1 for n in numbers]))
    pq.write_table(unknown, tmp_path / "u.parquet")
    assert look_at(tmp_path / "u.parquet").names == ["-1", "0", "1"]


def test_objects_are_not_read_as_texts(tmp_path: Path) -> None:
    rows = [json.dumps({"data": {"text": TEXTS[n % 4]}, "label": "ab"[n % 2]}) for n in range(20)]
    message = "no column looks like a text; its columns are `data`, `label` (`data` holds objects"
    with pytest.raises(TercetError, match=re.escape(message)):
        look_at(write(tmp_path / "t.jsonl", rows))


def test_one_number_in_several_spellings_is_one_label(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{['1', '1.0', '1.00'][n % 3]}" for n in range(30)]
    with pytest.raises(TercetError, match="`level` has only one label, '1'"):
        look_at(write(tmp_path / "t.csv", ["text,level", *rows]), label="level")
