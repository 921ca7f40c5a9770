"""A task's results in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tercet.evaluation.answers import Answers
from tercet.evaluation.suites.tasks.details import confusion

CALIBRATED = 0.02
"""The largest distance of mean confidence from accuracy that counts as calibrated."""
NOTABLE = 0.005
"""Smaller differences between modes are not mentioned."""


def task_findings(modes: Sequence[Answers]) -> Iterator[str]:
    """Sentences about a task with rows; the most accurate mode comes first."""
    best = modes[0]
    if best.classes is None:
        off = float(np.abs(best.predictions - best.labels).mean())
        yield f"Grades are off by {off:.2f} on average."
    else:
        counts = confusion(best)
        yield f"Accuracy is {counts.trace() / counts.sum():.0%}."
        yield from _confused(counts, best.classes)
        yield _confidence(best)
    yield from _cost_of_bi(modes)


def _confused(counts: NDArray[np.int64], names: Sequence[str]) -> Iterator[str]:
    if len(names) == 2:
        predicted, expected = counts[:, 1].sum(), counts[1].sum()
        if not predicted:
            yield f"It never predicts {names[1]}."
        elif expected:
            yield (
                f"Recall for {names[1]} is {counts[1, 1] / expected:.0%}, precision "
                f"{counts[1, 1] / predicted:.0%}."
            )
        return
    wrong = counts - np.diag(counts.diagonal())
    if wrong.any():
        label, taken = divmod(int(wrong.argmax()), len(names))
        yield (
            f"The most frequent confusion is {names[label]} predicted as {names[taken]}: "
            f"{wrong[label, taken]:,} of {counts[label].sum():,} rows."
        )


def _confidence(answers: Answers) -> str:
    """How a classifier's confidence compares with its accuracy."""
    confidence = float(answers.predictions.max(axis=1).mean())
    accuracy = float((answers.predicted == answers.labels).mean())
    if abs(confidence - accuracy) <= CALIBRATED:
        return f"Its mean confidence of {confidence:.0%} matches its accuracy."
    how = "overconfident" if confidence > accuracy else "underconfident"
    return f"It is {how}: its mean confidence is {confidence:.0%}."


def _cost_of_bi(modes: Sequence[Answers]) -> Iterator[str]:
    """The cost of comparing stored vectors instead of reading a pair jointly."""
    if [answers.mode for answers in modes] != ["cross", "bi"]:
        return
    metric = modes[0].metric
    cross, bi = (answers.metrics[metric].value for answers in modes)
    if cross is not None and bi is not None and cross - bi >= NOTABLE:
        yield (
            f"Mode bi, which compares stored vectors, reaches {metric} {bi:.3f}; mode cross, which "
            f"reads both sentences together, reaches {cross:.3f}."
        )
