"""Rows come back as they were written, with the line that each began on."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.data import files, readers
from tercet.data.delimited import DELIMITERS, Reading
from tercet.data.readers import FileRow, column_names, read_rows
from tercet.data.stream import TextFile
from tercet.errors import TercetError
from tercet.specs import Delimiter

# A carriage return alone ends a line for some writers and not for others.
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
GRIDS = st.integers(2, 4).flatmap(
    lambda width: st.lists(
        st.tuples(st.integers(0, 9).map(str), *[CELLS] * (width - 1)), min_size=1, max_size=8
    )
)


def write(path: Path, content: bytes) -> Path:
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".xz":
        content = lzma.compress(content)
    elif path.suffix == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(content)
        content = sink.getvalue().to_pybytes()
    path.write_bytes(content)
    return path


def as_read(cells: tuple[str, ...]) -> tuple[str | None, ...]:
    return tuple(cell.strip() or None for cell in cells)


@settings(max_examples=60, deadline=None)
@given(
    grid=GRIDS,
    delimiter=st.sampled_from(list(DELIMITERS)),
    ending=st.sampled_from(["\n", "\r\n"]),
    header=st.booleans(),
    suffix=st.sampled_from(["", ".gz", ".xz", ".zst"]),
)
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    grid: list[tuple[str, ...]],
    delimiter: Delimiter,
    ending: str,
    header: bool,
    suffix: str,
) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=DELIMITERS[delimiter], lineterminator=ending)
    names = [f"name{index}" for index in range(len(grid[0]))]
    lines, written = [], 1
    for row in [names] * header + [list(row) for row in grid]:
        lines.append(written)
        writer.writerow(row)
        written = buffer.getvalue().count("\n") + 1
    path = tmp_path_factory.mktemp("csv") / f"a.csv{suffix}"
    write(path, buffer.getvalue().encode())
    reading = Reading(delimiter=delimiter, quoting=True, header=header)
    rows = list(read_rows(path, names if header else range(1, len(names) + 1), reading))
    assert [row.values for row in rows] == list(map(as_read, grid))
    assert [row.line for row in rows] == lines[header:]
    assert not any(row.problem for row in rows)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_json_lines_and_parquet_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, grid: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    objects = [{"a": a, "b": b, "n": 3} for a, b in grid]
    lines = "".join(json.dumps(one) + "\n" for one in objects)
    pq.write_table(pa.Table.from_pylist(objects), folder / "a.parquet")
    expected = [(number, (*as_read((b, a)), "3")) for number, (a, b) in enumerate(grid, 1)]
    for path in (write(folder / "a.jsonl.zst", lines.encode()), folder / "a.parquet"):
        assert [row[:2] for row in read_rows(path, ["b", "a", "n"])] == expected
        assert column_names(path) == ["a", "b", "n"]


def test_plain_text_is_one_sentence_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt.xz", b'one "quoted"\tstays\r\n\n  two \n\n \n')
    rows = list(read_rows(path, ["text"]))
    assert rows == [
        FileRow(1, ('one "quoted"\tstays',)),
        FileRow(2, (None,), blank=True),
        FileRow(3, ("two",)),
    ]


COURSE = (
    b'\tid\tsentence\tsentiment\n7\tab\t It \'s "odd" , \t3\n'
    b'8\tcd\t"two\nlines ""q"""\t0\n9\tef\tx\t1\n'
)
BARE = b'"Yes, he said\tNo "way"\tneutral\n"Quoted" start\tplain\tentailment\n'


def test_the_course_layout_is_found_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", COURSE)
    assert column_names(path) == ["", "id", "sentence", "sentiment"]
    rows = [(row.line, *row.values) for row in read_rows(path, ["sentence", "sentiment"])]
    assert rows == [(2, 'It \'s "odd" ,', "3"), (3, 'two\nlines "q"', "0"), (5, "x", "1")]


def test_files_without_header_and_quoting_are_found_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", BARE)
    assert column_names(path) == ["1", "2", "3"]
    rows = [row.values for row in read_rows(path, [1, "3"])]
    assert rows == [('"Yes, he said', "neutral"), ('"Quoted" start', "entailment")]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"text,label\nhello,1\n", ["text", "label"]),
        (b'remark,stars\n"fine, really",5\nbad,1\n', ["remark", "stars"]),
        (b"a b c,1\nd e f,2\n", ["1", "2"]),
        (b"words\nhello, world\nplain\n", ["1"]),
        (b"sentence\nhello, world\nplain\n", ["sentence"]),
        (b"sentence\tlabel\n1\thello\t0\n2\tworld\t1\n", ["", "sentence", "label"]),
        (b"sentence\tlabel\nhello\t0\t\nworld\t1\t\n", ["sentence", "label"]),
        (b"\n \ntext\tlabel\nx\t1\n", ["text", "label"]),
        (b"text,label,,\nhello,yes,,\nworld,no,,\n", ["text", "label", "3", "4"]),
        (b"text,label,label\nhello,yes,no\nworld,no,no\n", ["text", "label", "label"]),
    ],
)
def test_header_index_and_delimiter_are_found_out(
    tmp_path: Path, content: bytes, names: list[str]
) -> None:
    assert column_names(write(tmp_path / "a.csv", content)) == names


TICKETS = [
    ("My parcel, the blue one, never came", "delivery"),
    ("Charged twice; please refund", "billing"),
    ("Where is my refund | order 7", "billing"),
    ("The courier never came", "delivery"),
    ("Please close my account", "account"),
    ("I cannot change my address", "account"),
]


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_header_of_unknown_words_and_the_delimiter_are_found_out(
    tmp_path: Path, delimiter: Delimiter, ending: str
) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=DELIMITERS[delimiter], lineterminator=ending)
    writer.writerows([("subject", "team"), *TICKETS])
    path = write(tmp_path / "tickets.csv", buffer.getvalue().encode())
    assert column_names(path) == ["subject", "team"]
    rows = list(read_rows(path, [1, 2]))
    assert [row.values for row in rows] == TICKETS
    assert [row.line for row in rows] == [2, 3, 4, 5, 6, 7]


QUESTION = "Would you recommend our shop to your friends or colleagues?"


@pytest.mark.parametrize(
    ("head", "names"),
    [
        (["v1", "v2", "", ""], ["v1", "v2", "3", "4"]),
        (["Type d’avis", "Avis", "", ""], ["Type d’avis", "Avis", "3", "4"]),
        ([QUESTION, "Why?", "", ""], [QUESTION, "Why?", "3", "4"]),
    ],
)
def test_a_header_is_found_out_whose_cells_are_empty_or_questions(
    tmp_path: Path, head: list[str], names: list[str]
) -> None:
    buffer = io.StringIO()
    rows = [[["Yes", "No, never"][n % 2], TICKETS[n % 6][0], "", ""] for n in range(24)]
    csv.writer(buffer).writerows([head, *rows])
    path = write(tmp_path / "a.csv", buffer.getvalue().encode())
    assert column_names(path) == names
    assert [row.values for row in read_rows(path, [1, 2])] == [tuple(row[:2]) for row in rows]


def test_a_rare_class_in_the_first_row_is_not_taken_for_a_header(tmp_path: Path) -> None:
    rows = [["rare", "other", *["yes", "no"] * 12], ["17", *["3", "4"] * 12]]
    for classes in rows:
        lines = [f"{each}\t{TICKETS[n % 6][0]} {n}, and more\n" for n, each in enumerate(classes)]
        assert column_names(write(tmp_path / "a.tsv", "".join(lines).encode())) == ["1", "2"]


def test_rows_of_classes_are_not_taken_for_a_header(tmp_path: Path) -> None:
    lines = "".join(f"{text}\t{team}\n" for text, team in TICKETS)
    assert column_names(write(tmp_path / "a.tsv", lines.encode())) == ["1", "2"]
    pairs = "".join(f"Is it {n}?\tWhat is number {n * n}, then?\n" for n in range(9))
    assert column_names(write(tmp_path / "b.tsv", pairs.encode())) == ["1", "2"]


def test_lines_that_end_with_a_carriage_return_alone(tmp_path: Path) -> None:
    content = b'text,label\r"two\nlines, and ""more""",1\rplain,0'
    path = write(tmp_path / "a.csv", content)
    rows = [row.values for row in read_rows(path, ["text", "label"])]
    assert rows == [('two\nlines, and "more"', "1"), ("plain", "0")]


def test_lists_become_json_where_they_are_expected(tmp_path: Path) -> None:
    objects = [{"text": "a", "tags": ["x", "y z"]}, {"text": "b", "tags": []}]
    lines = "".join(json.dumps(one) + "\n" for one in objects)
    pq.write_table(pa.Table.from_pylist(objects), tmp_path / "a.parquet")
    for path in (write(tmp_path / "a.jsonl", lines.encode()), tmp_path / "a.parquet"):
        rows = [row.values for row in read_rows(path, ["text", "tags"], lists=["tags"])]
        assert rows == [("a", '["x", "y z"]'), ("b", "[]")]
        with pytest.raises(TercetError, match="column `tags` holds a list"):
            list(read_rows(path, ["text", "tags"]))


def test_the_recipe_overrules_what_would_be_found_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'text,label\n"a",1\n')
    reading = Reading(delimiter="comma", quoting=False, header=False)
    rows = [row.values for row in read_rows(path, [1, 2], reading)]
    assert rows == [("text", "label"), ('"a"', "1")]


def test_a_megabyte_on_one_line(tmp_path: Path) -> None:
    long = "word " * 250_000
    path = write(tmp_path / "a.csv", f'text\tlabel\n"{long}"\t1\nshort\t0\n'.encode())
    rows = [row.values for row in read_rows(path, ["text", "label"])]
    assert rows == [(long.strip(), "1"), ("short", "0")]


def test_rows_with_too_many_or_too_few_cells(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"text\tlabel\na\t1\nb\tc\t1\nd\ne\t1\t\n")
    rows = list(read_rows(path, ["text", "label"]))
    assert [row.problem for row in rows] == [
        None,
        "has 3 cells where 2 are expected",
        None,
        None,
    ]
    assert rows[2].values == ("d", None)


def test_a_row_without_the_wanted_values_at_the_end_is_still_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"id\ttext\tlabel\n1\tx\t1\n2\t\t\n\n")
    assert [row.line for row in read_rows(path, ["text", "label"])] == [2, 3]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.csv", b"text\tlabel\nx\t1\n", ["txt"], "no column `txt`; it has `text`, `label` (did"),
        ("a.csv", b"text\tlabel\nx\t1\n", [3], "no column 3; it has 2 columns, numbered from 1"),
        ("a.txt", b"x\n", ["sentence"], "no column `sentence`; it has `text`"),
        ("a.jsonl", b'{"text": "x"}\n', ["texts"], "no line has a key `texts`; keys are `text`"),
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', ["text"], "line 2: not valid JSON"),
        (
            "a.jsonl",
            b'{"text": "x"}\n{"text": "\\ud83d!"}\n',
            ["text"],
            "line 2: holds half of a surr",
        ),
        (
            "a.jsonl",
            b'{"text": "x", "\\uDC00": 1}\n',
            ["text"],
            "line 1: holds half of a surr",
        ),
        (
            "a.jsonl",
            b'{"text": "x"}\n{"text": "y", "n": ' + b"9" * 5000 + b"}\n",
            ["text"],
            "line 2: not valid JSON",
        ),
        ("a.jsonl", b'["x"]\n', ["text"], "line 1: not a JSON object"),
        ("a.jsonl", b'{"text": ["x"]}\n', ["text"], "line 1: column `text` holds a list"),
        ("a.parquet", b"PAR1 nonsense", ["text"], "not a whole Parquet file"),
        ("a.parquet.gz", b"PAR1 nonsense", ["text"], "not a whole Parquet file"),
        ("a.csv", b"text\tlabel\n", ["text"], "contains no rows"),
        ("a.csv", b"\n \n\n", ["text"], "only blank lines"),
        ("a.csv", b'text\tlabel\nx\t1\n"open\t0\ny\t1\n', ["text"], "line 3: broken quoting"),
        ("a.csv", b'text\tlabel\n"ab\t0\n"cd"\t1\n', ["text"], "line 2: broken quoting"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, name: str, content: bytes, columns: list[str | int], message: str
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(TercetError) as caught:
        list(read_rows(path, columns, Reading(quoting=True)))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl.gz", "a.txt.xz", "a.parquet.zst"])
def test_a_small_file_that_decompresses_to_any_number_of_bytes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(files, "MOST_LINE", 1000)
    monkeypatch.setattr(readers, "MOST_LINE", 1000)
    path = write(tmp_path / name, b"a" * 1001)
    with pytest.raises(TercetError, match=r"(line 1: is longer|has more) than 1,000 bytes"):
        list(read_rows(path, [1]))


@pytest.mark.parametrize(
    ("values", "kind"), [([2**62, 0], pa.timestamp("us")), ([2**31 - 1, 0], pa.date32())]
)
def test_times_that_python_has_no_value_for_stop_no_other_column(
    tmp_path: Path, values: list[int], kind: pa.DataType
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "when": pa.array(values, kind)}), path)
    rows = [row.values for row in read_rows(path, ["text", "when"], any_value=True)]
    assert [row[0] for row in rows] == ["a", "b"]
    assert all(row[1] for row in rows)


def test_times_of_no_known_zone_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    when = pa.array([1], pa.timestamp("us", tz="No/Zone"))
    pq.write_table(pa.table({"text": ["a"], "when": when}), path)
    with pytest.raises(TercetError, match=r"column `when` holds timestamp.*cannot be read"):
        list(read_rows(path, ["text", "when"], any_value=True))


def test_a_text_in_parquet_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    text = pa.array([b"x", b"\xe6!"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": text}), path)
    message = "not a whole Parquet file .*UTF8"
    with pytest.raises(TercetError, match=message):
        list(read_rows(path, ["text"], Reading()))
    with pytest.raises(TercetError, match=message):
        list(TextFile.open(path).batches())


def test_a_parquet_file_broken_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"{n * n}" for n in range(5000)]})
    pq.write_table(table, path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(TercetError, match=r"not a whole (Parquet|plain) file"):
        list(read_rows(path, ["text"]))


def test_typed_labels_read_as_a_csv_file_would_hold_them(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [True, None], "b": [2.0, 0.5], "c": [7, None]}), path)
    assert [row.values for row in read_rows(path, ["a", "b", "c"])] == [
        ("1", "2", "7"),
        (None, "0.5", None),
    ]
