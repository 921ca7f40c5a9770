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
from tercet.specs import Floats, TaskSpec

DECIMALS = 6
Texts = tuple[str, ...]
"""One sentence, or the two sentences of a pair."""


class Predictor:
    """One task of a model, predicted block by block.

    done: rows so far
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
        self.width = 1 if model.resolve_mode(task, mode) == "single" else 2
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
        """A threshold replaces probabilities [n, 2] by the classes that it chooses."""
        if self.threshold is None:
            return predicted
        classes = chosen_classes(both_classes(predicted), self.threshold)
        return np.eye(2, dtype=np.float32)[classes]


@dataclass(frozen=True, slots=True)
class Answered:
    """The predictions of some rows.

    predicted: probabilities [n, classes], or of class 1 [n], or grades [n]
    labels: [n], where they are known
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
        return np.flatnonzero(self._chosen != self.labels)

    @property
    def _chosen(self) -> NDArray[np.int64]:
        return chosen_classes(both_classes(self.predicted), self.predictor.threshold)

    def columns(self) -> dict[str, pa.Array]:
        predictor = self.predictor
        return output_columns(
            predictor.task, predictor.spec, self.predicted, threshold=predictor.threshold
        )

    def fields(self, row: int) -> dict[str, Any]:
        """A row for JSON: the grade under the task's name, or label, name and probabilities; of
        pairs of two classes also `probability`, that of the second."""
        task, classes = self.predictor.task, self.predictor.spec.labels
        label = None if self.labels is None else self.labels[row].item()
        if classes is None:
            fields: dict[str, Any] = {task: round(float(self.predicted[row]), DECIMALS)}
            return fields if label is None else {**fields, "expected": label}
        one = self.predicted[row : row + 1]
        shares = [round(share, DECIMALS) for share in both_classes(one)[0].tolist()]
        chosen = int(chosen_classes(both_classes(one), self.predictor.threshold)[0])
        fields = {
            "label": chosen,
            "name": classes[chosen],
            "probabilities": dict(zip(classes, shares, strict=True)),
        }
        if len(classes) == 2 and self.predictor.width == 2:
            fields["probability"] = shares[1]
        return fields if label is None else {**fields, "expected": classes[label]}


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
    if spec.labels is None or len(spec.labels) != 2:
        has = "grades" if spec.labels is None else f"{len(spec.labels)} classes"
        raise ArgumentError(
            f"`threshold` needs a task with two classes, and `{task}` has {has}.", "threshold"
        )
