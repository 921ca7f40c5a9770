"""A linear model on the vectors of the untouched encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

import tercet
from fit_peers.jobs import Predict, Task

# The package imports its parts when they are first used: here, before the clock starts.
load = tercet.load


def fit(task: Task) -> tuple[Predict, dict[str, Any]]:
    """Logistic regression, or ridge for grades, on u, or on (u; v; |u - v|; u * v) of a pair."""
    encoder = load(task.setting.encoder, device=task.setting.device)

    def features(inputs: list[tuple[str, ...]]) -> np.ndarray:
        vectors = [encoder.embed(list(texts)) for texts in zip(*inputs, strict=True)]
        if len(vectors) == 1:
            return vectors[0]
        u, v = vectors
        return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)

    vectors = features([texts for texts, _ in task.rows])
    if task.kind == "grades":
        model = Ridge(alpha=1.0).fit(vectors, [float(label) for _, label in task.rows])
        settings = {"model": "Ridge", "alpha": 1.0}
    else:
        model = LogisticRegression(C=1.0, max_iter=1000)
        model.fit(vectors, [label for _, label in task.rows])
        settings = {"model": "LogisticRegression", "C": 1.0, "max_iter": 1000}
    return lambda inputs: model.predict(features(inputs)).tolist(), settings
