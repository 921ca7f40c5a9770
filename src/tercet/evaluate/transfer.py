"""The suite `transfer`: SentEval's protocol, logistic regression on vectors that stay as they are.

Tasks without splits are cut into ten folds, and the penalty for each is chosen within the other
nine; tasks with splits choose it on their dev split, or by folds of train where they have none.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.data.files import MissingFileError
from tercet.data.senteval import FoldedTask, Labelled, SplitTask, read_folded, read_split
from tercet.evaluate.bootstrap import interval
from tercet.evaluate.corpus import Corpus
from tercet.evaluate.metrics import classification_metrics
from tercet.evaluate.results import Figure, Missing
from tercet.infer.engine import Floats

TransferTask = Literal["MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC"]
TRANSFER_TASKS: tuple[TransferTask, ...] = get_args(TransferTask)
PENALTIES = tuple(2.0**power for power in range(-2, 4))
"""SentEval's grid of C, the inverse of the penalty."""
FOLDS, INNER_FOLDS = 10, 5
SEED = 1111
STEPS = 100

Ints = NDArray[np.int64]


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
    predicted = np.empty_like(labels)
    penalties = []
    for fold, (train, test) in enumerate(_folds(vectors, labels, FOLDS), start=1):
        penalty = _choose_by_folds(vectors[train], labels[train], INNER_FOLDS)
        fitted = _Classifier(vectors[train], labels[train]).fit(penalty)
        predicted[test] = fitted.predict(vectors[test])
        penalties.append(penalty)
        if corpus.tell is not None:
            corpus.tell(f"folds of {name}", fold, FOLDS)
    return _result(labels, predicted, penalties, ("accuracy",))


def _measure_split(corpus: Corpus, name: SplitTask, data_dir: Path) -> TransferResult:
    train, test = read_split(name, "train", data_dir), read_split(name, "test", data_dir)
    dev = read_split(name, "dev", data_dir) if name == "SST-2" else None
    vectors = _features(corpus, train)
    classifier = _Classifier(vectors, train.labels)
    if dev is None:
        penalty = _choose_by_folds(vectors, train.labels, FOLDS)
    else:
        seen = _features(corpus, dev)
        scores = [classifier.fit(penalty).score(seen, dev.labels) for penalty in PENALTIES]
        penalty = PENALTIES[int(np.argmax(scores))]
    predicted = classifier.fit(penalty).predict(_features(corpus, test))
    metrics = ("accuracy", "f1") if name == "MRPC" else ("accuracy",)
    return _result(test.labels, predicted, [penalty], metrics)


def _features(corpus: Corpus, rows: Labelled) -> Floats:
    """Vectors [n, width], or of pairs |u - v| and u * v [n, 2 * width]."""
    if len(rows.texts) == 1:
        return corpus.embed(rows.texts[0])
    u, v = (corpus.embed(texts) for texts in rows.texts)
    return np.concatenate([np.abs(u - v), u * v], axis=1)


class _Classifier:
    """Logistic regression on rows [n, width]; each fit starts from the one before it."""

    def __init__(self, vectors: Floats, labels: Ints) -> None:
        from sklearn.linear_model import LogisticRegression

        self.vectors = vectors
        self.labels = labels
        self.model = LogisticRegression(warm_start=True, max_iter=STEPS)

    def fit(self, penalty: float) -> _Classifier:
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.set_params(C=penalty).fit(self.vectors, self.labels)
        return self

    def predict(self, vectors: Floats) -> Ints:
        predicted: Ints = self.model.predict(vectors)
        return predicted

    def score(self, vectors: Floats, labels: Ints) -> float:
        return float(np.mean(self.predict(vectors) == labels))


def _choose_by_folds(vectors: Floats, labels: Ints, count: int) -> float:
    """The penalty with the highest accuracy over folds of the rows."""
    scores = np.zeros(len(PENALTIES))
    for train, test in _folds(vectors, labels, count):
        classifier = _Classifier(vectors[train], labels[train])
        seen, truth = vectors[test], labels[test]
        scores += [classifier.fit(penalty).score(seen, truth) for penalty in PENALTIES]
    return PENALTIES[int(scores.argmax())]


def _folds(vectors: Floats, labels: Ints, count: int) -> Iterator[tuple[Ints, Ints]]:
    """Train and test rows of each fold, classes in like shares."""
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(n_splits=count, shuffle=True, random_state=SEED)
    yield from splitter.split(vectors, labels)


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
