"""SetFit: contrastive fine-tuning on pairs of the labelled rows, then a logistic head."""

from __future__ import annotations

import time
from typing import Any

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments
from transformers import TrainerCallback

from fit_peers.jobs import Predict, Task

# 20 is the R of its paper. The default, None, takes all pairs of rows: 180,000 of 600 rows.
SETTINGS = {"num_iterations": 20, "batch_size": 16, "num_epochs": 1}


WARM_UP = 5
"""Steps that do not count for the pace."""


class Pace(TrainerCallback):  # type: ignore[misc]
    """Stops training after some steps and knows how long the others would have taken."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.times: list[float] = []
        self.all_steps = steps

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.times.append(time.perf_counter())
        self.all_steps = state.max_steps
        control.should_training_stop = len(self.times) >= self.steps

    @property
    def seconds_left(self) -> float:
        pace = (self.times[-1] - self.times[WARM_UP]) / (len(self.times) - WARM_UP - 1)
        return pace * (self.all_steps - len(self.times))


def fit(task: Task) -> tuple[Predict, dict[str, Any]]:
    device = task.setting.device
    classes = sorted({label for _, label in task.rows})
    rows = Dataset.from_dict(
        {
            "text": [texts[0] for texts, _ in task.rows],
            "label": [classes.index(label) for _, label in task.rows],
        }
    )
    model = SetFitModel.from_pretrained(task.setting.encoder, device=device, labels=classes)
    # Checkpoints and loggers cost time and change nothing.
    arguments = TrainingArguments(
        output_dir=str(task.scratch),
        seed=task.seed,
        save_strategy="no",
        report_to="none",
        show_progress_bar=False,
        **SETTINGS,
    )
    pace = Pace(task.setting.steps) if task.setting.steps is not None else None
    callbacks = [pace] if pace is not None else []
    Trainer(model=model, args=arguments, train_dataset=rows, callbacks=callbacks).train()

    def predict(inputs: list[tuple[str, ...]]) -> list[str]:
        texts = [row[0] for row in inputs]
        return list(model.predict(texts, batch_size=64, show_progress_bar=False))

    settings = {**SETTINGS, "head": "LogisticRegression"}
    if pace is not None and pace.all_steps > len(pace.times):
        settings |= {"steps": len(pace.times), "of steps": pace.all_steps}
        settings |= {"seconds left": round(pace.seconds_left, 2)}
    return predict, settings
