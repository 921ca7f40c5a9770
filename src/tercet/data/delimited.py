"""TSV and CSV files; settings that are not given are detected from the first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median

from tercet.data.columns import NAMES
from tercet.data.files import read_lines, suffix_of
from tercet.errors import TercetError
from tercet.specs import Delimiter

SAMPLE_LINES, SAMPLE_CHARACTERS = 1000, 1_000_000
# One long line exceeds the default of 128 KB; C's long may have no more than 32 bits.
FIELD_LIMIT = 2**31 - 1
# In the order in which they are preferred where several fit equally.
DELIMITERS: dict[Delimiter, str] = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
NAME_LENGTH, NAME_WORDS = 40, 3  # of column names, at most
LEAST_ROWS = 4  # below a header that only its words give away
ROWS_PER_CLASS = 10  # on average, that tell any header from them

_NAME = re.compile(r"[^\W\d_][\w .:/()#-]*")

Cells = list[str]
NumberedCells = tuple[int, Cells]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a delimited file is written; None means: detect it."""

    delimiter: Delimiter | None = None
    quoting: bool | None = None
    header: bool | None = None


OPEN = Reading()


@dataclass(frozen=True, slots=True)
class DelimitedFile:
    """The columns of an opened file and its rows, each with the number of its first line."""

    names: list[str]
    rows: Iterator[NumberedCells]


def open_delimited(path: Path, reading: Reading, *, named: bool = False) -> DelimitedFile:
    """Open a file and read its header; `named`: columns are selected by name."""
    lines = _lines_of(path)
    sample = _take_sample(lines)
    if reading.delimiter is None:
        delimiter = _delimiter(sample, path)
    else:
        delimiter = DELIMITERS[reading.delimiter]
    quoting = reading.quoting
    if quoting is None:
        quoting = _is_quoted(sample, delimiter, path)
    first = [cells for _, cells in _split(sample, delimiter, quoting, None) if has_content(cells)]
    if not first:
        raise TercetError(f"{path}: contains only blank lines.")
    header = reading.header
    if header is None:
        header = named or _has_header(first)
    rows = _split(chain(sample, lines), delimiter, quoting, path)
    if header:
        next(cells for _, cells in rows if has_content(cells))
        return DelimitedFile(_names(first), rows)
    width = Counter(map(len, first)).most_common(1)[0][0]
    return DelimitedFile([str(number + 1) for number in range(width)], rows)


def has_content(cells: Cells) -> bool:
    """Whether any cell of a row holds more than whitespace."""
    return any(cell.strip() for cell in cells)


def _lines_of(path: Path) -> Iterator[str]:
    """The lines of a file; where the first ends with a carriage return alone, so do the others."""
    lines = read_lines(path)
    first = next(lines)
    end = re.search(r"\r(?![\r\n])", first)
    if end is None or first.count('"', 0, end.start()) % 2:
        yield first
        yield from lines
        return
    for line in chain([first], lines):
        yield from re.findall(r"[^\r]*\r\n?|[^\r]+", line)


def _take_sample(lines: Iterator[str]) -> list[str]:
    sample: list[str] = []
    characters = 0
    for line in lines:
        sample.append(line)
        characters += len(line)
        if len(sample) == SAMPLE_LINES or characters > SAMPLE_CHARACTERS:
            break
    return sample


def _delimiter(sample: Sequence[str], path: Path) -> str:
    """The delimiter that splits most of the first lines into the same number of cells."""

    def evenness(delimiter: str) -> float:
        widths = Counter(len(cells) for _, cells in _split(sample, delimiter, True, None))
        width, rows = widths.most_common(1)[0]
        return rows / widths.total() if width > 1 else 0.0

    if suffix_of(path) == ".tsv":
        return "\t"
    return max(DELIMITERS.values(), key=evenness)


def _is_quoted(sample: Sequence[str], delimiter: str, path: Path) -> bool:
    """Whether most cells that open with a quote close with one; by suffix if there are none."""
    sign = re.escape(delimiter)
    cell = re.compile(rf'(?:^|{sign})(?:("(?:[^"]|"")*+")(?={sign}|$)|("))', re.M)
    text = "".join(sample).replace("\r\n", "\n").replace("\r", "\n")
    closed = Counter(bool(match[1]) for match in cell.finditer(text))
    if not closed:
        return suffix_of(path) == ".csv"
    return closed[True] > 4 * closed[False]


def _has_header(rows: Sequence[Cells]) -> bool:
    """Whether the first row names columns: by known names, above classes that all come again, by
    words above numbers, or by words that are unlike those below."""
    body = rows[1:]
    columns = [
        (name, [row[place].strip() for row in body if place < len(row)])
        for place, cell in enumerate(rows[0])
        if (name := cell.strip())
    ]
    names = [name for name, _ in columns]
    are_short = all(len(name) <= NAME_LENGTH for name in names)
    if are_short and any(name.lower() in NAMES for name in names):
        return True
    if len(set(names)) < len(names):
        return False
    if any(_is_above_classes(name, values) for name, values in columns):
        return True
    if not are_short:
        return False
    above_numbers = bool(body) and any(
        not _is_number(name) and all(map(_is_number, values)) for name, values in columns
    )
    return above_numbers or (len(body) >= LEAST_ROWS and _are_unlike(columns))


def _is_above_classes(name: str, values: Cells) -> bool:
    """Whether a column has few values, and only the first does not come again: so are the questions
    of a survey above their answers, however long they are."""
    counts = Counter(value.lower() for value in values if value)
    recur = len(counts) > 1 and min(counts.values()) > 1
    few = counts.total() >= ROWS_PER_CLASS * len(counts)
    return recur and few and name.lower() not in counts and not _is_number(name)


def _are_unlike(columns: Sequence[tuple[str, Cells]]) -> bool:
    """Whether words name columns of which one holds classes and another longer texts: none of the
    words comes again in its column, although the classes do."""
    if not all(_NAME.fullmatch(name) and len(name.split()) <= NAME_WORDS for name, _ in columns):
        return False
    lowered = [(name, {value.lower() for value in values}) for name, values in columns]
    if any(name.lower() in values for name, values in lowered):
        return False
    classes = any(
        2 * len(values) <= len(below)
        for (_, values), (_, below) in zip(lowered, columns, strict=True)
    )
    texts = any(values and median(map(len, values)) >= 2 * len(name) for name, values in columns)
    return classes and texts


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _names(rows: Sequence[Cells]) -> list[str]:
    """Names from the first row; if one is missing, the index column has no name.

    Where several columns have no name, they are called by their numbers.
    """
    names = [cell.strip() for cell in rows[0]]
    body = rows[1:]
    wider = bool(body) and all(len(cells) == len(names) + 1 for cells in body)
    # An empty cell at the end of every row is only a delimiter too many.
    if wider and any(cells[-1].strip() for cells in body):
        names = ["", *names]
    if names.count("") == 1:
        return names
    return [name or str(number) for number, name in enumerate(names, start=1)]


def _split(
    lines: Iterable[str], delimiter: str, quoting: bool, path: Path | None
) -> Iterator[NumberedCells]:
    """Cells of each row; without a path (while guessing) broken quoting is let pass."""
    if quoting:
        return _split_quoted(lines, delimiter, path)
    return (
        (number, line.rstrip("\r\n").split(delimiter)) for number, line in enumerate(lines, start=1)
    )


def _split_quoted(
    lines: Iterable[str], delimiter: str, path: Path | None
) -> Iterator[NumberedCells]:
    csv.field_size_limit(FIELD_LIMIT)
    taken: list[str] = []

    def noted() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    reader = csv.reader(noted(), delimiter=delimiter)
    start = 1
    while True:
        try:
            cells = next(reader)
            if len(taken) > 1:
                # A stray quote would swallow whole rows: rows of several lines must be flawless.
                next(csv.reader(taken, delimiter=delimiter, strict=True))
        except StopIteration:
            return
        except csv.Error as error:
            if path is not None:
                raise TercetError(
                    f"{path} line {start}: broken quoting or line end ({error}); close the "
                    "quote, or set `quoting = false` if quotes are plain characters."
                ) from error
        else:
            yield start, cells
        start += len(taken)
        taken.clear()
