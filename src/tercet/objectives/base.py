"""What the two families of objectives have in common."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from tercet.errors import TercetError

Range = tuple[float, float]
Columns = tuple[Tensor, ...]


class PredictiveObjective(Protocol):
    """Compares what a head gives with labels."""

    outputs: int
    """How many numbers a row the head must give."""

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """Sum of the rows' losses over `total`, in fp32.

        raw: [n, outputs], what the head gives
        labels: [n], class numbers or grades
        total: rows of the batch over all ranks, so that the ranks' losses and gradients add up
        """
        ...

    def teacher_loss(
        self, raw: Tensor, targets: Tensor, *, temperature: float, total: int
    ) -> Tensor:
        """Sum of the rows' distances from a teacher over `total`, in fp32.

        targets: fp32 [n, classes], probabilities at the temperature, or [n, 1], grades
        """
        ...

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """Sum over rows of how far two outputs [n, outputs] are apart, over `total`, in fp32."""
        ...

    def predict(self, raw: Tensor) -> Tensor:
        """raw [n, outputs] -> fp32: probabilities [n, classes] or [n], or grades [n]."""
        ...


class VectorObjective(Protocol):
    """Compares vectors with each other; needs neither head nor labels."""

    def loss(self, columns: Columns, *, candidates: Columns, first: int, total: int) -> Tensor:
        """Sum of the rows' losses over `total`, in fp32.

        columns: this rank's anchors, positives and perhaps negatives, each [n, width]
        candidates: the positives and perhaps negatives of all ranks, each [N, width]
        first: where this rank's rows begin among the N
        total: rows of the batch over all ranks
        """
        ...


def check_columns(columns: Columns, *, objective: str, allowed: tuple[int, ...]) -> None:
    """Raise a TercetError unless the batch has as many text columns as the objective reads."""
    if len(columns) not in allowed:
        counts = " or ".join(map(str, allowed))
        raise TercetError(f"objective `{objective}` needs {counts} columns, not {len(columns)}")
