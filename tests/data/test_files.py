"""Finding, opening and decoding files; everything broken is an error of one sentence."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest

from tercet.data.files import find_file, kind_of, read_lines
from tercet.errors import TercetError


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACK = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("suffix", PACK)
def test_a_missing_file_is_taken_compressed(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.txt{suffix}").write_bytes(PACK[suffix]("één\ntwo\n".encode()))
    path = find_file("a.txt", [tmp_path])
    assert path.name == f"a.txt{suffix}"
    assert list(read_lines(path)) == ["één\n", "two\n"]


def test_the_first_folder_wins_and_plain_wins_over_compressed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a.txt.gz", "deep/a.txt", "deep/a.txt.xz", "deep/b.txt", "deep/b.txt.gz"):
        (tmp_path / name).write_bytes(b"x")
    folders = [tmp_path, tmp_path / "deep"]
    assert find_file("a.txt", folders) == tmp_path / "a.txt.gz"
    assert find_file("b.txt", folders) == tmp_path / "deep" / "b.txt"


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(TercetError) as caught:
        find_file("a.csv", [tmp_path, tmp_path / "cs224n"])
    for part in ("a.csv", ".gz, .xz or .zst", str(tmp_path), str(tmp_path / "cs224n")):
        assert part in str(caught.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match="is a folder"):
        find_file(tmp_path)


def test_an_unknown_suffix_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match=r"`\.doc`; known are \.csv, \.tsv"):
        kind_of(tmp_path / "a.doc.gz")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (gzip.compress(b"x"), "gzip; give it the suffix .gz"),
        (lzma.compress(b"x"), "xz; give it the suffix .xz"),
        (zstd(b"x"), "zstd; give it the suffix .zst"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"PAR1rest", "suffix .parquet"),
        ("text".encode("utf-16"), "UTF-16"),
        (b"\x7fELF\x02\x00\x00", "binary file"),
        (b"good\nbad\x00\n", "line 2: contains a NUL byte"),
        (b"good\ncaf\xe9 au lait\n", "line 2: byte 0xe9 at place 4 is not UTF-8; save it"),
    ],
    # Compressed bytes hold the time, and names of tests must not change.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_text_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(TercetError) as caught:
        list(read_lines(path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("damage", ["not compressed at all", "cut short", "empty"])
def test_a_damaged_compressed_file_is_told(tmp_path: Path, suffix: str, damage: str) -> None:
    text = "\n".join(f"sentence {number**3}" for number in range(5000)).encode()
    whole = PACK[suffix](text)
    content = {"not compressed at all": text, "cut short": whole[:-20], "empty": b""}[damage]
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(content)
    with pytest.raises(TercetError, match=r"not a whole (gzip|xz|zstd) file|is empty"):
        list(read_lines(path))


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\ntwo")
    assert list(read_lines(path)) == ["one\n", "two"]


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match="no such file"):
        list(read_lines(tmp_path / "gone.txt"))
