"""A corpus of many files: each row in one part, whoever reads it, however often."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.embed import ray_corpus
from tercet.embed.ray_corpus import FileCorpus, open_file
from tercet.embed.ray_records import PartRecord, PartRecords
from tercet.embed.shared_files import SharedFolder
from tercet.errors import TercetError

ROWS = {"a.csv": 23, "b/c.jsonl": 10, "b/d.parquet": 41}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "b").mkdir()
    texts = {name: [f"{name} text {n}" for n in range(rows)] for name, rows in ROWS.items()}
    (folder / "a.csv").write_text("text,price\n" + "".join(f"{t},1\n" for t in texts["a.csv"]))
    (folder / "b/c.jsonl").write_text(
        "".join(f'{{"text": "{t}", "price": 0.5}}\n' for t in texts["b/c.jsonl"])
    )
    pq.write_table(
        pa.table({"text": texts["b/d.parquet"]}), folder / "b/d.parquet", row_group_size=9
    )
    return [f"{folder}/a.csv", f"{folder}/b/c.jsonl", f"{folder}/b/d.parquet"]


def corpus_of(sources: list[str]) -> FileCorpus:
    files = [open_file(source, column=None, id_column=None) for source in sources]
    return FileCorpus.of(sources, files)


@given(data=st.data(), size=st.integers(1, 60), read=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_any_parts_can_be_read_alone(
    sources: list[str], data: st.DataObject, size: int, read: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_corpus, "SMALLEST", size)
        patch.setattr(ray_corpus, "PARTS_PER_SHARE", read)
        corpus = corpus_of([sources[0], sources[2]])
        counts = corpus.parts()
        wanted = data.draw(st.sets(st.integers(0, len(counts) - 1)))
        read_parts = [one for share in corpus.shares(wanted) for one in corpus.read(share)]
    assert sum(counts) == corpus.rows == ROWS["a.csv"] + ROWS["b/d.parquet"]
    assert [part for part, _ in read_parts] == sorted(wanted)
    texts = [f"{name} text {n}" for name in ("a.csv", "b/d.parquet") for n in range(ROWS[name])]
    starts = [sum(counts[:part]) for part in range(len(counts))]
    for part, batch in read_parts:
        expected = texts[starts[part] : starts[part] + counts[part]]
        assert batch.column("text").to_pylist() == expected


def test_columns_of_all_files_go_together(sources: list[str]) -> None:
    stored = [f"file://{source}" for source in sources]
    corpus = corpus_of([stored[0], stored[2], stored[1]])
    assert corpus.columns.names == ["id", "text", "price"]
    assert corpus.columns.field("price").type == pa.float64()
    batches = [batch for share in corpus.shares({0, 1, 2}) for _, batch in corpus.read(share)]
    assert all(batch.schema == corpus.columns for batch in batches)
    assert [len(batch) - batch.column("price").null_count for batch in batches] == [23, 0, 10]
    ids = [one for batch in batches for one in batch.column("id").to_pylist()]
    assert len(set(ids)) == corpus.rows
    assert ids[0].endswith("a.csv:1")


def test_columns_that_do_not_go_together_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,price\na,1\n")
    (tmp_path / "b.csv").write_text("text,price\nb,cheap\n")
    with pytest.raises(TercetError, match=r"b\.csv: its columns do not match those of .*a\.csv"):
        corpus_of([f"{tmp_path}/a.csv", f"{tmp_path}/b.csv"])


def test_a_mistake_in_a_fetched_file_names_where_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    source = f"file://{tmp_path}/a.csv"
    with pytest.raises(TercetError, match=source):
        open_file(source, column=None, id_column=None)


@pytest.fixture
def work(tmp_path: Path) -> PartRecords:
    folder = SharedFolder.at(str(tmp_path / "work"))
    made = PartRecords(folder, data=folder)
    made.open(corpus="x", model="y")
    return made


def test_a_part_counts_once_its_record_is_there(work: PartRecords) -> None:
    record = PartRecord(3, rows=5, skipped=1, files={"f": work.data.write("f", b"vectors")})
    assert not work.intact(3)
    work.finish(record)
    assert work.intact(3)
    assert work.record(3) == record
    assert work.recorded() == [3]


@pytest.mark.parametrize("damage", ["record", "file", "missing"])
def test_a_damaged_part_does_not_count(work: PartRecords, damage: str) -> None:
    work.finish(PartRecord(3, rows=5, skipped=1, files={"f": work.data.write("f", b"vectors")}))
    if damage == "record":
        work.folder.write("00000003.json", b'{"part": 3, "ro')
    elif damage == "file":
        work.data.write("f", b"vectorz")
    else:
        work.data.remove_file("f")
    assert not work.intact(3)


def test_records_of_other_work_are_dropped(work: PartRecords) -> None:
    work.finish(PartRecord(0, rows=1, skipped=0, files={}))
    assert not work.open(corpus="x", model="y")
    assert work.recorded() == [0]
    assert work.open(corpus="x", model="z")
    assert work.recorded() == []
