"""Which task and which rows each step trains on: a pure function of the seed and the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tercet.data.labels import Labels
from tercet.specs import ScheduleSpec, TaskSpec

ABSENT = -1
# BERT and PALs (Stickland and Murray, 2019) let the exponent of the sizes fall from 1 to 0.2.
ANNEALED_TO = 0.2


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows of one task for one step, over all processes."""

    task: str
    rows: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Subset:
    """What each pass over a task draws anew.

    count: rows of a pass
    likely: float64 [rows of the task], drawn with replacement; None: without, all alike
    """

    count: int
    likely: NDArray[np.float64] | None = None

    @classmethod
    def of_task(cls, task: TaskSpec, labels: Labels | None, *, rows: int) -> Subset | None:
        """As a task asks for it; None where a pass takes all rows."""
        if task.subset is None:
            return None
        count = max(1, round(task.subset.share * rows))
        if not task.subset.balanced:
            return cls(count)
        assert labels is not None
        _, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        likely = 1.0 / sizes[classes]
        return cls(count, likely / likely.sum())


class Plan:
    """The steps of one stage.

    Every task is walked in passes; each pass is a fresh permutation of its rows, or a fresh random
    part of them. A *visit* is the
    next slice of a pass. The plan is the table `visits` [steps, tasks]: the running number of the
    visit that a step pays to a task, or ABSENT. So any step can be looked up without those before.
    """

    def __init__(
        self,
        spec: ScheduleSpec,
        *,
        sizes: Mapping[str, int],
        rows_a_visit: Mapping[str, int],
        epochs: float | None,
        steps: int | None,
        seed: Sequence[int],
        subsets: Mapping[str, Subset] | None = None,
    ) -> None:
        self.tasks = list(sizes)
        self._whole = dict(sizes)
        self._subsets = dict(subsets or {})
        sizes = {task: self._pass_size(task) for task in self.tasks}
        self._sizes = sizes
        self._rows = dict(rows_a_visit)
        self._seed = tuple(seed)
        passes = {task: -(-sizes[task] // rows_a_visit[task]) for task in self.tasks}
        present, self.steps_per_epoch = _present(
            spec, sizes=sizes, passes=passes, epochs=epochs, steps=steps, seed=self._seed
        )
        self.visits = _visits(present)
        self._permutation = lru_cache(maxsize=len(self.tasks))(self._new_permutation)

    def _pass_size(self, task: str) -> int:
        return self._subsets[task].count if task in self._subsets else self._whole[task]

    def __len__(self) -> int:
        return len(self.visits)

    def ends_epoch(self, step: int) -> bool:
        """Whether an epoch is complete after this step (numbered from 0), or the stage is."""
        return (step + 1) % self.steps_per_epoch == 0 or step + 1 == len(self)

    def draws(self, step: int) -> list[Draw]:
        """What a step trains on."""
        visits = self.visits[step]
        return [
            Draw(task, self._rows_of(index, int(visits[index])))
            for index, task in enumerate(self.tasks)
            if visits[index] != ABSENT
        ]

    def turn_to(self, task: int, *, step: int) -> None:
        """From a step on, train this task (by its place among the tasks) alone."""
        present = self.visits != ABSENT
        present[step:] = np.arange(len(self.tasks)) == task
        self.visits = _visits(present)

    def _rows_of(self, index: int, visit: int) -> NDArray[np.int64]:
        size, rows = self._sizes[self.tasks[index]], self._rows[self.tasks[index]]
        turn, slot = divmod(visit, -(-size // rows))
        return self._permutation(index, turn)[slot * rows : (slot + 1) * rows]

    def _new_permutation(self, index: int, turn: int) -> NDArray[np.int64]:
        size = self._whole[self.tasks[index]]
        generator = np.random.default_rng([*self._seed, 1, index, turn])
        subset = self._subsets.get(self.tasks[index])
        if subset is None:
            return generator.permutation(size)
        if subset.likely is None:
            return generator.permutation(size)[: subset.count]
        return generator.choice(size, subset.count, p=subset.likely)


def _visits(present: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(present, np.cumsum(present, axis=0) - 1, ABSENT)


def _present(
    spec: ScheduleSpec,
    *,
    sizes: Mapping[str, int],
    passes: Mapping[str, int],
    epochs: float | None,
    steps: int | None,
    seed: tuple[int, ...],
) -> tuple[NDArray[np.bool_], int]:
    """Which tasks each step visits, bool [steps, tasks], and the steps of an epoch."""
    if spec.kind in ("random", "temperature", "annealed"):
        length = spec.steps_per_epoch or sum(passes.values())
        total = _total(length, epochs=epochs, steps=steps)
        return _drawn(spec, sizes=sizes, total=total, seed=seed), length
    if spec.kind == "needs":
        length = spec.steps_per_epoch or sum(passes.values())
        total = _total(length, epochs=epochs, steps=steps)
        # In turn until the first score says who needs it most.
        return _one_hot(np.arange(total) % len(sizes), len(sizes)), length
    epoch = _epoch(spec, passes)
    total = _total(len(epoch), epochs=epochs, steps=steps)
    turns = -(-total // len(epoch))
    if spec.kind == "proportional":
        generators = [np.random.default_rng([*seed, 0, turn]) for turn in range(turns)]
        walk = np.concatenate([generator.permutation(epoch) for generator in generators])
    else:
        walk = np.tile(epoch, (turns, 1))
    return walk[:total], len(epoch)


def _total(epoch: int, *, epochs: float | None, steps: int | None) -> int:
    return steps if steps is not None else max(1, round((epochs or 1) * epoch))


def _epoch(spec: ScheduleSpec, passes: Mapping[str, int]) -> NDArray[np.bool_]:
    """One epoch of the kinds that walk the data, bool [steps, tasks]."""
    tasks = list(passes)
    if spec.kind == "together":
        longest = max(passes.values())
        ends = [longest if spec.walk == "cycle" else passes[task] for task in tasks]
        return np.arange(longest)[:, None] < np.array(ends)
    order = [tasks.index(task) for task in spec.order or tasks]
    if spec.kind == "round-robin":
        sequence = _round_robin(order, list(passes.values()), cycle=spec.walk == "cycle")
    else:
        sequence = [index for index in order for _ in range(passes[tasks[index]])]
    return _one_hot(np.array(sequence), len(tasks))


def _one_hot(chosen: NDArray[np.int64], tasks: int) -> NDArray[np.bool_]:
    hot: NDArray[np.bool_] = chosen[:, None] == np.arange(tasks)
    return hot


def _round_robin(order: list[int], passes: list[int], *, cycle: bool) -> list[int]:
    """Batch by batch in order, until every task that stands in it has been walked once."""
    left = {index: passes[index] for index in order}
    sequence: list[int] = []
    while any(count > 0 for count in left.values()):
        for index in order:
            if left[index] > 0 or cycle:
                sequence.append(index)
                left[index] -= 1
    return sequence


def _drawn(
    spec: ScheduleSpec, *, sizes: Mapping[str, int], total: int, seed: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Tasks drawn at random for each step, bool [total, tasks]."""
    likely = np.array(
        [_likelihoods(spec, sizes, step / max(1, total - 1)) for step in range(total)]
    )
    bounds = np.cumsum(likely / likely.sum(axis=1, keepdims=True), axis=1)
    draws = np.random.default_rng([*seed, 0]).random((total, 1))
    chosen = np.minimum((draws >= bounds).sum(axis=1), len(sizes) - 1)
    return _one_hot(chosen, len(sizes))


def _likelihoods(spec: ScheduleSpec, sizes: Mapping[str, int], progress: float) -> list[float]:
    if spec.kind == "random":
        weights = spec.weights or {}
        return [weights.get(task, 1.0) for task in sizes]
    annealed = 1.0 - (1.0 - ANNEALED_TO) * progress
    exponent = annealed if spec.kind == "annealed" else 1.0 / spec.temperature
    return [float(size) ** exponent for size in sizes.values()]
