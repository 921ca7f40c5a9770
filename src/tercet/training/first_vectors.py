"""Rows encoded before training, for trainings that begin with the same encoder again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from tercet.specs import Mode, StageSpec
from tercet.training.encoded_rows import Encoded, EncodedRows
from tercet.training.preparation import Prepared


def untouched_stages(stages: Sequence[StageSpec]) -> int:
    """How many of the first stages only fit heads, and leave the encoder as it was."""
    tuning = (number for number, stage in enumerate(stages) if not stage.solve)
    return next(tuning, len(stages))


class FirstVectors:
    """What encoders give for rows before they are trained; the same rows are encoded once.

    It keeps the vectors of all rows that it is given, so that these should be few.

    clock: seconds that never go back
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[Hashable, EncodedRows] = {}
        self._seconds: dict[Hashable, float] = {}

    def of(self, prepared: Prepared) -> Encoded:
        """The rows of all heads that are fitted before the encoder is trained, but for those of
        tasks with side weights, which are another encoder."""
        return {key: self._rows(prepared, *key) for key in _fitted_first(prepared)}

    def seconds(self, prepared: Prepared, task: str, mode: Mode) -> float:
        """How long it took to encode such rows."""
        self._rows(prepared, task, mode)
        return self._seconds[_key(prepared, task, mode)]

    def _rows(self, prepared: Prepared, task: str, mode: Mode) -> EncodedRows:
        key = _key(prepared, task, mode)
        if key not in self._known:
            began = self._clock()
            columns = prepared.tables[task].columns
            rows = EncodedRows.of(prepared.engine(bf16=False), task, mode, columns)
            self._known[key], self._seconds[key] = rows, self._clock() - began
        return self._known[key]


def _fitted_first(prepared: Prepared) -> list[tuple[str, Mode]]:
    """The tasks and modes of these heads."""
    recipe = prepared.recipe
    stages = recipe.stages[: untouched_stages(recipe.stages)]
    names = {name for stage in stages for name in recipe.stage_tasks(stage)}
    return [
        (name, mode)
        for name in recipe.tasks
        if name in names and prepared.network.side_of(name) is None
        for mode in recipe.tasks[name].predicting_modes
    ]


def _key(prepared: Prepared, task: str, mode: Mode) -> Hashable:
    """Everything that decides the vectors."""
    spec, table = prepared.recipe.encoder, prepared.tables[task]
    return prepared.weights, prepared.network.pooling, spec.max_tokens, table.digest(), mode
