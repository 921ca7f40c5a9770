"""The cells of the benchmark: a data set at a size, drawn three times."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

Kind = Literal["texts", "pairs", "grades"]
Row = tuple[tuple[str, ...], str]
"""One text or two, and the label or grade as it is written."""

DRAWS = (1, 2, 3)
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("trec", "cr", "mr", "subj", "mpqa", "sst-5"), "texts"),
    **dict.fromkeys(("sick", "quora"), "pairs"),
    "sts": "grades",
}
_SIZES: dict[Kind, tuple[str, ...]] = {
    "texts": ("8-per-class", "64-per-class", "600"),
    "pairs": ("600", "3000"),
    "grades": ("1000",),
}


@dataclass(frozen=True, slots=True)
class Cell:
    data: str
    size: str

    @property
    def name(self) -> str:
        return f"{self.data}/{self.size}"

    @property
    def kind(self) -> Kind:
        return KINDS[self.data]

    @property
    def rows(self) -> int:
        """The number in the size: rows, or rows per class."""
        return int(self.size.partition("-")[0])

    @property
    def per_class(self) -> bool:
        return self.size.endswith("-per-class")

    def train_file(self, folder: Path, *, draw: int) -> Path:
        return folder / self.data / f"{self.size}.{draw}.csv"

    def test_file(self, folder: Path) -> Path:
        """Draws and sizes share one test file."""
        return folder / self.data / "test.csv"


CELLS = tuple(Cell(data, size) for data, kind in KINDS.items() for size in _SIZES[kind])


def select(patterns: Sequence[str]) -> list[Cell]:
    """The cells whose names match any of the patterns, such as `trec/*` or `*/600`."""
    chosen = [cell for cell in CELLS if any(fnmatch(cell.name, wanted) for wanted in patterns)]
    if not chosen:
        raise SystemExit(f"No cell matches {' '.join(patterns)}; `cells` lists them.")
    return chosen


def columns(kind: Kind) -> tuple[str, ...]:
    texts = ("text",) if kind == "texts" else ("text1", "text2")
    return (*texts, "grade" if kind == "grades" else "label")


def write_rows(path: Path, kind: Kind, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns(kind))
        writer.writerows((*texts, label) for texts, label in rows)


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        return [(tuple(cells[:-1]), cells[-1]) for cells in reader]
