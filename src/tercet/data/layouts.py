"""Known layouts: the files of a task in a data folder, and their format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tercet.data.delimited import OPEN, Reading
from tercet.data.files import find_file
from tercet.errors import ArgumentError, TercetError, nearest
from tercet.specs import Column, DataSpec

Split = Literal["train", "dev"]

COURSE = Reading(delimiter="tab", quoting=True, header=True)
BARE = Reading(delimiter="tab", quoting=False, header=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Files are searched in the data folder, then in its subfolder `folder`.

    dev: files, or the share of the training rows that is split off, the same rows for every task
    """

    folder: str
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] | float = ()
    texts: tuple[Column, ...]
    label: Column | None = None
    reading: Reading = OPEN


def _course(train: str, dev: str | None, texts: Sequence[str], label: str) -> Layout:
    return Layout(
        folder="cs224n",
        train=(train,),
        dev=(dev,) if dev else (),
        texts=tuple(texts),
        label=label,
        reading=COURSE,
    )


def _nli_dev(file: str) -> Layout:
    return Layout(folder="nli/eval", dev=(file,), texts=(1, 2), label=3, reading=BARE)


PAIR = ("sentence1", "sentence2")
LAYOUTS = {
    "cs224n-sst": _course("ids-sst-train.csv", "ids-sst-dev.csv", ["sentence"], "sentiment"),
    "cs224n-sst-phrases": _course(
        "sst-train-phrases.csv", "ids-sst-dev.csv", ["sentence"], "sentiment"
    ),
    "cs224n-cfimdb": _course(
        "ids-cfimdb-train.csv", "ids-cfimdb-dev.csv", ["sentence"], "sentiment"
    ),
    "cs224n-quora": _course("quora-train.csv", "quora-dev.csv", PAIR, "is_duplicate"),
    "cs224n-sts": _course("sts-train.csv", "sts-dev.csv", PAIR, "similarity"),
    "quora-positives": _course("quora-positives.csv", None, PAIR, "is_duplicate"),
    "nli-pairs": Layout(folder="nli", train=("pairs.tsv",), texts=(1, 2), label=3, reading=BARE),
    "nli-triples": Layout(folder="nli", train=("triples.tsv",), texts=(1, 2, 3), reading=BARE),
    "snli-dev": _nli_dev("snli-dev.tsv"),
    "snli-test": _nli_dev("snli-test.tsv"),
    "mnli-dev-matched": _nli_dev("mnli-dev-matched.tsv"),
    "mnli-dev-mismatched": _nli_dev("mnli-dev-mismatched-tokenised.tsv"),
    "hans": _nli_dev("hans.tsv"),
    "paws": Layout(folder="paws", dev=("dev.tsv",), texts=(2, 3), label=4, reading=BARE),
    # Rows that may train word order, and rows that then measure it; no sentence is in both.
    "paws-split": Layout(
        folder="paws", train=("dev.tsv",), dev=0.25, texts=(2, 3), label=4, reading=BARE
    ),
    "sentences": Layout(folder="unlabelled", train=("sentences.txt",), texts=(1,)),
}


def find_layout(name: str) -> Layout:
    if name not in LAYOUTS:
        raise TercetError(
            f"No layout `{name}`{nearest(name, LAYOUTS)}; layouts are {', '.join(LAYOUTS)}."
        )
    return LAYOUTS[name]


def resolve(data: DataSpec) -> DataSpec:
    """Fill in the layout's settings; keys set in the recipe take precedence."""
    if data.layout is None:
        return data
    layout = find_layout(data.layout)
    dev = layout.dev if isinstance(layout.dev, float) else list(layout.dev)
    return data.model_copy(
        update={
            "train": data.train or list(layout.train),
            "dev": data.dev or dev,
            "texts": data.texts or list(layout.texts),
            "label": layout.label if data.label is None else data.label,
            "delimiter": data.delimiter or layout.reading.delimiter,
            "quoting": layout.reading.quoting if data.quoting is None else data.quoting,
            "header": layout.reading.header if data.header is None else data.header,
        }
    )


def split_files(data: DataSpec, split: Split) -> list[str]:
    """The file names of a split, from the recipe or its layout; may be empty.

    Where dev is a share of the training rows, both splits are in the training files.
    """
    resolved = resolve(data)
    return resolved.train if split == "train" or isinstance(resolved.dev, float) else resolved.dev


def has_dev(data: DataSpec) -> bool:
    """Whether there are dev rows: in files of their own or as a share of the training rows."""
    return bool(split_files(data, "dev"))


def find_split(data: DataSpec, split: Split, data_dir: Path) -> list[Path]:
    """The paths of a split's files."""
    names = split_files(data, split)
    if not names:
        owner = f"layout `{data.layout}`" if data.layout else "the task's data"
        other = ", or set a share such as `dev = 0.15`" if split == "dev" else ""
        raise TercetError(f"No {split} files: {owner} has none; name them with `{split}`{other}.")
    if not data_dir.is_dir():
        raise ArgumentError(
            f"`data` {data_dir}: no such folder; give the folder that holds {names[0]}.", "data"
        )
    folders = [data_dir]
    if data.layout is not None:
        folders.append(data_dir / find_layout(data.layout).folder)
    return [find_file(name, folders) for name in names]


def reading_of(data: DataSpec) -> Reading:
    """The format of the delimited files of a resolved data block."""
    return Reading(delimiter=data.delimiter, quoting=data.quoting, header=data.header)
