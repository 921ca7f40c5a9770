"""What the two families of objectives have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from tercet.errors import TercetError

Range = tuple[float, float]
Columns = tuple[Tensor, ...]


class PredictiveObjective(ABC):
    """Compares the outputs of a head with labels."""

    @abstractmethod
    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """Sum of the rows' losses over `total`, in fp32.

        raw: outputs of the head [n, outputs]
        labels: class numbers or grades [n], or 0 and 1 [n, classes] where rows have several labels
        total: rows of the batch over all ranks, so that the ranks' losses and gradients add up
        """

    def teacher_loss(
        self, raw: Tensor, targets: Tensor, *, temperature: float, total: int
    ) -> Tensor:
        """Sum of the rows' distances from a teacher over `total`, in fp32.

        targets: fp32, probabilities at the temperature [n, classes], which are independent where
            rows have several labels, or grades [n, 1]
        """
        raise TercetError(f"{type(self).__name__} cannot learn from a `teacher`.")

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """Sum over rows of the distance between two outputs [n, outputs], over `total`, in fp32."""
        raise TercetError(
            f"{type(self).__name__} cannot compare outputs, as `r_drop` and `depths` need."
        )


class WeightedObjective(PredictiveObjective):
    """Compares outputs with classes, some of which may count more than others."""

    @abstractmethod
    def loss(
        self, raw: Tensor, labels: Tensor, *, total: int, weights: Tensor | None = None
    ) -> Tensor:
        """The same; weights: of the classes, fp32 [classes]; None: all 1."""


class ContrastiveObjective(ABC):
    """Compares vectors with each other; needs neither head nor labels."""

    @abstractmethod
    def loss(self, columns: Columns, *, candidates: Columns, first: int, total: int) -> Tensor:
        """Sum of the rows' losses over `total`, in fp32.

        columns: this rank's anchors, positives and optionally negatives, each [n, width]
        candidates: the positives and optionally negatives of all ranks, each [N, width]
        first: index of this rank's first row among the N
        total: rows of the batch over all ranks
        """


class LabelContrastiveObjective(ABC):
    """Compares vectors with each other by the labels of their rows; needs no head."""

    @abstractmethod
    def loss(
        self,
        vectors: Tensor,
        labels: Tensor,
        *,
        candidates: Tensor,
        candidate_labels: Tensor,
        first: int,
        total: int,
    ) -> Tensor:
        """Sum of the rows' losses over `total`, in fp32.

        vectors, labels: this rank's rows, [n, width] and class numbers [n]
        candidates, candidate_labels: the rows of all ranks, [N, width] and [N]
        first: index of this rank's first row among the N
        total: rows of the batch over all ranks
        """


def check_columns(columns: Columns, *, objective: str, allowed: tuple[int, ...]) -> None:
    """Raise a TercetError unless the batch has as many text columns as the objective reads."""
    if len(columns) not in allowed:
        counts = " or ".join(map(str, allowed))
        raise TercetError(f"objective `{objective}` needs {counts} columns, not {len(columns)}")
