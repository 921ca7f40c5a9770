"""Predictions of a classifier as users hold them: shown with class names, turned into tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError

if TYPE_CHECKING:
    import pyarrow as pa

    from tercet.specs import TaskSpec

SHOWN_CLASSES, SHOWN_ROWS = 3, 10
P = TypeVar("P", bound="Prediction")


class _KnowsClasses:
    """Keeps the names of all classes beside the fields, so that they are not part of JSON."""

    __slots__ = ("_classes",)
    _classes: Sequence[str]


@dataclass(frozen=True, slots=True, repr=False)
class Prediction(_KnowsClasses):
    """The most probable class of an input: its number, its name, and all probabilities."""

    label: int
    name: str
    probabilities: list[float]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary()})"

    def summary(self) -> str:
        """The class and the most probable others: `'good' 0.61; fair 0.25, bad 0.1, and 2 more`."""
        classes = getattr(self, "_classes", None)
        if classes is None:
            shares = [round(share, 4) for share in self.probabilities]
            return f"label={self.label}, name={self.name!r}, probabilities={shares}"
        order = sorted(range(len(classes)), key=lambda place: -self.probabilities[place])
        others = [place for place in order if place != self.label]
        shown = [
            f"{classes[place]} {self.probabilities[place]:.2f}"
            for place in others[: SHOWN_CLASSES - 1]
        ]
        more = len(others) - len(shown)
        shown += [f"and {more} more"] if more else []
        return f"{self.name!r} {self.probabilities[self.label]:.2f}; {', '.join(shown)}"


class Sentiment(Prediction):
    """The most probable sentiment of a sentence."""

    __slots__ = ()


class Predictions(list[P], Generic[P]):
    """A list of predictions that prints well and becomes a table.

    classes: the names of all classes, in the order of their numbers
    """

    def __init__(self, rows: Iterable[P] = (), *, classes: Sequence[str] = ()) -> None:
        super().__init__(rows)
        self.classes = list(classes)

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> P: ...
    @overload
    def __getitem__(self, place: slice, /) -> Predictions[P]: ...
    def __getitem__(self, place: SupportsIndex | slice, /) -> P | Predictions[P]:
        if isinstance(place, slice):
            return Predictions(super().__getitem__(place), classes=self.classes)
        return super().__getitem__(place)

    def __repr__(self) -> str:
        if not self:
            return "Predictions([])"
        lines = [f"{place}: {row.summary()}" for place, row in enumerate(self[:SHOWN_ROWS])]
        more = len(self) - len(lines)
        return "\n".join(lines + ([f"and {more:,} more"] if more else []))

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        names = ["", "name", *self.classes]
        cells = [
            [str(place), row.name, *(f"{share:.2f}" for share in row.probabilities)]
            for place, row in enumerate(self[:SHOWN_ROWS])
        ]
        body = "".join(f"<tr>{_html_cells('td', row)}</tr>" for row in cells)
        more = len(self) - len(cells)
        note = f"<p>and {more:,} more</p>" if more else ""
        head = f"<thead><tr>{_html_cells('th', names)}</tr></thead>"
        return f"<table>{head}<tbody>{body}</tbody></table>{note}"

    def to_arrow(self) -> pa.Table:
        """label, name, and a probability for each class, in a column named by the class."""
        import pyarrow as pa

        rows = [row.probabilities for row in self]
        probabilities = np.asarray(rows, np.float64).reshape(len(self), len(self.classes))
        labels = np.array([row.label for row in self], np.int64)
        return pa.table(class_columns(labels, probabilities, self.classes))

    def to_pandas(self) -> Any:
        """The same as a pandas data frame."""
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
    for place, name in enumerate(unique_names([prefix + name for name in classes], [*columns])):
        columns[name] = pa.array(np.ascontiguousarray(probabilities[:, place]))
    return columns


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
    task: str, spec: TaskSpec, predicted: NDArray[np.float32], *, threshold: float | None = None
) -> dict[str, pa.Array]:
    """What the predictions of a task add to a table: label, name and `p_CLASS` for each class, or
    the grade under the task's name."""
    import pyarrow as pa

    if spec.labels is None:
        return {task: pa.array(predicted)}
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
    found = Predictions[P](classes=labels)
    for label, probabilities in zip(best, rows.tolist(), strict=True):
        prediction = kind(label, labels[label], probabilities)
        object.__setattr__(prediction, "_classes", labels)
        found.append(prediction)
    return found


def _html_cells(tag: str, values: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values)
