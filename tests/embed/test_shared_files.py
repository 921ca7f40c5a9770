"""Files on disks and in stores: found in order, fetched, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.embed.shared_files import SharedFolder, fetched, find_files, replace_shared_file
from tercet.errors import TercetError


def test_a_folder_stands_for_its_files_of_rows_in_order(tmp_path: Path) -> None:
    for name in ("b.csv", "a/z.jsonl.gz", "a/c.parquet", "_done", "notes.md", ".hidden/x.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    wanted = [f"{tmp_path}/{name}" for name in ("a/c.parquet", "a/z.jsonl.gz", "b.csv")]
    assert find_files(str(tmp_path)) == wanted
    assert find_files(f"file://{tmp_path}") == [f"file://{name}" for name in wanted]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("{}/absent.csv", "no such file"),
        ("{}", "holds no file of rows"),
        ("file://{}/absent", "no such file or folder"),
        ("nope://bucket/key", "cannot be reached"),
    ],
)
def test_what_cannot_be_found_is_named(tmp_path: Path, where: str, message: str) -> None:
    with pytest.raises(TercetError, match=message):
        find_files(where.format(tmp_path))


def test_a_file_in_a_store_is_fetched_and_the_copy_removed(tmp_path: Path) -> None:
    (tmp_path / "rows.csv.gz").write_bytes(b"\x1f\x8b whatever")
    with fetched(f"file://{tmp_path}/rows.csv.gz") as copy:
        assert copy.name == "rows.csv.gz"
        assert copy.read_bytes() == b"\x1f\x8b whatever"
        assert copy.parent != tmp_path
    assert not copy.exists()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_what_is_half_written_never_shows(tmp_path: Path, scheme: str) -> None:
    out = tmp_path / "out.npy"
    out.write_bytes(b"old")

    def interrupt() -> None:
        with replace_shared_file(f"{scheme}{out}") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert [path.name for path in tmp_path.iterdir()] == ["out.npy"]
    assert out.read_bytes() == b"old"
    with replace_shared_file(f"{scheme}{out}") as stream:
        stream.write(b"whole")
    assert out.read_bytes() == b"whole"


def test_folders_tell_names_and_sums(tmp_path: Path) -> None:
    folder = SharedFolder.at(str(tmp_path)) / "deep/er"
    assert folder.names() == []
    written = folder.write("a", b"content")
    assert folder.names() == ["a"]
    assert folder.sha256("a") == written
    assert folder.sha256("b") is None
    folder.remove()
    assert not (tmp_path / "deep" / "er").exists()
