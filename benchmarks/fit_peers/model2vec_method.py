"""model2vec: a classifier on static word-piece vectors distilled from the same encoder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from model2vec import StaticModel
from model2vec.train import StaticModelForClassification

from fit_peers.jobs import Predict, Task


def distil(encoder: Path, folder: Path) -> float:
    """Distil a static model with model2vec's defaults; returns the seconds it took."""
    from model2vec.distill import distill

    start = time.perf_counter()
    distill(str(encoder)).save_pretrained(folder)
    return time.perf_counter() - start


def fit(task: Task) -> tuple[Predict, dict[str, Any]]:
    static = StaticModel.from_pretrained(task.setting.encoder)
    model = StaticModelForClassification.from_static_model(model=static)
    texts = [texts[0] for texts, _ in task.rows]
    labels = [label for _, label in task.rows]
    model.fit(texts, labels, device=task.setting.device, random_seed=task.seed)
    settings = {"dimensions": static.dim, "vocabulary": len(static.tokens)}
    return lambda inputs: model.predict([row[0] for row in inputs]).tolist(), settings
