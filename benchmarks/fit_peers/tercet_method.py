"""tercet.fit, as a user calls it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import tercet
from fit_peers.jobs import Predict, Task

# The package imports its parts when they are first used: here, before the clock starts, and with
# them what SetFit imports with its own.
train = tercet.fit
for part in ("sklearn.linear_model", "sklearn.metrics", "torch._dynamo"):
    import_module(part)


def fit(task: Task) -> tuple[Predict, dict[str, Any]]:
    setting = task.setting
    name = "task"
    result = train(
        task.file,
        task=name,
        encoder=setting.encoder,
        seed=task.seed,
        out=task.scratch / "run",
        minutes=setting.minutes,
        device=setting.device,
    )

    def predict(inputs: list[tuple[str, ...]]) -> list[str] | list[float]:
        texts = [row[0] for row in inputs] if task.kind == "texts" else inputs
        answers = result.model.predict(name, texts)
        if task.kind == "grades":
            return [float(answer) for answer in answers]
        return [answer.name for answer in answers]

    is_tuned = any(stage.name == "tune" for stage in result.recipe.stages)
    return predict, {"minutes": setting.minutes, "kept": "tuned" if is_tuned else "linear"}
