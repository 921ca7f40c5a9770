"""The downstream files of SentEval, in their original layout."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.data.files import find_file, open_bytes
from tercet.data.labels import parse_number
from tercet.errors import TercetError, shorten

FOLDER = "senteval"
StsSet = Literal["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
STS_SETS: tuple[StsSet, ...] = get_args(StsSet)
FoldedTask = Literal["MR", "CR", "SUBJ", "MPQA"]
SplitTask = Literal["SST-2", "TREC", "MRPC"]
SplitName = Literal["train", "dev", "test"]

# SMT of 2013 is not public, and published results leave it out.
_YEARS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_STS_B, _SICK_R = "STS/STSBenchmark/sts-test.csv", "SICK/SICK_test_annotated.txt"
# Class 0 and class 1.
_CLASS_FILES = {
    "MR": ("MR/rt-polarity.neg", "MR/rt-polarity.pos"),
    "CR": ("CR/custrev.neg", "CR/custrev.pos"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.neg", "MPQA/mpqa.pos"),
}
_SPLIT_FILES = {
    "SST-2": {split: f"SST/binary/sentiment-{split}" for split in ("train", "dev", "test")},
    "TREC": {"train": "TREC/train_5500.label", "test": "TREC/TREC_10.label"},
    "MRPC": {split: f"MRPC/msr_paraphrase_{split}.txt" for split in ("train", "test")},
}
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


@dataclass(frozen=True, slots=True)
class GradedPairs:
    """n pairs of an STS set.

    grades: float64 [n]
    ungraded: further pairs in the files that have no grade
    """

    first: list[str]
    second: list[str]
    grades: NDArray[np.float64]
    ungraded: int = 0


@dataclass(frozen=True, slots=True)
class Labelled:
    """n rows of a transfer task.

    texts: one list of n texts, or two for pairs
    labels: class numbers, int64 [n]
    """

    texts: tuple[list[str], ...]
    labels: NDArray[np.int64]


def read_sts(name: StsSet, data_dir: Path) -> GradedPairs:
    """The graded pairs of an STS set, all parts of a year together."""
    if name == "STS-B":
        return _read_graded(_find(_STS_B, data_dir), (5, 6, 4), header=False)
    if name == "SICK-R":
        return _read_graded(_find(_SICK_R, data_dir), (1, 2, 3), header=True)
    first: list[str] = []
    second: list[str] = []
    grades: list[float] = []
    ungraded = 0
    for part in _YEARS[name]:
        for left, right, grade in _read_year(f"STS/{name}-en-test", part, data_dir):
            if grade is None:
                ungraded += 1
                continue
            first.append(left)
            second.append(right)
            grades.append(grade)
    return GradedPairs(first, second, np.array(grades), ungraded)


def read_folded(name: FoldedTask, data_dir: Path) -> Labelled:
    """All rows of a task that has no splits, class 0 first."""
    texts: list[str] = []
    labels: list[int] = []
    for label, file in enumerate(_CLASS_FILES[name]):
        path = _find(file, data_dir)
        rows = [line.strip() for _, line in _lines(path, "latin-1")]
        texts += rows
        labels += [label] * len(rows)
    return Labelled((texts,), np.array(labels, np.int64))


def read_split(name: SplitTask, split: SplitName, data_dir: Path) -> Labelled:
    """One split of a task that has splits."""
    path = _find(_SPLIT_FILES[name][split], data_dir)
    if name == "TREC":
        return _read_questions(path)
    pairs = name == "MRPC"
    wanted = (3, 4, 0) if pairs else (0, 1)
    rows = list(_cells(path, wanted, header=pairs))
    labels = [_class(path, number, cells[-1], ("0", "1")) for number, cells in rows]
    texts = tuple([cells[place] for _, cells in rows] for place in range(len(wanted) - 1))
    return Labelled(texts, np.array(labels, np.int64))


def _read_questions(path: Path) -> Labelled:
    texts, labels = [], []
    for number, line in _lines(path, "latin-1"):
        kind, _, text = line.strip().partition(" ")
        labels.append(_class(path, number, kind.partition(":")[0], TREC_CLASSES))
        texts.append(text.strip())
    return Labelled((texts,), np.array(labels, np.int64))


def _read_year(folder: str, part: str, data_dir: Path) -> Iterator[tuple[str, str, float | None]]:
    """The texts and the grade of each pair; None if it has no grade."""
    inputs = _find(f"{folder}/STS.input.{part}.txt", data_dir)
    path = _find(f"{folder}/STS.gs.{part}.txt", data_dir)
    texts = [cells for _, cells in _cells(inputs, (0, 1), header=False)]
    grades = [
        _grade(path, number, line) if line.strip() else None
        for number, line in _lines(path, "utf-8")
    ]
    if len(texts) != len(grades):
        raise TercetError(
            f"{path}: has {len(grades)} lines, but {inputs.name} has {len(texts)} pairs."
        )
    for (first, second), grade in zip(texts, grades, strict=True):
        yield first, second, grade


def _read_graded(path: Path, wanted: tuple[int, int, int], *, header: bool) -> GradedPairs:
    rows = list(_cells(path, wanted, header=header))
    return GradedPairs(
        first=[cells[0] for _, cells in rows],
        second=[cells[1] for _, cells in rows],
        grades=np.array([_grade(path, number, cells[2]) for number, cells in rows]),
    )


def _find(file: str, data_dir: Path) -> Path:
    return find_file(file, [data_dir, data_dir / FOLDER])


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without their endings; only a line feed ends a line."""
    with open_bytes(path) as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise TercetError(f"{path} line {number}: is not {encoding}.") from error
            yield number, line.rstrip("\r\n").removeprefix("\ufeff")


def _cells(path: Path, wanted: tuple[int, ...], *, header: bool) -> Iterator[tuple[int, list[str]]]:
    """The selected cells of each line, stripped; quotes are plain characters."""
    for number, line in _lines(path, "utf-8"):
        if header and number == 1:
            continue
        cells = line.split("\t")
        if len(cells) <= max(wanted):
            raise TercetError(
                f"{path} line {number}: has {len(cells)} cells where at least "
                f"{max(wanted) + 1} are expected."
            )
        yield number, [cells[place].strip() for place in wanted]


def _grade(path: Path, number: int, cell: str) -> float:
    grade = parse_number(cell)
    if grade is None or not math.isfinite(grade):
        raise TercetError(f"{path} line {number}: grade {shorten(cell)!r} is not a finite number.")
    return grade


def _class(path: Path, number: int, cell: str, classes: tuple[str, ...]) -> int:
    if cell not in classes:
        raise TercetError(
            f"{path} line {number}: label {shorten(cell)!r} is not one of {', '.join(classes)}."
        )
    return classes.index(cell)
