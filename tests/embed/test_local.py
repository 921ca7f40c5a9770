"""Embedding a file here: every row, in order, and never twice."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tercet.embed import staged
from tercet.embed.local import embed_file
from tercet.embed.output import write_vectors
from tercet.embed.schema import Identity, vector_array
from tercet.errors import TercetError
from tercet.model import Model

ROWS = 100
COLUMNS = {
    "id": [f"r{number}" for number in range(ROWS)],
    # One row has no text: it is embedded all the same, so that rows in are rows out.
    "text": ["" if number == 7 else f"a quiet film number {number}" for number in range(ROWS)],
    "price": list(range(ROWS)),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    return path


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged, "PART", 30)


class Counting:
    """A model that notes what it embeds, and may be stopped before so many calls."""

    def __init__(self, model: Model, stop: int | None = None) -> None:
        self.model, self.stop = model, stop
        self.texts: list[str] = []
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def embed(self, texts: list[str], **more: Any) -> Any:
        if self.calls == self.stop:
            raise KeyboardInterrupt
        self.calls += 1
        self.texts += texts
        return self.model.embed(texts, **more)


def embed(file: Path, out: Path, model: Any, **more: Any) -> int:
    return embed_file(str(file), str(out), model=model, **more)


def test_parquet_keeps_rows_order_and_columns(file: Path, plain_model: Model) -> None:
    out = file.with_name("vectors.parquet")
    assert embed(file, out, plain_model) == ROWS
    table = pq.read_table(out)
    assert table.drop(["vector"]).to_pydict() == COLUMNS
    vectors = np.stack(table.column("vector").to_numpy())
    np.testing.assert_allclose(vectors, plain_model.embed(COLUMNS["text"]), atol=1e-6)
    stored = table.schema.metadata
    assert stored[b"tercet.model.hash"].decode() == Identity.of(plain_model).hash
    assert {path.name for path in file.parent.iterdir()} == {file.name, out.name}


def test_npy_holds_the_vectors_alone(file: Path, plain_model: Model) -> None:
    out = file.with_name("vectors.npy")
    embed(file, out, plain_model)
    vectors = np.load(out, allow_pickle=False)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, plain_model.embed(COLUMNS["text"]), atol=1e-6)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    batch = pa.record_batch({"vector": vector_array(np.zeros((1000, 256), np.float32))})
    held: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(40):
            held.append(pa.total_allocated_bytes())
            yield batch

    out = str(tmp_path / "vectors.parquet")
    write_vectors(batches(), batch.schema, rows=40_000, out=out)
    assert max(held) - min(held) < 5 * batch.nbytes


@pytest.mark.parametrize("name", ["vectors.parquet", "vectors.npy"])
def test_a_file_with_rows_missing_is_never_left(tmp_path: Path, name: str) -> None:
    batch = pa.record_batch({"vector": vector_array(np.zeros((3, 4), np.float32))})
    with pytest.raises(TercetError, match="3 rows were embedded instead of 5"):
        write_vectors([batch], batch.schema, rows=5, out=str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_finished_parts_are_not_embedded_again(file: Path, plain_model: Model) -> None:
    out = file.with_name("vectors.parquet")
    with pytest.raises(KeyboardInterrupt):
        embed(file, out, Counting(plain_model, stop=2))
    assert not out.exists()
    model = Counting(plain_model)
    embed(file, out, model)
    assert model.texts == COLUMNS["text"][60:]
    assert pq.read_table(out).column("id").to_pylist() == COLUMNS["id"]


def test_another_model_begins_anew(file: Path, plain_model: Model, other_model: Model) -> None:
    out = file.with_name("vectors.npy")
    with pytest.raises(KeyboardInterrupt):
        embed(file, out, Counting(plain_model, stop=2))
    embed(file, out, other_model)
    np.testing.assert_allclose(np.load(out), other_model.embed(COLUMNS["text"]), atol=1e-6)


def test_two_that_write_one_output_take_turns(
    file: Path, plain_model: Model, other_model: Model
) -> None:
    out = file.with_name("vectors.npy")
    second = threading.Thread(target=embed, args=(file, out, other_model))

    class Overtaken(Counting):
        def embed(self, texts: list[str], **more: Any) -> Any:
            if self.calls == 1:
                second.start()
                second.join(1)  # time enough to take the work folder
            return super().embed(texts, **more)

    assert embed(file, out, Overtaken(plain_model)) == ROWS
    second.join()
    np.testing.assert_allclose(np.load(out), other_model.embed(COLUMNS["text"]), atol=1e-6)
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, out.name]


def test_a_truncated_part_is_embedded_again(file: Path, plain_model: Model) -> None:
    out = file.with_name("vectors.npy")
    with pytest.raises(KeyboardInterrupt):
        embed(file, out, Counting(plain_model, stop=3))
    part = sorted(file.parent.rglob("part-*"))[1]
    part.write_bytes(part.read_bytes()[:200])
    model = Counting(plain_model)
    embed(file, out, model)
    assert model.texts[:30] == COLUMNS["text"][30:60]
    np.testing.assert_allclose(np.load(out), plain_model.embed(COLUMNS["text"]), atol=1e-6)


def test_progress_counts_all_rows(file: Path, plain_model: Model) -> None:
    result: list[tuple[int, int]] = []
    out = file.with_name("vectors.npy")
    embed(file, out, plain_model, progress=lambda *found: result.append(found))
    assert result[-1] == (ROWS, ROWS)
    assert result == sorted(result)


def test_an_old_output_stays_until_the_new_one_is_whole(file: Path, plain_model: Model) -> None:
    out = file.with_name("vectors.npy")
    out.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        embed(file, out, Counting(plain_model, stop=2))
    assert out.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("source", "out", "column", "message"),
    [
        ("absent.csv", "v.npy", None, "absent.csv: no such file"),
        ("empty.csv", "v.npy", None, "empty.csv: is empty"),
        ("rows.parquet", "v.npy", "txt", "no column `txt`"),
        ("notes.docx", "v.npy", None, "unknown kind of file `.docx`"),
        ("rows.parquet", "v.csv", None, "v.csv: give FILE.parquet or FILE.npy"),
        ("rows.parquet", "no/v.npy", None, "its folder does not exist"),
        ("vectors.csv", "v.npy", None, "column name 'vector' is reserved"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    file: Path, plain_model: Model, source: str, out: str, column: str | None, message: str
) -> None:
    folder = file.parent
    (folder / "empty.csv").write_text("")
    (folder / "notes.docx").write_text("text")
    (folder / "vectors.csv").write_text("text,vector\na,1\n")
    before = sorted(folder.rglob("*"))
    with pytest.raises(TercetError, match=message.replace("(", r"\(")):
        embed(folder / source, folder / out, plain_model, column=column)
    assert sorted(folder.rglob("*")) == before


class Killed(BaseException):
    """A process that ends between two changes to the disk."""


@pytest.mark.parametrize("step", range(40))
def test_a_kill_between_two_changes_of_the_work_folder_leaves_it_usable(
    file: Path, plain_model: Model, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    left = step

    def counted(function: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return function(*arguments, **more)

        return call

    out = file.with_suffix(".npy")
    with monkeypatch.context() as patched, suppress(Killed):
        for name in ("replace", "unlink", "rmdir", "mkdir"):
            patched.setattr(os, name, counted(getattr(os, name)))
        # A killed process cleans nothing up; shutil has its own way to os.unlink.
        patched.setattr(shutil, "rmtree", lambda path, **_: removed(Path(path)))
        embed_file(str(file), str(out), model=plain_model)
    assert embed_file(str(file), str(out), model=plain_model) == ROWS
    assert not staged.work_folder(out).exists()


def removed(path: Path) -> None:
    """A folder removed entry by entry in the order of names, as a kill might find it."""
    for entry in sorted(path.iterdir()):
        removed(entry) if entry.is_dir() else entry.unlink()
    path.rmdir()
