"""Documents of evaluations made by hand, as `tercet evaluate --json` writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.evaluate.bootstrap import interval
from tercet.evaluate.calibration import measure_calibration
from tercet.evaluate.metrics import classification_metrics, grade_metrics
from tercet.evaluate.run_history import Moment, Remembered, RunHistory
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

SENTIMENT = ["negative", "neutral", "positive"]
PARAPHRASE = ["different", "paraphrase"]
ROWS = 60


def mode_block(labels: np.ndarray, predictions: np.ndarray) -> dict[str, Any]:
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
    metric: str, modes: dict[str, Any], file: str, *, classes: list[str] | None = None
) -> dict[str, Any]:
    return {
        "files": [file],
        "rows": ROWS,
        "skipped": [],
        "metric": metric,
        "classes": classes,
        "modes": modes,
    }


def make_tasks(skill: float, seed: int) -> dict[str, Any]:
    truth, noise = np.random.default_rng(7), np.random.default_rng(seed)
    classes, pairs = truth.integers(0, 3, ROWS), truth.integers(0, 2, ROWS)
    grades = truth.uniform(0, 5, ROWS)
    scores = noise.normal(size=(ROWS, 3)) + 2.0 * skill * np.eye(3)[classes]
    likely = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    same = 1 / (1 + np.exp(-noise.normal(size=ROWS) - skill * (2 * pairs - 1)))
    said = np.clip(skill * grades + noise.normal(size=ROWS), 0, 5)
    single = {"single": mode_block(classes, likely)}
    bi = {"bi": mode_block(pairs, np.stack([1 - same, same], axis=1))}
    graded = {"bi": mode_block(grades, said)}
    return {
        "sentiment": task_block("accuracy", single, "sst-dev.csv", classes=SENTIMENT),
        "paraphrase": task_block("accuracy", bi, "quora-dev.csv", classes=PARAPHRASE),
        "similarity": task_block("pearson", graded, "sts-dev.csv"),
    }


def make_document(name: str = "model", *, skill: float = 1.0, seed: int = 0) -> dict[str, Any]:
    """skill: how far predictions follow the labels"""
    tasks = make_tasks(skill, seed)
    return {
        "schema": 3,
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
            "without_leaked_pairs": {"STS12": one_set, "STS-B": {**one_set, "pairs": 3}},
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


HEADED: dict[str, Any] = {
    "sentiment": {
        "data": {"layout": "cs224n-sst"},
        "labels": ["0", "1", "2", "3", "4"],
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
    },
    "paraphrase": {
        "data": {"layout": "cs224n-quora"},
        "labels": ["different", "paraphrase"],
        "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
        "bi": {
            "head": {"kind": "features", "features": ["absdiff", "product"]},
            "objective": {"kind": "cross-entropy"},
        },
    },
    "similarity": {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "mean-squared-error"}},
    },
}


@pytest.fixture
def headed(tiny_encoder: Path) -> Model:
    """A tiny model with heads for sentiment, paraphrase and similarity that know nothing yet."""
    tasks = {name: TaskSpec.model_validate(block) for name, block in HEADED.items()}
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=tasks)
    return Model(network, Tokenizer.load(tiny_encoder), info)


@pytest.fixture
def suite_data(sample_data: Path, tmp_path: Path) -> Path:
    """The sample's dev files with a few pairs of STS-B, HANS and PAWS, in their layouts."""
    for path in sample_data.glob("*-dev.csv"):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        (tmp_path / path.name).write_text("".join(lines[:41]), "utf-8")
    rows = [line.split("\t") for line in (tmp_path / "sts-dev.csv").read_text().splitlines()[1:]]
    pairs = [(row[2].strip('"'), row[3].strip('"'), row[4]) for row in rows]
    files = {
        "senteval/STS/STSBenchmark/sts-test.csv": [
            f"a\tb\tc\t{i}\t{grade}\t{one}\t{two}" for i, (one, two, grade) in enumerate(pairs)
        ],
        "nli/eval/hans.tsv": [
            f"{one}\t{two}\t{'non-' * (i % 2)}entailment\t{'subsequence' if i % 3 else 'other'}"
            for i, (one, two, _) in enumerate(pairs)
        ],
        "paws/dev.tsv": [f"{i}\t{one}\t{two}\t{i % 2}" for i, (one, two, _) in enumerate(pairs)],
    }
    for name, lines in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path
