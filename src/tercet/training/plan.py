"""Which rows of which tasks each step trains on: a pure function of the seed and the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tercet.data.labels import Labels
from tercet.specs import ScheduleSpec, TaskSpec
from tercet.specs.registry import resolve
from tercet.training.schedules.span import Presence, Span

ABSENT = -1


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows of one task for one step, over all processes."""

    task: str
    rows: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Subset:
    """A part of a task's rows, drawn again for each pass.

    count: rows per pass
    likely: float64 [rows of the task], drawn with replacement; None: equally, without replacement
    """

    count: int
    likely: NDArray[np.float64] | None = None

    @classmethod
    def of_task(cls, task: TaskSpec, labels: Labels | None, *, rows: int) -> Subset | None:
        """The subset that a task sets; None where a pass takes all rows."""
        if task.subset is None:
            return None
        count = max(1, round(task.subset.share * rows))
        if task.subset.drawn_by is None:
            return cls(count)
        assert labels is not None
        _, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        likely = (sizes if task.subset.label_counts else 1.0 / sizes)[classes]
        return cls(count, likely / likely.sum())


class StagePlan:
    """The steps of one stage.

    Every task is trained on in passes; each pass is a new permutation of its rows, or a new random
    part of them. A *visit* is the next slice of a pass. The plan is the table `visits`
    [steps, tasks]: the number of the visit that a step pays to a task, or ABSENT. So any step can
    be looked up without those before it.
    """

    def __init__(
        self,
        spec: ScheduleSpec,
        *,
        sizes: Mapping[str, int],
        rows_per_visit: Mapping[str, int],
        epochs: float | None,
        steps: int | None,
        seed: Sequence[int],
        subsets: Mapping[str, Subset] | None = None,
    ) -> None:
        self.tasks = list(sizes)
        self._all_rows = dict(sizes)
        self._subsets = dict(subsets or {})
        self._sizes = {task: self._pass_size(task) for task in self.tasks}
        self._rows = dict(rows_per_visit)
        self._seed = tuple(seed)
        batches = {task: -(-self._sizes[task] // self._rows[task]) for task in self.tasks}
        span = Span(self._sizes, batches, epochs=epochs, steps=steps, seed=self._seed)
        present, self.steps_per_epoch = resolve(type(spec).implementation)(spec, span)
        self.visits = _visits(present)
        self.planned = len(self.visits)
        """Steps, before the stage was shortened."""
        self._permutation = lru_cache(maxsize=len(self.tasks))(self._new_permutation)

    def _pass_size(self, task: str) -> int:
        return self._subsets[task].count if task in self._subsets else self._all_rows[task]

    def __len__(self) -> int:
        return len(self.visits)

    def ends_epoch(self, step: int) -> bool:
        """Whether an epoch, or the stage, is complete after this step (numbered from 0)."""
        return (step + 1) % self.steps_per_epoch == 0 or step + 1 == len(self)

    def draws(self, step: int) -> list[Draw]:
        """What a step trains on."""
        visits = self.visits[step]
        return [
            Draw(task, self._rows_of(index, int(visits[index])))
            for index, task in enumerate(self.tasks)
            if visits[index] != ABSENT
        ]

    def switch_to(self, task: int, *, step: int) -> None:
        """From a step on, train only this task (by its index)."""
        present = self.visits != ABSENT
        present[step:] = np.arange(len(self.tasks)) == task
        self.visits = _visits(present)

    def shorten(self, steps: int) -> None:
        """Leave out all steps after the first ones; those are as before."""
        self.visits = self.visits[:steps]

    def _rows_of(self, index: int, visit: int) -> NDArray[np.int64]:
        size, rows = self._sizes[self.tasks[index]], self._rows[self.tasks[index]]
        number, slot = divmod(visit, -(-size // rows))
        return self._permutation(index, number)[slot * rows : (slot + 1) * rows]

    def _new_permutation(self, index: int, number: int) -> NDArray[np.int64]:
        """The rows of one pass over a task."""
        size = self._all_rows[self.tasks[index]]
        generator = np.random.default_rng([*self._seed, 1, index, number])
        subset = self._subsets.get(self.tasks[index])
        if subset is None:
            return generator.permutation(size)
        if subset.likely is None:
            return generator.permutation(size)[: subset.count]
        return generator.choice(size, subset.count, p=subset.likely)


def _visits(present: Presence) -> NDArray[np.int64]:
    return np.where(present, np.cumsum(present, axis=0) - 1, ABSENT)
