from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tercet.data.delimited import OPEN, Reading
from tercet.data.profiles import read_profiles
from tercet.data.readers import column_names
from tercet.data.records import Records
from tercet.data.stream import TextFile
from tercet.errors import TercetError


def write(path: Path, content: str) -> Path:
    path.write_text(content, "utf-8")
    return path


def rows(file: TextFile, size: int = 2, start: int = 0) -> list[dict[str, object]]:
    batches = list(file.batches(size, start=start))
    assert all(batch.schema == file.columns for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_plain_text_is_numbered_by_its_lines(tmp_path: Path) -> None:
    file = TextFile.open(write(tmp_path / "a.txt", "one\n\n three \n\n"))
    assert (file.rows, file.columns.names) == (3, ["id", "text"])
    assert rows(file) == [
        {"id": "1", "text": "one"},
        {"id": "2", "text": ""},
        {"id": "3", "text": "three"},
    ]
    assert rows(file, size=5, start=2) == [{"id": "3", "text": "three"}]


def test_cells_are_typed_by_all_that_stands_in_their_column(tmp_path: Path) -> None:
    content = (
        "id,question,price,code,rate,note\n"
        "a,first,3,007,1,x\n"
        "b,second,,12,2.5,\n"
        "c,third,-4,13,1e3,7\n"
    )
    file = TextFile.open(write(tmp_path / "a.csv", content), "question")
    kinds = {field.name: str(field.type) for field in file.columns}
    assert kinds == {
        "id": "string",
        "text": "string",
        "price": "int64",
        "code": "string",
        "rate": "double",
        "note": "string",
    }
    found = rows(file)
    assert [row["price"] for row in found] == [3, None, -4]
    assert [row["code"] for row in found] == ["007", "12", "13"]
    assert [row["rate"] for row in found] == [1.0, 2.5, 1000.0]
    assert [row["note"] for row in found] == ["x", None, "7"]


def test_json_keeps_its_types_and_nests_as_json(tmp_path: Path) -> None:
    lines = [
        {"key": 7, "text": "one", "ok": True, "n": 1, "mixed": 1},
        {"key": 8, "text": None, "tags": ["a", "b"], "n": 2.5, "mixed": "x", "big": 2**70},
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    file = TextFile.open(path, id_column="key")
    assert rows(file) == [
        {"id": "7", "text": "one", "ok": True, "n": 1.0, "mixed": "1", "tags": None, "big": None},
        {
            "id": "8",
            "text": "",
            "ok": None,
            "n": 2.5,
            "mixed": "x",
            "tags": '["a", "b"]',
            "big": str(2**70),
        },
    ]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table(
        {"sentence": ["one ", None, "three"], "when": pa.array([1, 2, 3], pa.date32())}
    )
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    file = TextFile.open(tmp_path / "a.parquet")
    assert file.columns.field("when").type == pa.date32()
    assert [row["text"] for row in rows(file)] == ["one", "", "three"]
    for start in range(4):
        assert [row["id"] for row in rows(file, start=start)] == ["1", "2", "3"][start:]


def test_batches_are_full_whatever_the_row_groups(tmp_path: Path) -> None:
    table = pa.table({"text": [f"text {n}" for n in range(1, 24)]})
    pa.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    file = TextFile.open(tmp_path / "a.parquet")
    for size in (1, 4, 7, 30):
        for start in (0, 3, 5, 11, 22, 23):
            batches = list(file.batches(size, start=start))
            assert all(len(batch) == size for batch in batches[:-1])
            found = [row for batch in batches for row in batch.to_pylist()]
            wanted = [{"id": str(n), "text": f"text {n}"} for n in range(start + 1, 24)]
            assert found == wanted


def test_compressed_is_the_same(tmp_path: Path) -> None:
    plain = TextFile.open(write(tmp_path / "a.txt", "one\ntwo\n"))
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert rows(TextFile.open(tmp_path / "b.txt.gz")) == rows(plain)


def test_columns_without_names_are_numbered(tmp_path: Path) -> None:
    file = TextFile.open(write(tmp_path / "a.tsv", "x y\t1\nz w\t2\n"), 1)
    assert rows(file)[1] == {"id": "2", "text": "z w", "column_2": 2}


def test_the_digest_tells_content_and_choice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,text,other\n1,one,x\n")
    first = TextFile.open(path)
    assert first.digest == TextFile.open(path).digest
    path.write_text("id,text,other\n1,one,y\n", "utf-8")
    assert first.digest != TextFile.open(path).digest


@pytest.mark.parametrize(
    ("name", "content", "chosen", "message"),
    [
        ("a.txt", "", {}, "is empty"),
        ("a.csv", "id,text\n", {}, "contains no rows"),
        (
            "a.csv",
            "id,text\n1,one\n2,two\n1,three\n",
            {},
            "line 4: id '1' is already on line 2",
        ),
        ("a.csv", "id,text\n1,one\n,two\n", {}, "line 3: no id in column `id`"),
        ("a.csv", "id,text,vector\n1,one,x\n", {}, "column name 'vector'"),
        ("a.csv", "id,text,key\n1,one,x\n", {"id_column": "key"}, "column name 'id'"),
        ("a.csv", "text,x,x\none,1,2\n", {"column": "text"}, "two columns are called `x`"),
        ("a.csv", "id,text\n1,one\n", {"column": "txt"}, "did you mean `text`"),
        ("a.csv", "id,text\n1,one\n", {"id_column": "key"}, "no column `key`"),
        ("a.csv", "id,text\n1,one\n", {"column": "9" * 5000}, "no column `999"),
        ("a.tsv", "sentence1\tsentence2\nx\ty\n", {}, "one text column needed"),
        ("a.jsonl", '{"id": 1, "text": "x"}\n{"id": 1, "text": "y"}\n', {}, "line 2: id '1'"),
        ("a.jsonl", '{"text": "x"}\n[]\n', {}, "line 2"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, name: str, content: str, chosen, message: str) -> None:
    with pytest.raises(TercetError, match=message.replace("(", r"\(")) as error:
        TextFile.open(write(tmp_path / name, content), **chosen)
    assert name in str(error.value)


def test_duplicate_ids_in_parquet_are_named_by_their_rows(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([3, 4, 3], pa.date32()), "text": ["x", "y", "z"]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(TercetError, match="row 3: id '1970-01-04' is already on row 1"):
        TextFile.open(tmp_path / "a.parquet")


NAMED = Reading(header=True)


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A file with 100,001 columns."""
    names = [f"c{number}" for number in range(99_999)]
    cells = ["text", "label", *names], *((f"film {n}", "ab"[n % 2], *"1" * 99_999) for n in (1, 2))
    return write(tmp_path / "wide.csv", "\n".join(map(",".join, cells)) + "\n")


def test_many_columns_are_read_in_linear_time(wide: Path) -> None:
    began = time.monotonic()
    (batch,) = TextFile.open(wide).batches()
    assert batch.num_columns == 100_002
    profiles = read_profiles(wide, column_names(wide), OPEN)
    assert len(profiles.columns) == 100_001
    assert time.monotonic() - began < 30  # in quadratic time it takes minutes


def test_two_of_many_columns_with_one_name_are_named_in_linear_time(wide: Path) -> None:
    wide.write_text(wide.read_text("utf-8").replace(",c99998\n", ",c99997\n"), "utf-8")
    began = time.monotonic()
    for read in (
        lambda: TextFile.open(wide, "text"),
        lambda: read_profiles(wide, column_names(wide, NAMED), NAMED),
        lambda: Records.open(wide, NAMED),
    ):
        with pytest.raises(TercetError, match="two columns are called `c99997`"):
            read()
    assert time.monotonic() - began < 30  # in quadratic time it takes minutes


def test_views_are_read_as_plain_text(tmp_path: Path) -> None:
    """Neither Arrow nor Lance can pick rows of views."""
    path = tmp_path / "a.parquet"
    columns = {"text": ["a", "b"], "lang": ["en", None]}
    views = {name: pa.array(values, pa.string_view()) for name, values in columns.items()}
    pa.parquet.write_table(pa.table(views), path)
    file = TextFile.open(path)
    (batch,) = file.batches()
    assert batch.schema == file.columns
    assert file.columns.field("lang").type == pa.string()
    assert batch.take(pa.array([0])).column("lang").to_pylist() == ["en"]
