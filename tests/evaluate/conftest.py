"""Documents of evaluations made by hand, as `tercet evaluate --json` writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tercet.evaluate.bootstrap import interval
from tercet.evaluate.metrics import classification_metrics, grade_metrics

SENTIMENT = ["negative", "neutral", "positive"]
ROWS = 60


def gear_block(labels: np.ndarray, predictions: np.ndarray, *, graded: bool) -> dict[str, Any]:
    figures = (grade_metrics if graded else classification_metrics)(labels, predictions)
    found = {name: interval(name, labels, predictions, 1) for name in figures}
    return {
        "metrics": {
            name: {"value": value, "interval": found[name] and list(found[name])}
            for name, value in figures.items()
        },
        "labels": labels.tolist(),
        "predictions": predictions.tolist(),
    }


def task_block(metric: str, gears: dict[str, Any], file: str) -> dict[str, Any]:
    return {"files": [file], "rows": ROWS, "skipped": [], "metric": metric, "gears": gears}


def make_document(name: str = "model", *, skill: float = 1.0, seed: int = 0) -> dict[str, Any]:
    """skill: how far predictions follow the labels"""
    truth = np.random.default_rng(7)
    noise = np.random.default_rng(seed)
    classes, pairs = truth.integers(0, 3, ROWS), truth.integers(0, 2, ROWS)
    grades = truth.uniform(0, 5, ROWS)
    scores = noise.normal(size=(ROWS, 3)) + 2.0 * skill * np.eye(3)[classes]
    likely = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    logits = noise.normal(size=ROWS) + skill * (2 * pairs - 1)
    said = np.clip(skill * grades + noise.normal(size=ROWS), 0, 5)
    single = gear_block(classes, likely, graded=False)
    bi = gear_block(pairs, 1 / (1 + np.exp(-logits)), graded=False)
    graded = gear_block(grades, said, graded=True)
    return {
        "schema": 1,
        "model": {
            "name": name,
            "encoder": "tiny",
            "recipe": "tercet/demo",
            "width": 32,
            "tasks": {
                "sentiment": {"labels": SENTIMENT},
                "paraphrase": {"labels": ["different", "paraphrase"]},
                "similarity": {"range": [0, 5]},
            },
        },
        "data": "sample",
        "versions": {"tercet": "0.1.0", "torch": "2.13.0"},
        "machine": {"processor": "cpu"},
        "seconds": 1.5,
        "suites": {
            "tasks": {
                "tasks": {
                    "sentiment": task_block("accuracy", {"single": single}, "sst-dev.csv"),
                    "paraphrase": task_block("accuracy", {"bi": bi}, "quora-dev.csv"),
                    "similarity": task_block("pearson", {"bi": graded}, "sts-dev.csv"),
                },
                "overall": {"mean": 0.7, "mean-shifted": 0.75},
            }
        },
        "missing": [],
    }


def make_texts() -> dict[str, tuple[list[str], ...]]:
    sentence = "a quiet film about nothing that stays with you for a very long time"
    words = sentence.split()
    first = [f"{' '.join(words[: 2 + row % 12])} {row}" for row in range(ROWS)]
    second = [text.upper() for text in first]
    return {"sentiment": (first,), "paraphrase": (first, second), "similarity": (first, second)}


@pytest.fixture
def document() -> Callable[..., dict[str, Any]]:
    return make_document


@pytest.fixture
def texts() -> dict[str, tuple[list[str], ...]]:
    return make_texts()
