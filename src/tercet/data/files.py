"""Finding and opening data files: plain or compressed, decoded line by line."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal, cast

from tercet.errors import TercetError

Kind = Literal["delimited", "json-lines", "parquet", "text"]

COMPRESSED = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
KINDS: dict[str, Kind] = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".jsonl": "json-lines",
    ".ndjson": "json-lines",
    ".parquet": "parquet",
    ".txt": "text",
}
_MAGIC = {
    b"\x1f\x8b": "is compressed with gzip; give it the suffix .gz",
    b"\xfd7zXZ\0": "is compressed with xz; give it the suffix .xz",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; give it the suffix .zst",
    b"PK\x03\x04": "is a zip archive; unpack it first",
    b"PAR1": "is a Parquet file; give it the suffix .parquet",
    b"\xff\xfe": "is UTF-16; save it from the spreadsheet as CSV in UTF-8, or convert it",
    b"\xfe\xff": "is UTF-16; save it from the spreadsheet as CSV in UTF-8, or convert it",
}
_OTHERS = {
    ".json": "for JSON, one object per line in a file with the suffix .jsonl is read",
    ".xlsx": "save it from the spreadsheet as CSV in UTF-8",
    ".xls": "save it from the spreadsheet as CSV in UTF-8",
    ".ods": "save it from the spreadsheet as CSV in UTF-8",
    ".zip": "unpack an archive first",
}
"""What to do with files of other kinds that people have."""
MOST_LINE = 2**28
"""Bytes of a line, and of a compressed Parquet file when it is decompressed: a small file may claim
to hold any number of them."""
_BROKEN = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


class MissingFileError(TercetError):
    """A data file does not exist; `file` is its name."""

    def __init__(self, file: str | Path, looked: Sequence[Path]) -> None:
        self.file = str(file)
        parents = ((folder / file).parent for folder in looked)
        here = "the current folder"
        places = dict.fromkeys(here if parent == Path() else str(parent) for parent in parents)
        super().__init__(
            f"{file}: no such file, plain or with .gz, .xz or .zst; looked in "
            f"{' and '.join(places)}."
        )


def find_file(name: str | Path, folders: Sequence[Path] = (Path(),)) -> Path:
    """The file of that name, plain or compressed, in the first folder that has it."""
    for folder in folders:
        for suffix in ("", *COMPRESSED):
            path = folder / f"{name}{suffix}"
            if path.is_dir():
                raise TercetError(f"{path}: is a folder; name a file in it.")
            if path.exists():
                return path
    raise MissingFileError(name, folders)


def bare_name(path: Path) -> str:
    """The file's name without the suffix of a compression."""
    return path.stem if path.suffix in COMPRESSED else path.name


def suffix_of(path: Path) -> str:
    """The lower-case suffix of the content, without that of a compression."""
    return Path(bare_name(path)).suffix.lower()


def kind_of(path: Path) -> Kind:
    """The kind of a file, by its suffix."""
    suffix = suffix_of(path)
    if suffix not in KINDS:
        known = ", ".join(KINDS)
        raise TercetError(
            f"{path}: unknown kind of file `{suffix}`; known are {known}, plain or compressed "
            f"({', '.join(COMPRESSED)}){f'; {_OTHERS[suffix]}' if suffix in _OTHERS else ''}."
        )
    return KINDS[suffix]


def unit_of(path: Path) -> str:
    """What row numbers count in this file."""
    return "row" if kind_of(path) == "parquet" else "line"


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The decompressed bytes of a file; every failure is a TercetError."""
    try:
        with _open(path) as file:
            yield file
    except _BROKEN as error:
        raise _damaged(path, error) from error
    except FileNotFoundError as error:
        raise TercetError(f"{path}: no such file.") from error
    except IsADirectoryError as error:
        raise TercetError(f"{path}: is a folder; name a file in it.") from error
    except OSError as error:
        if error.errno is None:  # Arrow's errors about damaged zstd have no number
            raise _damaged(path, error) from error
        raise TercetError(f"{path}: cannot be read: {error.strerror}.") from error


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if path.suffix == ".zst":
        import pyarrow as pa  # slow to import, and needed for few files

        # Arrow, unlike zstandard, notices when a stream was cut short.
        stream = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
        return cast(BinaryIO, io.BufferedReader(stream))
    return path.open("rb")


def _damaged(path: Path, error: Exception) -> TercetError:
    name = COMPRESSED.get(path.suffix, "plain")
    return TercetError(f"{path}: is not a whole {name} file ({str(error).rstrip('.')}).")


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file with their endings; a byte order mark is dropped."""
    empty = True
    with open_bytes(path) as file:
        for number, raw in enumerate(iter(partial(file.readline, MOST_LINE + 1), b""), 1):
            if len(raw) > MOST_LINE:
                raise TercetError(f"{path} line {number}: is longer than {MOST_LINE:,} bytes.")
            if number == 1:
                _refuse_binary(raw, path)
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            empty = False
            yield _decode(raw, path, number)
    if empty:
        raise TercetError(f"{path}: is empty.")


def _refuse_binary(raw: bytes, path: Path) -> None:
    for magic, problem in _MAGIC.items():
        if raw.startswith(magic):
            raise TercetError(f"{path}: {problem}.")
    if b"\0" in raw:
        raise TercetError(f"{path}: is a binary file, not text (NUL byte on line 1).")


def _decode(raw: bytes, path: Path, number: int) -> str:
    if b"\0" in raw:
        raise TercetError(
            f"{path} line {number}: contains a NUL byte; the file is damaged or binary."
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TercetError(
            f"{path} line {number}: byte 0x{raw[error.start]:02x} at place {error.start + 1} is "
            "not UTF-8; save it from the spreadsheet as CSV in UTF-8, or convert it, one from "
            "Windows for example with `iconv -f windows-1252 -t utf-8 OLD > NEW`."
        ) from error
