"""The suite `transfer`: SentEval's protocol, logistic regression on frozen vectors.

Tasks without splits are cut into ten folds, and the penalty of each is chosen within the other
nine; tasks with splits choose it on their dev split, or by folds of train where they have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.data.senteval import FoldedTask, Labelled, SplitTask, read_folded, read_split
from tercet.evaluation import presentation as show
from tercet.evaluation.bootstrap import estimates
from tercet.evaluation.contamination import Contamination
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate, classification_metrics
from tercet.evaluation.suite import Context, Missing, Suite, SuiteResult, note_missing
from tercet.specs import Floats

if TYPE_CHECKING:
    from tercet.evaluation.logistic import Regressions

TransferTask = Literal["MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC"]
TRANSFER_TASKS: tuple[TransferTask, ...] = get_args(TransferTask)
PENALTIES = tuple(2.0**power for power in range(-2, 4))
"""SentEval's grid of C, the inverse of the penalty."""
FOLDS = 10
SEED = 1111

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TransferResult:
    """One transfer task.

    rows: number of predicted rows
    metrics: accuracy, and F1 of class 1 for pairs
    penalties: the chosen C of each fold, or the one of the split
    seen: rows that the model was trained on, and rows that are implied; without_seen_rows: the
        metrics of the others; both None for a model without a sketch
    """

    rows: int
    metrics: dict[str, Estimate]
    penalties: list[float]
    seen: dict[str, int] | None = None
    without_seen_rows: dict[str, Estimate] | None = None

    @property
    def unseen_rows(self) -> int:
        return self.rows - sum((self.seen or {}).values())


@dataclass(frozen=True, slots=True)
class TransfersResult(SuiteResult):
    tasks: dict[TransferTask, TransferResult]
    missing: list[Missing] = field(default_factory=list)

    @property
    def average(self) -> float | None:
        """Mean accuracy; None unless all tasks were measured."""
        values = [task.metrics["accuracy"].value for task in self.tasks.values()]
        defined = [value for value in values if value is not None]
        complete = len(defined) == len(TRANSFER_TASKS)
        return math.fsum(defined) / len(defined) if complete else None

    def to_json(self) -> dict[str, Any]:
        return {
            "tasks": {name: asdict(task) for name, task in self.tasks.items()},
            "average": self.average,
        }

    def metrics(self) -> dict[str, Estimate]:
        values = {
            f"{name}, {metric}": value
            for name, task in self.tasks.items()
            for metric, value in task.metrics.items()
        }
        return {**values, "average": Estimate(self.average)}

    def tables(self) -> list[show.Table]:
        rows = [
            [show.Cell(name), show.Cell(metric), *show.estimate_cells(value), show.count(task.rows)]
            for name, task in self.tasks.items()
            for metric, value in task.metrics.items()
        ]
        rows += [
            [
                show.Cell(name),
                show.Cell(f"{metric}, unseen rows"),
                *show.estimate_cells(value),
                show.count(task.unseen_rows),
            ]
            for name, task in self.tasks.items()
            if task.unseen_rows < task.rows
            for metric, value in (task.without_seen_rows or {}).items()
        ]
        names = [show.Cell("Average"), show.Cell("accuracy")]
        rows.append([*names, show.number(self.average), *[show.Cell("")] * 2])
        table = show.Table(
            caption="Every task, and the average of accuracies",
            columns=["Task", "Metric", "Value", show.INTERVAL, "Rows"],
            rows=rows,
        )
        return [table] if self.tasks else []

    def headlines(self) -> list[show.Headline]:
        metric = "accuracy, average of SentEval's seven"
        average = self.average
        return [] if average is None else [show.Headline("Other tasks", metric, Estimate(average))]

    def findings(self) -> dict[str, str]:
        if self.average is None:
            return {}
        values = {name: task.metrics["accuracy"].value or 0.0 for name, task in self.tasks.items()}
        best, worst = (pick(values, key=values.__getitem__) for pick in (max, min))
        sentence = (
            f"The average accuracy of a linear classifier on its vectors is {self.average:.0%}, "
            f"from {worst} ({values[worst]:.0%}) to {best} ({values[best]:.0%})."
        )
        return {"Other tasks": sentence}


class Transfer(Suite):
    name = "transfer"
    title = "Transfer"
    description = "SentEval: a logistic regression on the vectors of seven other tasks"
    intro = (
        "How useful the vectors are for tasks that the model was not trained for: for each, a "
        "logistic regression is trained on the frozen vectors, by SentEval's protocol. MR and "
        "SST-2 share their sentences with SST: a model trained on SST has seen many of them."
    )

    def __init__(self, tasks: Sequence[TransferTask] = TRANSFER_TASKS) -> None:
        self.tasks = tasks

    def run(self, context: Context) -> TransfersResult:
        """Accuracy of each task, and F1 of MRPC."""
        results: dict[TransferTask, TransferResult] = {}
        missing: list[Missing] = []
        for name in self.tasks:
            with note_missing(missing, self.name, name):
                if name == "SST-2" or name == "TREC" or name == "MRPC":
                    results[name] = _measure_split(context.texts, name, context.data)
                else:
                    results[name] = _measure_folds(context.texts, name, context.data)
        return TransfersResult(results, missing)


def _measure_folds(texts: EncodedTexts, name: FoldedTask, data_dir: Path) -> TransferResult:
    rows = read_folded(name, data_dir)
    vectors, labels = texts.embed(rows.texts[0]), rows.labels
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
    classes = _regressions(vectors, labels, used).predict(vectors)
    fold_of = (~used).argmax(axis=1)
    predicted = classes[np.arange(len(labels)), fold_of, chosen[fold_of]]
    found = Contamination.of(texts.model, rows.texts)
    penalties = [PENALTIES[place] for place in chosen]
    return _result(labels, predicted, penalties, ("accuracy",), found)


def _measure_split(texts: EncodedTexts, name: SplitTask, data_dir: Path) -> TransferResult:
    train, test = read_split(name, "train", data_dir), read_split(name, "test", data_dir)
    dev = read_split(name, "dev", data_dir) if name == "SST-2" else None
    vectors = _features(texts, train)
    all_rows = np.ones((len(vectors), 1), bool)
    fits = _regressions(vectors, train.labels, all_rows)
    if dev is None:
        used = _folds(train.labels)
        scores = _accuracies(vectors, train.labels, used, ~used).mean(axis=0)
    else:
        scores = (fits.predict(_features(texts, dev))[:, 0] == dev.labels[:, None]).mean(axis=0)
    chosen = int(scores.argmax())
    predicted = fits.predict(_features(texts, test))[:, 0, chosen]
    metrics = ("accuracy", "f1") if name == "MRPC" else ("accuracy",)
    found = Contamination.of(texts.model, test.texts)
    return _result(test.labels, predicted, [PENALTIES[chosen]], metrics, found)


def _features(texts: EncodedTexts, rows: Labelled) -> Floats:
    """Vectors [n, width], or of pairs |u - v| and u * v [n, 2 * width]."""
    if len(rows.texts) == 1:
        return texts.embed(rows.texts[0])
    u, v = (texts.embed(side) for side in rows.texts)
    return np.concatenate([np.abs(u - v), u * v], axis=1)


def _regressions(vectors: Floats, labels: Ints, used: Bools) -> Regressions:
    from tercet.evaluation.logistic import Regressions

    return Regressions(vectors, labels, used=used, penalties=PENALTIES)


def _accuracies(vectors: Floats, labels: Ints, used: Bools, held: Bools) -> NDArray[np.float64]:
    """By set of rows and penalty, on the rows held out of the set; used, held [n, sets]."""
    classes = _regressions(vectors, labels, used).predict(vectors)
    right = (classes == labels[:, None, None]) & held[:, :, None]
    shares: NDArray[np.float64] = right.sum(axis=0) / held.sum(axis=0)[:, None]
    return shares


def _folds(labels: Ints) -> Bools:
    """The rows that each fold trains on, stratified by class: [n, folds]."""
    from sklearn.model_selection import StratifiedKFold

    used = np.zeros((len(labels), FOLDS), bool)
    splitter = StratifiedKFold(n_splits=FOLDS, shuffle=True, random_state=SEED)
    for fold, (train, _) in enumerate(splitter.split(labels, labels)):
        used[train, fold] = True
    return used


def _result(
    labels: Ints,
    predicted: Ints,
    penalties: list[float],
    metrics: tuple[str, ...],
    found: Contamination | None,
) -> TransferResult:
    certain = np.eye(int(max(labels.max(), predicted.max())) + 1)[predicted]

    def measure(rows: Bools) -> dict[str, Estimate]:
        values = classification_metrics(labels[rows], certain[rows])
        chosen = {metric: values[metric] for metric in metrics}
        return estimates(chosen, labels[rows], certain[rows], SEED)

    whole = measure(np.ones(len(labels), np.bool_))
    if found is None:
        return TransferResult(len(labels), whole, penalties)
    unseen = found.measure(whole, lambda: measure(found.fresh))
    return TransferResult(len(labels), whole, penalties, found.to_json(), unseen)
