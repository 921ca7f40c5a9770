"""The suite `transfer`: SentEval's protocol, logistic regression on vectors that stay as they are.

Tasks without splits are cut into ten folds, and the penalty for each is chosen within the other
nine; tasks with splits choose it on their dev split, or by folds of train where they have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.data.files import MissingFileError
from tercet.data.senteval import FoldedTask, Labelled, SplitTask, read_folded, read_split
from tercet.evaluate.bootstrap import interval
from tercet.evaluate.corpus import Corpus
from tercet.evaluate.logistic import Bools, Ints, Regressions
from tercet.evaluate.metrics import classification_metrics
from tercet.evaluate.results import Figure, Missing
from tercet.infer.engine import Floats

TransferTask = Literal["MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC"]
TRANSFER_TASKS: tuple[TransferTask, ...] = get_args(TransferTask)
PENALTIES = tuple(2.0**power for power in range(-2, 4))
"""SentEval's grid of C, the inverse of the penalty."""
FOLDS = 10
SEED = 1111


@dataclass(frozen=True, slots=True)
class TransferResult:
    """One transfer task.

    rows: how many were predicted
    metrics: accuracy, and F1 of class 1 for pairs
    penalties: the chosen C of each fold, or the one of the split
    """

    rows: int
    metrics: dict[str, Figure]
    penalties: list[float]

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "metrics": {metric: figure.to_json() for metric, figure in self.metrics.items()},
            "penalties": self.penalties,
        }


@dataclass(frozen=True, slots=True)
class TransfersResult:
    tasks: dict[TransferTask, TransferResult]
    missing: list[Missing]

    @property
    def average(self) -> float | None:
        """Mean accuracy; None unless all tasks were measured."""
        values = [task.metrics["accuracy"].value for task in self.tasks.values()]
        defined = [value for value in values if value is not None]
        complete = len(defined) == len(TRANSFER_TASKS)
        return math.fsum(defined) / len(defined) if complete else None

    def to_json(self) -> dict[str, Any]:
        return {
            "tasks": {name: task.to_json() for name, task in self.tasks.items()},
            "average": self.average,
        }


def evaluate_transfer(
    corpus: Corpus, data_dir: Path, *, tasks: Sequence[TransferTask] = TRANSFER_TASKS
) -> TransfersResult:
    """Accuracy of a classifier of vectors on each task, and F1 for MRPC."""
    results: dict[TransferTask, TransferResult] = {}
    missing: list[Missing] = []
    for name in tasks:
        try:
            if name == "SST-2" or name == "TREC" or name == "MRPC":
                results[name] = _measure_split(corpus, name, data_dir)
            else:
                results[name] = _measure_folds(corpus, name, data_dir)
        except MissingFileError as error:
            missing.append(Missing("transfer", name, error.file))
    return TransfersResult(results, missing)


def _measure_folds(corpus: Corpus, name: FoldedTask, data_dir: Path) -> TransferResult:
    rows = read_folded(name, data_dir)
    vectors, labels = corpus.embed(rows.texts[0]), rows.labels
    used = _folds(labels)
    inner, held = np.zeros((2, len(labels), FOLDS, FOLDS), bool)
    for fold in range(FOLDS):
        train = np.flatnonzero(used[:, fold])
        inner[train, fold] = _folds(labels[train])
        held[train, fold] = ~inner[train, fold]
    hits = _accuracies(
        vectors, labels, inner.reshape(len(labels), -1), held.reshape(len(labels), -1)
    )
    chosen = hits.reshape(FOLDS, FOLDS, -1).mean(axis=1).argmax(axis=1)
    said = Regressions(vectors, labels, used=used, penalties=PENALTIES).predict(vectors)
    fold_of = (~used).argmax(axis=1)
    predicted = said[np.arange(len(labels)), fold_of, chosen[fold_of]]
    return _result(labels, predicted, [PENALTIES[place] for place in chosen], ("accuracy",))


def _measure_split(corpus: Corpus, name: SplitTask, data_dir: Path) -> TransferResult:
    train, test = read_split(name, "train", data_dir), read_split(name, "test", data_dir)
    dev = read_split(name, "dev", data_dir) if name == "SST-2" else None
    vectors = _features(corpus, train)
    all_rows = np.ones((len(vectors), 1), bool)
    fits = Regressions(vectors, train.labels, used=all_rows, penalties=PENALTIES)
    if dev is None:
        used = _folds(train.labels)
        scores = _accuracies(vectors, train.labels, used, ~used).mean(axis=0)
    else:
        scores = (fits.predict(_features(corpus, dev))[:, 0] == dev.labels[:, None]).mean(axis=0)
    chosen = int(scores.argmax())
    predicted = fits.predict(_features(corpus, test))[:, 0, chosen]
    metrics = ("accuracy", "f1") if name == "MRPC" else ("accuracy",)
    return _result(test.labels, predicted, [PENALTIES[chosen]], metrics)


def _features(corpus: Corpus, rows: Labelled) -> Floats:
    """Vectors [n, width], or of pairs |u - v| and u * v [n, 2 * width]."""
    if len(rows.texts) == 1:
        return corpus.embed(rows.texts[0])
    u, v = (corpus.embed(texts) for texts in rows.texts)
    return np.concatenate([np.abs(u - v), u * v], axis=1)


def _accuracies(vectors: Floats, labels: Ints, used: Bools, held: Bools) -> NDArray[np.float64]:
    """Of each set of rows and each penalty, on the rows held from it; used, held [n, sets]."""
    said = Regressions(vectors, labels, used=used, penalties=PENALTIES).predict(vectors)
    right = (said == labels[:, None, None]) & held[:, :, None]
    shares: NDArray[np.float64] = right.sum(axis=0) / held.sum(axis=0)[:, None]
    return shares


def _folds(labels: Ints) -> Bools:
    """The rows that each fold trains on, classes in like shares: [n, folds]."""
    from sklearn.model_selection import StratifiedKFold

    used = np.zeros((len(labels), FOLDS), bool)
    splitter = StratifiedKFold(n_splits=FOLDS, shuffle=True, random_state=SEED)
    for fold, (train, _) in enumerate(splitter.split(labels, labels)):
        used[train, fold] = True
    return used


def _result(
    labels: Ints, predicted: Ints, penalties: list[float], metrics: tuple[str, ...]
) -> TransferResult:
    certain = np.eye(int(max(labels.max(), predicted.max())) + 1)[predicted]
    values = classification_metrics(labels, certain)
    figures = {
        metric: Figure(values[metric], interval(metric, labels, certain, SEED))
        for metric in metrics
    }
    return TransferResult(len(labels), figures, penalties)
