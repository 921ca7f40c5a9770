"""What the two ways of judging candidates share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tercet.data.examples import Examples, read_examples
from tercet.data.layouts import Split
from tercet.errors import TercetError
from tercet.evaluation.evaluation import Evaluation
from tercet.evaluation.simple_scores import Baselines
from tercet.fitting.budget import Budget
from tercet.fitting.deadline import Deadline
from tercet.fitting.following import Joined
from tercet.fitting.sources import Source
from tercet.recipe import Recipe
from tercet.training.first_vectors import FirstVectors
from tercet.training.listener import Listener
from tercet.training.run import RunResult, train_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One call of `fit`.

    data: the folder of the files
    folder: the run folder
    """

    data: Path
    folder: Path
    device: str | None
    listener: Listener
    budget: Budget

    def examples(self, recipe: Recipe, source: Source, split: Split = "train") -> Examples:
        """The rows of a task."""
        return read_examples(recipe.tasks[source.name], split, self.data)

    def train(
        self,
        recipe: Recipe,
        baselines: Baselines | None,
        following: Joined,
        *,
        deadline: Deadline | None = None,
        first: FirstVectors | None = None,
    ) -> RunResult:
        """Train a recipe into the run folder, shorter if it would miss the deadline.

        first: what keeps the vectors of rows before training
        """
        limit = None if deadline is None else partial(deadline.shorten, following=following)
        result = train_recipe(
            recipe,
            data=self.data,
            out=self.folder,
            device=self.device,
            listener=following,
            baselines=baselines,
            limit=limit,
            first=first,
            # Half a fit is removed, and begun again.
            resumable=False,
        )
        if result is None:
            raise TercetError("`fit` runs in one process; use `tercet train` with torchrun.")
        return result


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a way of judging found, besides the run folder.

    evaluation: the scores; None where they are still to be measured, on dev
    """

    baselines: Baselines
    evaluation: Evaluation | None = None
