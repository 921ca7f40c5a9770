"""SetFit: contrastive fine-tuning on pairs of the labelled rows, then a logistic head."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments

from fit_peers.jobs import Predict, Task

# 20 is the R of its paper. The default, None, takes all pairs of rows: 180,000 of 600 rows.
SETTINGS = {"num_iterations": 20, "batch_size": 16, "num_epochs": 1}


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
    Trainer(model=model, args=arguments, train_dataset=rows).train()

    def predict(inputs: list[tuple[str, ...]]) -> list[str]:
        texts = [row[0] for row in inputs]
        return list(model.predict(texts, batch_size=64, show_progress_bar=False))

    return predict, {**SETTINGS, "head": "LogisticRegression"}
