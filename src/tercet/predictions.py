"""Predictions of a classifier as users hold them: shown with class names, turned into tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.specs import decisions

if TYPE_CHECKING:
    import pyarrow as pa

    from tercet.specs import TaskSpec

SHOWN_CLASSES, SHOWN_ROWS = 3, 10
BETWEEN = ", "
"""Between the labels of an input in one cell."""


class _Answer:
    """The answer to one input.

    It keeps the names of all classes beside its fields, so that they are not part of JSON.
    """

    __slots__ = ("_classes",)
    _classes: Sequence[str]
    probabilities: list[float]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary()})"

    def summary(self) -> str:
        raise NotImplementedError

    @property
    def cell(self) -> str:
        """The name, or the names, in one cell of a table."""
        raise NotImplementedError

    def _shown(self, chosen: Sequence[int]) -> str:
        """The chosen classes and the most probable others, if any."""
        classes, shares = self._classes, self.probabilities
        order = sorted(range(len(classes)), key=lambda place: -shares[place])
        others = [place for place in order if place not in chosen]
        shown = [f"{classes[place]} {shares[place]:.2f}" for place in others[: SHOWN_CLASSES - 1]]
        more = len(others) - len(shown)
        shown += [f"and {more} more"] if more else []
        best = [f"{classes[place]!r} {shares[place]:.2f}" for place in chosen]
        parts = [", ".join(best) or "none", ", ".join(shown)]
        return "; ".join(part for part in parts if part)


A = TypeVar("A", bound=_Answer)
P = TypeVar("P", bound="Prediction")


@dataclass(frozen=True, slots=True, repr=False)
class Prediction(_Answer):
    """The most probable class of an input: its number, its name, and all probabilities."""

    label: int
    name: str
    probabilities: list[float]

    def summary(self) -> str:
        """The class and the most probable others: `'good' 0.61; fair 0.25, bad 0.1, and 2 more`.

        >>> predictions[0].summary()
        "'somewhat positive' 0.61; positive 0.32, neutral 0.06, and 2 more"
        """
        if hasattr(self, "_classes"):
            return self._shown([self.label])
        shares = [round(share, 4) for share in self.probabilities]
        return f"label={self.label}, name={self.name!r}, probabilities={shares}"

    @property
    def cell(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class LabelSet(_Answer):
    """The labels of an input that may have several: their numbers and names, and the independent
    probabilities of all labels."""

    labels: list[int]
    names: list[str]
    probabilities: list[float]

    def summary(self) -> str:
        """The labels and the most probable others: `'tea' 0.91, 'milk' 0.74; jam 0.12`.

        >>> from tercet.predictions import LabelSet
        >>> LabelSet([0, 2], ["tea", "milk"], [0.91, 0.12, 0.74]).summary()
        "labels=[0, 2], names=['tea', 'milk'], probabilities=[0.91, 0.12, 0.74]"
        """
        if hasattr(self, "_classes"):
            return self._shown(self.labels)
        shares = [round(share, 4) for share in self.probabilities]
        return f"labels={self.labels}, names={self.names}, probabilities={shares}"

    @property
    def cell(self) -> str:
        return BETWEEN.join(self.names)


class Sentiment(Prediction):
    """The most probable sentiment of a sentence."""

    __slots__ = ()


class Predictions(list[A], Generic[A]):
    """A list of predictions that prints well and becomes a table.

    classes: the names of all classes, in the order of their numbers
    several: whether an input may have several of them: each prediction is a `LabelSet`

    >>> predictions = model.sentiment(["A quiet triumph.", "Dull."])
    >>> [prediction.name for prediction in predictions]
    ['somewhat positive', 'somewhat negative']
    """

    def __init__(
        self, rows: Iterable[A] = (), *, classes: Sequence[str] = (), several: bool = False
    ) -> None:
        super().__init__(rows)
        self.classes = list(classes)
        self.several = several

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> A: ...
    @overload
    def __getitem__(self, place: slice, /) -> Predictions[A]: ...
    def __getitem__(self, place: SupportsIndex | slice, /) -> A | Predictions[A]:
        if isinstance(place, slice):
            rows = super().__getitem__(place)
            return Predictions(rows, classes=self.classes, several=self.several)
        return super().__getitem__(place)

    def __repr__(self) -> str:
        if not self:
            return "Predictions([])"
        lines = [f"{place}: {row.summary()}" for place, row in enumerate(self[:SHOWN_ROWS])]
        more = len(self) - len(lines)
        return "\n".join(lines + ([f"and {more:,} more"] if more else []))

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        names = ["", "names" if self.several else "name", *self.classes]
        cells = [
            [str(place), row.cell, *(f"{share:.2f}" for share in row.probabilities)]
            for place, row in enumerate(self[:SHOWN_ROWS])
        ]
        body = "".join(f"<tr>{_html_cells('td', row)}</tr>" for row in cells)
        more = len(self) - len(cells)
        note = f"<p>and {more:,} more</p>" if more else ""
        head = f"<thead><tr>{_html_cells('th', names)}</tr></thead>"
        return f"<table>{head}<tbody>{body}</tbody></table>{note}"

    def to_arrow(self) -> pa.Table:
        """label, name, and a probability for each class, in a column named by the class.

        Where inputs may have several: labels, names, the same probabilities, and for each class a
        column `has_CLASS` of 0 and 1.

        >>> predictions.to_arrow().column_names[:3]
        ['label', 'name', 'negative']
        """
        import pyarrow as pa

        rows = [row.probabilities for row in self]
        probabilities = np.asarray(rows, np.float64).reshape(len(self), len(self.classes))
        if not self.several:
            labels = [row.label for row in self if isinstance(row, Prediction)]
            columns = class_columns(np.array(labels, np.int64), probabilities, self.classes)
            return pa.table(columns)
        chosen = np.zeros(probabilities.shape, np.bool_)
        for place, row in enumerate(self):
            if isinstance(row, LabelSet):
                chosen[place, row.labels] = True
        columns = set_columns(chosen, probabilities, self.classes)
        return pa.table(
            columns | _per_class(chosen.astype(np.int64), self.classes, columns, "has_")
        )

    def to_pandas(self) -> Any:
        """The same as a pandas data frame.

        >>> predictions.to_pandas().shape
        (2, 7)
        """
        try:
            import pandas  # noqa: F401, ICN001
        except ImportError as error:
            raise TercetError("A data frame needs pandas: pip install pandas.") from error
        return self.to_arrow().to_pandas()


def class_columns(
    labels: NDArray[np.int64],
    probabilities: NDArray[Any],
    classes: Sequence[str],
    *,
    prefix: str = "",
) -> dict[str, pa.Array]:
    """Predictions as columns: label, name, and one probability per class.

    labels: class numbers [n]
    probabilities: [n, classes]
    prefix: goes before the names of classes
    """
    import pyarrow as pa

    names = pa.array(list(classes), pa.string())
    columns = {"label": pa.array(labels), "name": names.take(pa.array(labels))}
    return columns | _per_class(probabilities, classes, columns, prefix)


def set_columns(
    chosen: NDArray[np.bool_],
    probabilities: NDArray[Any],
    classes: Sequence[str],
    *,
    prefix: str = "",
) -> dict[str, pa.Array]:
    """Sets of labels as columns: labels, names, and one probability per class.

    The numbers and the names of a row are joined by commas, so that a file of any kind holds them.

    chosen: which labels a row has [n, classes]
    probabilities, prefix: as in `class_columns`
    """
    import pyarrow as pa

    places = [np.flatnonzero(row).tolist() for row in chosen]
    columns = {
        "labels": pa.array([BETWEEN.join(map(str, row)) for row in places], pa.string()),
        "names": pa.array(
            [BETWEEN.join(classes[place] for place in row) for row in places], pa.string()
        ),
    }
    return columns | _per_class(probabilities, classes, columns, prefix)


def _per_class(
    values: NDArray[Any], classes: Sequence[str], taken: Iterable[str], prefix: str
) -> dict[str, pa.Array]:
    """values [n, classes] as a column for each class."""
    import pyarrow as pa

    names = unique_names([prefix + name for name in classes], taken)
    return {
        name: pa.array(np.ascontiguousarray(values[:, place])) for place, name in enumerate(names)
    }


def chosen_classes(
    probabilities: NDArray[Any], threshold: float | None = None
) -> NDArray[np.int64]:
    """Probabilities [n, classes] to class numbers [n]: the most probable, or of two classes
    class 1 where its probability is at least a threshold."""
    if threshold is None:
        classes = probabilities.argmax(axis=1)
    else:
        classes = probabilities[:, 1] >= threshold
    return np.asarray(classes, np.int64)


def output_columns(
    task: str,
    spec: TaskSpec,
    predicted: NDArray[np.float32],
    *,
    threshold: float | None = None,
    thresholds: Sequence[float] | None = None,
) -> dict[str, pa.Array]:
    """What the predictions of a task add to a table: label, name and `p_CLASS` for each class;
    labels, names and `p_CLASS` where inputs may have several; or the grade under the task's name.

    threshold: of class 1 of two
    thresholds: of each label, where inputs may have several
    """
    import pyarrow as pa

    if spec.labels is None:
        return {task: pa.array(predicted)}
    if spec.multi_label:
        chosen = decisions(predicted, thresholds)
        return set_columns(chosen, predicted, spec.labels, prefix="p_")
    rows = both_classes(predicted)
    return class_columns(chosen_classes(rows, threshold), rows, spec.labels, prefix="p_")


def unique_names(names: Sequence[str], taken: Iterable[str], *, prefix: str = "") -> list[str]:
    """The names, changed where they are taken: with a prefix, then with a number."""
    used = set(taken)
    found = []
    for name in names:
        free = name if name not in used else prefix + name
        number = 2
        while free in used:
            free = f"{prefix}{name}_{number}"
            number += 1
        used.add(free)
        found.append(free)
    return found


def both_classes(predicted: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities [n, classes], also of a task with one output, which gives class 1 [n]."""
    if predicted.ndim == 2:
        return predicted
    return np.stack([1.0 - predicted, predicted], axis=1)


def to_predictions(
    predicted: NDArray[np.float32], labels: Sequence[str], kind: type[P]
) -> Predictions[P]:
    """probabilities [n, classes], or of class 1 [n], to predictions."""
    rows = both_classes(predicted)
    best = rows.argmax(axis=1).tolist()
    found = [
        kind(label, labels[label], probabilities)
        for label, probabilities in zip(best, rows.tolist(), strict=True)
    ]
    return Predictions(_with_classes(found, labels), classes=labels)


def to_label_sets(
    predicted: NDArray[np.float32], labels: Sequence[str], thresholds: Sequence[float] | None
) -> Predictions[LabelSet]:
    """Independent probabilities [n, labels] to sets of labels."""
    chosen = [np.flatnonzero(row).tolist() for row in decisions(predicted, thresholds)]
    found = [
        LabelSet(places, [labels[place] for place in places], probabilities)
        for places, probabilities in zip(chosen, predicted.tolist(), strict=True)
    ]
    return Predictions(_with_classes(found, labels), classes=labels, several=True)


def _with_classes(answers: list[A], classes: Sequence[str]) -> list[A]:
    for answer in answers:
        object.__setattr__(answer, "_classes", classes)  # frozen
    return answers


def _html_cells(tag: str, values: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values)
