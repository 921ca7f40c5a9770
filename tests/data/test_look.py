"""What a labelled file is about, for files as people have them."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tercet.data.found import found_labels
from tercet.data.look import Look, look_at
from tercet.errors import ArgumentError, TercetError
from tercet.specs import TaskSpec

TEAMS = ["billing team", "delivery", "it"]
TAGS = ["cold", "dry", "late"]


def text(row: int) -> str:
    return f"Message number {row} says something of its own"


def write(
    path: Path, header: Sequence[str] | None, rows: Sequence[Sequence[Any]], delimiter: str = ","
) -> Path:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter)
    writer.writerows([*([header] if header else []), *rows])
    path.write_text(stream.getvalue(), "utf-8")
    return path


@pytest.fixture
def look(tmp_path: Path) -> Any:
    """What a file of these rows is about."""

    def make(
        header: Sequence[str] | None, rows: Sequence[Sequence[Any]], *, by: str = ",", **given: Any
    ) -> Look:
        return look_at(write(tmp_path / "rows.csv", header, rows, by), **given)

    return make


@pytest.mark.parametrize("by", [",", ";", "|", "\t"])
def test_tickets_with_any_delimiter(look: Any, by: str) -> None:
    found = look(["subject", "team"], [[text(row), TEAMS[row % 3]] for row in range(30)], by=by)
    assert (found.texts, found.label, found.kind) == (("subject",), "team", "classes")
    assert found.names == TEAMS
    assert found.counts == dict.fromkeys(TEAMS, 10)
    assert (found.rows, found.left_out, found.duplicates, found.conflicts) == (30, 0, 0, 0)
    assert found.doubts == ()
    (sentence,) = found.sentences()
    assert sentence == (
        "rows.csv: 30 texts in `subject`, 3 classes (billing team 33%, delivery 33%, it 33%) in "
        "`team`."
    )


def test_empty_cells_and_repeated_texts_are_counted(look: Any) -> None:
    rows = [[text(row), TEAMS[row % 3]] for row in range(30)]
    rows += [[text(0).upper(), "delivery"], [text(1), TEAMS[1]], ["", "it"], [text(99), ""]]
    found = look(["subject", "team"], rows)
    assert (found.rows, found.left_out) == (32, 2)
    assert (found.duplicates, found.conflicts) == (2, 1)
    assert found.sentences()[1] == (
        "2 rows without a text or a label are left out; 2 rows repeat the texts of an earlier row, "
        "1 of them with another label."
    )


@pytest.mark.parametrize(
    ("last", "rows", "left_out", "unreadable"),
    [(["other"], 61, 0, 0), ([""], 60, 1, 0), (["it", "a third cell"], 60, 0, 1)],
)
def test_all_rows_of_a_long_file_count(
    look: Any,
    monkeypatch: pytest.MonkeyPatch,
    last: list[str],
    rows: int,
    left_out: int,
    unreadable: int,
) -> None:
    """A file may be sorted by its labels, so that its first rows have one alone."""
    sorted_rows = [[text(row % 50), TEAMS[row // 20]] for row in range(60)]
    found = look(["subject", "team"], [*sorted_rows, ["The last one", *last]])
    assert (found.rows, found.left_out, found.unreadable) == (rows, left_out, unreadable)
    assert (found.counts["it"], found.duplicates, found.conflicts) == (20, 10, 10)
    monkeypatch.setattr("tercet.data.profiles.LOOKED_AT", 9)
    assert look(["subject", "team"], [*sorted_rows, ["The last one", *last]]) == found


def test_no_header(look: Any) -> None:
    found = look(None, [[text(row), TEAMS[row % 3]] for row in range(30)])
    assert (found.texts, found.label) == ((1,), 2)
    assert found.rows == 30


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("sentence1", "sentence2"),
        ("question1", "question2"),
        ("premise", "hypothesis"),
        ("text1", "text2"),
        ("query", "document"),
        ("question", "other"),
        ("a", "b"),
        ("Left", "Right"),
        ("first", "second"),
        ("title_1", "title_2"),
        ("Line A", "Line B"),
        ("q1", "q2"),
    ],
)
def test_pairs_by_their_names(look: Any, first: str, second: str) -> None:
    rows = [[row, text(row), text(row + 1), "yes" if row % 2 else "no"] for row in range(20)]
    found = look(["id", first, second, "same"], rows)
    assert (found.texts, found.label) == ((first, second), "same")
    assert found.is_pair
    assert found.names == ["no", "yes"]
    assert found.doubts == ()
    assert found.sentences()[0].startswith(
        f"rows.csv: 20 pairs of texts in `{first}` and `{second}`, 2 classes"
    )


def test_two_texts_of_similar_length_are_a_doubtful_pair(look: Any) -> None:
    rows = [[text(row), f"Reply {text(row)}", TEAMS[row % 3]] for row in range(20)]
    found = look(["mail", "reply", "team"], rows)
    assert found.texts == ("mail", "reply")
    assert 'say `text="COLUMN"` for one of them' in found.doubts[0]
    assert "Not certain: `mail` and `reply` are read as" in found.sentences()[-1]


def test_of_texts_of_different_length_the_longest_is_read(look: Any) -> None:
    rows = [[f"Subject {row}", f"{text(row)} {text(row)}", TEAMS[row % 3]] for row in range(20)]
    found = look(["subject", "body", "team"], rows)
    assert found.texts == ("body",)
    assert 'say `text="COLUMN"` for another one' in found.doubts[0]
    certain = look(["subject", "body", "team"], rows, text=["subject"])
    assert (certain.texts, certain.doubts) == (("subject",), ())
    both = look(["subject", "body", "team"], rows, text=["subject", 2])
    assert both.texts == ("subject", "body")


@pytest.mark.parametrize("by", ["; ", "|", ", "])
def test_tags_between_separators(look: Any, by: str) -> None:
    cells = ["cold", by.join(TAGS[:2]), by.join(TAGS), "late", ""]
    found = look(["text", "tags"], [[text(row), cells[row % 5]] for row in range(40)])
    assert (found.kind, found.separator, found.names) == ("multi-label", by.strip(), TAGS)
    assert (found.rows, found.left_out) == (40, 0)
    assert found.counts == {"cold": 24, "dry": 16, "late": 16}
    assert "3 labels, any number per row (cold 60%" in found.sentences()[0]
    assert 'say `kind="classes"`' in found.doubts[0]


def test_tags_as_json_lists(look: Any, tmp_path: Path) -> None:
    lists = [["cold"], ["cold", "dry"], [], ["late"]]
    rows = [[text(row), json.dumps(lists[row % 4])] for row in range(40)]
    found = look(["text", "tags"], rows)
    assert (found.kind, found.separator, found.names) == ("multi-label", None, TAGS)
    assert found.rows == 40
    lines = [json.dumps({"text": text(row), "tags": lists[row % 4]}) for row in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), "utf-8")
    found = look_at(tmp_path / "rows.jsonl")
    assert (found.kind, found.names, found.rows) == ("multi-label", TAGS, 40)


@pytest.mark.parametrize("form", ["; ", "list"])
def test_few_rows_with_many_sets_of_tags(look: Any, form: str) -> None:
    names = ["cold meal", "dry bread", "late courier", "rude staff"]
    sets = [[name for place, name in enumerate(names) if row >> place & 1] for row in range(1, 16)]
    rows = [
        [text(row), json.dumps(tags) if form == "list" else form.join(tags)]
        for row, tags in enumerate(sets * 2)
    ]
    found = look(["text", "what"], rows)
    assert (found.texts, found.label, found.kind) == (("text",), "what", "multi-label")
    assert found.names == names


def test_commas_in_texts_do_not_make_tags(look: Any) -> None:
    rows = [[f"Dear team, {text(row)}, thanks", TEAMS[row % 3]] for row in range(30)]
    found = look(["mail", "desk"], rows)
    assert (found.texts, found.label) == (("mail",), "desk")


def test_commas_in_single_classes_do_not_make_tags(look: Any) -> None:
    names = ["Berlin, Germany", "Paris, France", "Rome, Italy"]
    found = look(["text", "place"], [[text(row), names[row % 3]] for row in range(30)])
    assert (found.kind, found.names) == ("classes", names)


def test_kind_overrides_the_guess(look: Any) -> None:
    cells = ["cold;dry", "cold", "dry;late"]
    rows = [[text(row), cells[row % 3]] for row in range(30)]
    found = look(["text", "tags"], rows, kind="classes")
    assert (found.kind, found.names) == ("classes", sorted(cells))
    assert found.separator is None
    rows = [[text(row), 1 + row % 3] for row in range(30)]
    graded = look(["text", "level"], rows, kind="grades")
    assert (graded.kind, graded.range, graded.names) == ("grades", (1.0, 3.0), [])
    assert graded.doubts == ()


@pytest.mark.parametrize(
    ("values", "kind", "doubtful"),
    [
        ([0.5, 1.0, 2.25, 4.75], "grades", False),
        (range(1, 11), "grades", True),
        (range(1, 6), "classes", True),
        ([0, 1], "classes", False),
        ([-1, 1], "classes", False),
        ([1, 2, 3], "classes", True),
    ],
)
def test_numbers_are_classes_or_grades(
    look: Any, values: Sequence[float], kind: str, doubtful: bool
) -> None:
    values = list(values)
    rows = [[text(row), values[row % len(values)]] for row in range(60)]
    found = look(["text", "level"], rows)
    assert found.kind == kind
    assert bool(found.doubts) == doubtful
    if kind == "grades":
        assert found.range == (min(values), max(values))
        assert f"grades from {min(values):g} to {max(values):g}" in found.sentences()[0]
    else:
        assert found.names == [str(value) for value in sorted(values)]
    if doubtful:
        other = "classes" if kind == "grades" else "grades"
        assert f'say `kind="{other}"`' in found.doubts[0]


def test_stars_are_grades_by_their_name(look: Any) -> None:
    rows = [[text(row), 1 + row % 5] for row in range(30)]
    assert look(["review", "stars"], rows).kind == "grades"
    assert look(["review", "class"], rows).kind == "classes"


def test_spellings_of_one_number_are_one_class(look: Any) -> None:
    cells = ["0", "1", "1.0", "0.0"]
    found = look(["text", "label"], [[text(row), cells[row % 4]] for row in range(40)])
    assert (found.kind, found.names) == ("classes", ["0", "1"])
    assert found.counts == {"0": 20, "1": 20}


def test_classes_are_in_the_order_that_recipes_find(look: Any, tmp_path: Path) -> None:
    names = ["10", "9", "b", "C", "a"]
    found = look(["text", "label"], [[text(row), names[row % 5]] for row in range(40)])
    task = TaskSpec.model_validate(
        {
            "data": {"train": "rows.csv", "texts": "text", "label": "label"},
            "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
        }
    )
    assert found.names == found_labels(task, tmp_path)


def test_ids_and_numbers_are_not_texts_or_labels(look: Any) -> None:
    rows = [[f"T-{row:05}", row * 7, text(row), TEAMS[row % 3]] for row in range(40)]
    found = look(["ticket", "ms", "body", "queue"], rows)
    assert (found.texts, found.label, found.doubts) == (("body",), "queue", ())
    found = look(["customer_id", "created", "body", "sort"], [[row % 4, *rest] for row, (_, *rest)
                 in enumerate(rows)])  # fmt: skip
    assert (found.texts, found.label) == (("body",), "sort")


def test_several_columns_that_recur_are_a_doubt(look: Any) -> None:
    rows = [[text(row), "web" if row % 2 else "phone", TEAMS[row % 3]] for row in range(30)]
    found = look(["body", "channel", "desk"], rows)
    assert found.label == "channel"
    assert found.doubts[0] == (
        'the label is `channel`, but it could be `desk`: say `label="COLUMN"`.'
    )
    chosen = look(["body", "channel", "desk"], rows, label="desk")
    assert (chosen.label, chosen.names, chosen.doubts) == ("desk", TEAMS, ())
    assert look(["body", "channel", "desk"], rows, label=3).names == TEAMS


def test_a_flag_is_the_label(look: Any) -> None:
    rows = [[text(row), row % 4, row % 2] for row in range(30)]
    found = look(["body", "hour", "is_spam"], rows)
    assert (found.label, found.names, found.kind) == ("is_spam", ["0", "1"], "classes")


def test_parquet_with_booleans_and_missing_values(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "text": [text(row) for row in range(20)],
            "label": [None if row == 3 else row % 2 == 0 for row in range(20)],
        }
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    found = look_at(tmp_path / "rows.parquet")
    assert (found.kind, found.rows, found.left_out) == ("classes", 19, 1)
    assert len(found.names) == 2


GOOD = [[text(row), TEAMS[row % 3]] for row in range(9)]


@pytest.mark.parametrize(
    ("header", "rows", "given", "message"),
    [
        (["text", "team"], [[text(row), "it"] for row in range(9)], {"label": "team"},
         r"column `team` has only one label, 'it'; a task needs two or more"),
        (["text", "other"], [[text(row), text(row + 50)] for row in range(9)], {},
         r"no column looks like a label.*its columns are `text`, `other`; name one with `label`"),
        (["n", "team"], [[row, TEAMS[row % 3]] for row in range(9)], {},
         r"no column looks like a text; its columns are `n`, `team`; name one with `text`"),
        (["text", "team"], GOOD, {"label": "tema"}, r"no column `tema`.*team"),
        (["text", "team"], GOOD, {"text": ["body"]}, r"no column `body`"),
        (["text", "team"], GOOD, {"kind": "grades"},
         r"column `team` holds 'billing team', which is not a grade"),
        (["text", "level"], [[text(row), 3] for row in range(9)],
         {"kind": "grades", "label": "level"}, r"column `level` has no two different grades"),
        (["text", "team", "team"], [[*row, row[1]] for row in GOOD], {"label": "team"},
         r"two columns are called `team`"),
        (["text", "team"], [], {}, r"rows.csv.*no rows"),
        (["text", "team"], [[text(1), ""], ["", "it"]], {"label": "team", "text": ["text"]},
         r"no row has both a text and a label"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_told(
    look: Any, header: Any, rows: Any, given: Any, message: str
) -> None:
    with pytest.raises(TercetError, match=message):
        look(header, rows, **given)


@pytest.mark.parametrize("odd", ["nan", "-inf", "1e999"])
def test_the_range_is_that_of_the_finite_grades(look: Any, odd: str) -> None:
    """Reading the rows then names the line of the other one."""
    rows = [[text(row), odd if row == 0 else 1 + row % 3] for row in range(9)]
    assert look(["text", "level"], rows, kind="grades", label="level").range == (1.0, 3.0)


def test_errors_about_columns_name_the_option(look: Any) -> None:
    with pytest.raises(ArgumentError) as error:
        look(["n", "team"], [[row, TEAMS[row % 3]] for row in range(9)])
    assert error.value.arguments == ("text",)


def test_a_name_of_very_many_digits_is_not_a_number(tmp_path: Path) -> None:
    digits = "9" * 5000
    lines = [json.dumps({digits: text(row), "team": TEAMS[row % 3]}) for row in range(9)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), "utf-8")
    assert look_at(tmp_path / "rows.jsonl").texts == (digits,)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match=r"absent\.csv"):
        look_at(tmp_path / "absent.csv")


def test_a_header_with_one_name_twice_is_told(look: Any) -> None:
    rows = [[text(row), TEAMS[row % 3], TEAMS[row % 2]] for row in range(12)]
    with pytest.raises(TercetError, match="two columns are called `label`; rename one of them"):
        look(["text", "label", "label"], rows)


def test_empty_columns_without_names_do_no_harm(look: Any) -> None:
    rows = [[text(row), TEAMS[row % 3], "", ""] for row in range(30)]
    found = look(["text", "label", "", ""], rows)
    assert (found.texts, found.label, found.rows) == (("text",), "label", 30)


def test_a_text_column_without_a_name_is_told(look: Any) -> None:
    rows = [[TEAMS[row % 3], text(row)] for row in range(30)]
    with pytest.raises(TercetError, match="column 2 has no name; give it one in the first line"):
        look(["label", ""], rows)


@pytest.mark.parametrize("grades", [(-1e308, 1e308), (0.0, 5e-324), (1e6, 1e6 + 0.01)])
def test_grades_that_single_precision_does_not_tell_apart_are_told(look: Any, grades: Any) -> None:
    rows = [[text(row), repr(grades[row % 2])] for row in range(30)]
    with pytest.raises(TercetError, match=r"column `score` has grades from .* on another scale"):
        look(["text", "score"], rows, kind="grades")


def test_infinite_grades_are_no_ends_of_a_range(look: Any) -> None:
    grades = ["1e400", "nan", "0", "2.5", "5"]
    found = look(
        ["text", "score"], [[text(row), grades[row % 5]] for row in range(30)], kind="grades"
    )
    assert found.range == (0.0, 5.0)


@pytest.mark.parametrize("cell", ["@" * 60_000 + " b", "1" * 60_000 + " b", ";" * 60_000 + "b"])
def test_a_long_cell_is_looked_at_in_linear_time(look: Any, cell: str) -> None:
    """One that is not an address took a time that grew with the square of its length: 30 s."""
    began = time.process_time()
    found = look(
        ["note", "label"], [[f"{cell}{row}", TEAMS[row % 2]] for row in range(30)], text=["note"]
    )
    assert found.rows == 30
    assert time.process_time() - began < 5.0
