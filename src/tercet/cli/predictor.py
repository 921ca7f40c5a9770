"""The predictions of `tercet predict` block by block: as JSON fields, as columns, and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tercet.data.labels import LabelRule, Labels
from tercet.data.text_rows import TextRows
from tercet.errors import ArgumentError
from tercet.evaluation.metrics import Values
from tercet.evaluation.scoring import metrics_of
from tercet.model import Model, PairMode
from tercet.predictions import both_classes, chosen_classes, output_columns, unique_names
from tercet.progress import Progress, silent
from tercet.specs import Floats, TaskSpec, decisions

DECIMALS = 6
Texts = tuple[str, ...]
"""One sentence, or the two sentences of a pair."""


class Predictor:
    """One task of a model, predicted block by block.

    done: rows so far
    thresholds: of each label of a task with several per input; None: one half
    """

    def __init__(
        self,
        model: Model,
        task: str,
        mode: PairMode | None,
        threshold: float | None,
        *,
        wrong_only: bool,
    ) -> None:
        self.model, self.task, self.mode, self.threshold = model, task, mode, threshold
        resolved = model.resolve_mode(task, mode)
        self.width = 1 if resolved == "single" else 2
        self.thresholds = model.thresholds(task, resolved)
        self.spec: TaskSpec = model.tasks[task]
        self.wrong_only = wrong_only
        self.labels: Labels | None = None
        self.done = 0
        self._values: list[Floats] = []
        _check_threshold(task, self.spec, threshold)
        if wrong_only and self.spec.labels is None:
            raise ArgumentError(
                f"`wrong_only` needs a task with classes, and `{task}` has grades.", "wrong_only"
            )

    def read_labels(self, rows: TextRows) -> None:
        """Read the labels of all rows, if their column is known, so that a wrong one is reported
        before any work."""
        if rows.label is not None:
            self.labels = rows.labels(LabelRule.of_task(self.spec))

    def answer(
        self, texts: Sequence[Texts], progress: Progress = silent, *, rows: int | None = None
    ) -> Answered:
        """Predict the next rows, of `rows` altogether."""

        def within(done: int, total: int | None = None, *, note: str = "") -> None:
            progress(start + done * len(texts) // (total or len(texts)), rows)

        start = self.done
        inputs: Any = list(texts) if self.width == 2 else [text for (text,) in texts]
        predicted = self.model.predictions(self.task, inputs, self.mode, progress=within)
        self.done += len(texts)
        labels = None
        if self.labels is not None:
            labels = self.labels[start : self.done]
            self._values.append(self._scored(predicted))
        return Answered(self, texts, predicted, labels)

    def scores(self) -> Values:
        """The metrics of all rows so far; none without labels."""
        if self.labels is None:
            return {}
        return metrics_of(self.spec, self.labels[: self.done], np.concatenate(self._values))

    def _scored(self, predicted: Floats) -> Floats:
        """Thresholds replace probabilities [n, classes] by the classes that they choose."""
        if self.spec.multi_label:
            return self.chosen(predicted).astype(np.float32)
        if self.threshold is None:
            return predicted
        return np.eye(2, dtype=np.float32)[self.chosen(predicted)]

    def chosen(self, predicted: Floats) -> NDArray[np.int64]:
        """Class numbers [n], or 0 and 1 [n, classes] where inputs may have several."""
        if self.spec.multi_label:
            return decisions(predicted, self.thresholds).astype(np.int64)
        return chosen_classes(both_classes(predicted), self.threshold)


@dataclass(frozen=True, slots=True)
class Answered:
    """The predictions of some rows.

    predicted: probabilities [n, classes], or of class 1 [n], or grades [n]
    labels: [n], or [n, classes] where inputs may have several; None where they are unknown
    """

    predictor: Predictor
    texts: Sequence[Texts]
    predicted: Floats
    labels: Labels | None

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows to write: all, or those that are wrong."""
        if not self.predictor.wrong_only or self.labels is None:
            return np.arange(len(self.texts))
        wrong = self.predictor.chosen(self.predicted) != self.labels
        return np.flatnonzero(wrong.any(axis=1) if wrong.ndim == 2 else wrong)

    def columns(self) -> dict[str, pa.Array]:
        predictor = self.predictor
        return output_columns(
            predictor.task,
            predictor.spec,
            self.predicted,
            threshold=predictor.threshold,
            thresholds=predictor.thresholds,
        )

    def fields(self, row: int) -> dict[str, Any]:
        """A row for JSON: the grade under the task's name; or label, name (labels, names where
        inputs may have several) and probabilities; of pairs of two classes also `probability`, that
        of the second. With labels also `expected`."""
        predictor, one = self.predictor, self.predicted[row : row + 1]
        classes, several = predictor.spec.labels, predictor.spec.multi_label
        if classes is None:
            fields: dict[str, Any] = {predictor.task: round(float(one[0]), DECIMALS)}
        else:
            shares = [round(share, DECIMALS) for share in both_classes(one)[0].tolist()]
            number, name = _named(predictor.chosen(one)[0], classes)
            fields = {
                "labels" if several else "label": number,
                "names" if several else "name": name,
                "probabilities": dict(zip(classes, shares, strict=True)),
            }
            if len(classes) == 2 and predictor.width == 2 and not several:
                fields["probability"] = shares[1]
        if self.labels is not None:
            label = self.labels[row]
            fields["expected"] = label.item() if classes is None else _named(label, classes)[1]
        return fields


def _named(label: Any, classes: Sequence[str]) -> tuple[Any, Any]:
    """A class number and its name; or of 0 and 1 [classes] the numbers and the names."""
    if not np.ndim(label):
        return int(label), classes[int(label)]
    places = np.flatnonzero(label).tolist()
    return places, [classes[place] for place in places]


def added_names(predictor: Predictor, taken: Sequence[str]) -> dict[str, str]:
    """The names of a task's output columns in a file that has columns of its own."""
    names = list(predictor.answer([]).columns())
    prefix = "predicted_" if predictor.spec.labels is None else f"{predictor.task}_"
    return dict(zip(names, unique_names(names, taken, prefix=prefix), strict=True))


def with_columns(
    rows: pa.RecordBatch | pa.Table, answered: Answered, names: Mapping[str, str]
) -> pa.Table:
    """Rows of a file and their predictions; those to write."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    for name, column in answered.columns().items():
        table = table.append_column(names[name], column)
    return table.take(pa.array(answered.rows)) if answered.predictor.wrong_only else table


def with_fields(
    rows: Sequence[Mapping[str, Any]], answered: Answered, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The same for rows by column name."""
    added = pa.table(answered.columns()).rename_columns([*names.values()]).to_pylist()
    for row in added:
        for name, value in row.items():
            row[name] = round(value, DECIMALS) if isinstance(value, float) else value
    return [{**rows[row], **added[row]} for row in answered.rows]


def _check_threshold(task: str, spec: TaskSpec, threshold: float | None) -> None:
    if threshold is None:
        return
    if not 0.0 <= threshold <= 1.0:
        raise ArgumentError(
            f"`threshold` is {threshold:g}; it must be a probability, from 0 to 1.", "threshold"
        )
    if spec.labels is None or len(spec.labels) != 2 or spec.multi_label:
        has = "grades" if spec.labels is None else f"{len(spec.labels)} classes"
        has = "several labels per input" if spec.multi_label else has
        raise ArgumentError(
            f"`threshold` needs a task with two classes, and `{task}` has {has}.", "threshold"
        )
