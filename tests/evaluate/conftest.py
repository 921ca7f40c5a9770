"""Documents of evaluations made by hand, as `tercet evaluate --json` writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tercet.evaluate.bootstrap import interval
from tercet.evaluate.calibration import measure_calibration
from tercet.evaluate.metrics import classification_metrics, grade_metrics
from tercet.evaluate.run_history import Moment, Remembered, RunHistory

SENTIMENT = ["negative", "neutral", "positive"]
PARAPHRASE = ["different", "paraphrase"]
ROWS = 60


def gear_block(labels: np.ndarray, predictions: np.ndarray) -> dict[str, Any]:
    graded = predictions.ndim == 1
    figures = (grade_metrics if graded else classification_metrics)(labels, predictions)
    found = {name: interval(name, labels, predictions, 1) for name in figures}
    return {
        "metrics": {
            name: {"value": value, "interval": found[name] and list(found[name])}
            for name, value in figures.items()
        },
        "labels": labels.tolist(),
        "predictions": predictions.tolist(),
        "calibration": None if graded else measure_calibration(labels, predictions).to_json(),
    }


def task_block(
    metric: str, gears: dict[str, Any], file: str, *, classes: list[str] | None = None
) -> dict[str, Any]:
    return {
        "files": [file],
        "rows": ROWS,
        "skipped": [],
        "metric": metric,
        "classes": classes,
        "gears": gears,
    }


def make_tasks(skill: float, seed: int) -> dict[str, Any]:
    truth, noise = np.random.default_rng(7), np.random.default_rng(seed)
    classes, pairs = truth.integers(0, 3, ROWS), truth.integers(0, 2, ROWS)
    grades = truth.uniform(0, 5, ROWS)
    scores = noise.normal(size=(ROWS, 3)) + 2.0 * skill * np.eye(3)[classes]
    likely = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    same = 1 / (1 + np.exp(-noise.normal(size=ROWS) - skill * (2 * pairs - 1)))
    said = np.clip(skill * grades + noise.normal(size=ROWS), 0, 5)
    single = {"single": gear_block(classes, likely)}
    bi = {"bi": gear_block(pairs, np.stack([1 - same, same], axis=1))}
    graded = {"bi": gear_block(grades, said)}
    return {
        "sentiment": task_block("accuracy", single, "sst-dev.csv", classes=SENTIMENT),
        "paraphrase": task_block("accuracy", bi, "quora-dev.csv", classes=PARAPHRASE),
        "similarity": task_block("pearson", graded, "sts-dev.csv"),
    }


def make_document(name: str = "model", *, skill: float = 1.0, seed: int = 0) -> dict[str, Any]:
    """skill: how far predictions follow the labels"""
    tasks = make_tasks(skill, seed)
    return {
        "schema": 1,
        "model": {
            "name": name,
            "encoder": "tiny",
            "recipe": "tercet/demo",
            "width": 32,
            "tasks": list(tasks),
        },
        "data": "sample",
        "versions": {"tercet": "0.1.0", "torch": "2.13.0"},
        "machine": {"device": "cpu", "gpu": None, "threads": 2},
        "seconds": 1.5,
        "suites": {
            "tasks": {"tasks": tasks, "overall": {"mean": 0.7, "mean-shifted": 0.75}},
        },
        "missing": [],
    }


def make_texts() -> dict[str, tuple[list[str], ...]]:
    sentence = "a quiet film about nothing that stays with you for a very long time"
    words = sentence.split()
    first = [f"{' '.join(words[: 2 + row % 12])} {row}" for row in range(ROWS)]
    second = [text.upper() for text in first]
    return {"sentiment": (first,), "paraphrase": (first, second), "similarity": (first, second)}


def make_suites() -> dict[str, Any]:
    """What the suites beyond `tasks` leave."""
    half = {"value": 0.5, "interval": [0.4, 0.6]}
    one_set = {
        "pairs": 4,
        "ungraded": 0,
        "spearman": half,
        "pearson": {"value": None, "interval": None},
        "grades": [0.0, 1.0, 4.0, 5.0],
        "cosines": [0.1, 0.2, 0.9, 0.8],
    }
    order = {
        "pairs": 10,
        "accuracy": half,
        "fooled": 0.75,
        "high_overlap": 4,
        "fooled_high_overlap": None,
        "heuristics": {"lexical_overlap": 0.9},
    }
    example = {"texts": ["It is."], "changed": ["It is not."], "predicted": 0}
    change = {
        "rows": 10,
        "keeps_meaning": False,
        "metric": "accuracy",
        "before": 0.9,
        "after": 0.8,
        "moved": 0.3,
        "examples": [{**example, "predicted_after": 2}],
    }
    return {
        "sts": {
            "sets": {"STS12": one_set, "STS-B": one_set},
            "average": None,
            "without_leaked_pairs": one_set,
            "average_without_leaked_pairs": None,
        },
        "transfer": {
            "tasks": {"MR": {"rows": 10, "metrics": {"accuracy": half}, "penalties": [1.0]}},
            "average": None,
        },
        "robustness": {
            "word_order": {"PAWS": {"paraphrase": {"bi": order}}},
            "changes": {"sentiment": {"single": {"negation": change}}},
        },
        "geometry": {
            "alignment": 0.2,
            "uniformity": -2.0,
            "anisotropy": None,
            "sentences": 40,
            "spectrum": {"shares": [0.5, 0.3, 0.2], "effective_rank": 2.8},
            "map": {
                "method": "pca",
                "points": [[row % 7, row % 5] for row in range(40)],
                "groups": ["sentiment", "paraphrase"] * 20,
                "explained": [0.3, 0.2],
            },
        },
    }


@pytest.fixture
def suites() -> dict[str, Any]:
    return make_suites()


@pytest.fixture
def history() -> RunHistory:
    """Of a run of two stages."""
    steps = [(float(step), 1.0 / step) for step in range(1, 9)]
    kept = {"sentiment": Remembered(0.9, None), "similarity": Remembered(None, None)}
    lost = {"sentiment": Remembered(0.7, 0.2), "similarity": Remembered(0.5, None)}
    return RunHistory(
        name="tercet/demo",
        steps=8,
        stages=[("first", 1), ("second", 5)],
        losses={"sentiment": steps, "similarity": steps},
        cosines={"sentiment ~ similarity": steps},
        scores={"sentiment": [(4.0, 0.9), (8.0, 0.7)], "score": [(4.0, 0.5), (8.0, 0.6)]},
        metrics={"sentiment": "accuracy", "similarity": "pearson"},
        forgetting=[Moment("first", 4, kept), Moment("second", 8, lost)],
    )


@pytest.fixture
def document() -> Callable[..., dict[str, Any]]:
    return make_document


@pytest.fixture
def texts() -> dict[str, tuple[list[str], ...]]:
    return make_texts()
