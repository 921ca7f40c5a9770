"""tercet.fit, as a user calls it."""

from __future__ import annotations

from typing import Any

from fit_peers.cells import Kind
from fit_peers.jobs import Predict, Task

KINDS: tuple[Kind, ...] = ("texts", "pairs", "grades")


def fit(task: Task) -> tuple[Predict, dict[str, Any]]:
    import tercet

    setting = task.setting
    name = "task"
    result = tercet.fit(
        {name: task.file},
        encoder=setting.encoder,
        seed=task.seed,
        out=task.scratch / "run",
        minutes=setting.minutes,
        device=setting.device,
    )

    def predict(inputs: list[tuple[str, ...]]) -> list[str] | list[float]:
        texts = [row[0] for row in inputs] if task.kind == "texts" else inputs
        answers = result.model.predictions(name, texts)
        if task.kind == "grades":
            return [float(answer) for answer in answers]
        return [answer.name for answer in answers]

    return predict, {"minutes": setting.minutes}
