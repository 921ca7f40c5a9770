from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.data.table import load_table
from tercet.errors import TercetError
from tercet.evaluation.scoring import overall_of, score_of, score_tables
from tercet.evaluation.suites.tasks import Tasks
from tercet.folders.model_card import Metrics, ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

MLP = {"kind": "mlp"}
BLOCKS: dict[str, Any] = {
    "sentiment": {
        "data": {"layout": "cs224n-sst"},
        "labels": ["0", "1", "2", "3", "4"],
        "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
    },
    "paraphrase": {
        "data": {"layout": "cs224n-quora", "on_bad_row": "skip"},
        "labels": ["different", "paraphrase"],
        "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
    },
    "similarity": {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "bi": {
            "head": {"kind": "cosine"},
            "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
        },
        "cross": {"head": MLP, "objective": {"kind": "mean-squared-error"}},
    },
    "shape": {
        "data": {"layout": "quora-positives"},
        "bi": {"objective": {"kind": "multiple-negatives-ranking"}},
    },
}
TASKS = {name: TaskSpec.model_validate(block) for name, block in BLOCKS.items()}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(tiny_encoder: Path) -> Model:
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=TASKS)
    return Model(network, Tokenizer.load(tiny_encoder), info)


def read(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_metrics_are_those_of_the_models_own_predictions(model, sample_data: Path, run) -> None:
    result = run(Tasks(), model, sample_data)
    rows = read(sample_data, "ids-sst-dev.csv")
    labels = [int(row["sentiment"]) for row in rows]
    found = [sentiment.label for sentiment in model.sentiment([row["sentence"] for row in rows])]
    accuracy = result.tasks["sentiment"].modes["single"].metrics["accuracy"]
    assert accuracy.value == pytest.approx(np.mean(np.equal(labels, found)))
    assert accuracy.interval[0] <= accuracy.value <= accuracy.interval[1]

    rows = read(sample_data, "sts-dev.csv")
    grades = [float(row["similarity"]) for row in rows]
    pairs = [(row["sentence1"], row["sentence2"]) for row in rows]
    for mode in ("cross", "bi"):
        columns = [model.pieces(side) for side in zip(*pairs, strict=True)]
        outputs = model.engine.outputs("similarity", mode, columns)[:, 0]
        expected = np.corrcoef(grades, outputs)[0, 1]
        estimate = result.tasks["similarity"].modes[mode].metrics["pearson"]
        assert estimate.value == pytest.approx(expected, abs=1e-5)
        assert estimate.interval[0] < estimate.value < estimate.interval[1]


def test_correlations_distinguish_grades_outside_the_range(model, sample_data: Path, run) -> None:
    torch.nn.init.constant_(model.network.head("similarity", "cross").layers[0].bias, -50.0)
    found = run(Tasks(), model, sample_data, rows=20).tasks["similarity"].modes["cross"]
    assert (found.predictions == 0.0).all()
    assert found.metrics["pearson"].value is not None
    assert found.to_json()["uncut"] == pytest.approx(found.unclipped, abs=1e-4)


def test_every_task_mode_and_metric_is_measured(model, sample_data: Path, run) -> None:
    result = run(Tasks(), model, sample_data)
    measured = {
        (name, mode): list(found.metrics)
        for name, task in result.tasks.items()
        for mode, found in task.modes.items()
    }
    assert measured == {
        ("sentiment", "single"): ["accuracy", "macro-f1"],
        ("paraphrase", "cross"): ["accuracy", "macro-f1", "f1"],
        ("similarity", "cross"): ["pearson", "spearman"],
        ("similarity", "bi"): ["pearson", "spearman"],
    }
    chosen = [
        result.tasks["sentiment"].modes["single"].metrics["accuracy"].value,
        result.tasks["paraphrase"].modes["cross"].metrics["accuracy"].value,
        result.tasks["similarity"].modes["cross"].metrics["pearson"].value,
    ]
    assert result.overall["mean"] == pytest.approx(np.mean(chosen))
    chosen[2] = (chosen[2] + 1) / 2
    assert result.overall["mean-shifted"] == pytest.approx(np.mean(chosen))


def flat(metrics: Metrics) -> dict[tuple[str, str, str], float | None]:
    return {
        (task, mode, metric): value
        for task, modes in metrics.items()
        for mode, found in modes.items()
        for metric, value in found.items()
    }


def test_scores_inside_training_are_the_same(model, sample_data: Path, run) -> None:
    specs = {name: task for name, task in TASKS.items() if task.predicts}
    tables = {
        name: load_table(spec, "dev", sample_data, model.tokenizer, limit=64)
        for name, spec in specs.items()
    }
    model.network.train()
    metrics = score_tables(model.network, tables, TASKS, model.tokenizer.template, 64, rows=20)
    assert model.network.training
    # Up to rounding: batches are split differently.
    outside = run(Tasks(), model, sample_data, rows=20).values
    assert flat(metrics) == pytest.approx(flat(outside), rel=1e-6)
    assert score_of(metrics, TASKS, "mean") == overall_of(metrics, TASKS)["mean"]
    spearman = metrics["similarity"]["cross"]["spearman"]
    assert score_of(metrics, TASKS, "similarity.spearman") == spearman
    with pytest.raises(TercetError, match="measured by pearson, spearman"):
        score_of(metrics, TASKS, "similarity.f1")


def test_rows_without_a_label_are_counted(model, sample_data: Path, tmp_path: Path, run) -> None:
    lines = (sample_data / "quora-dev.csv").read_text("utf-8").splitlines()
    spoilt = [*lines[:3], lines[3].rpartition("\t")[0] + "\t", *lines[4:]]
    (tmp_path / "quora-dev.csv").write_text("\n".join(spoilt) + "\n", "utf-8")
    result = run(Tasks(), model, tmp_path)
    assert [each.task for each in result.missing] == ["sentiment", "similarity"]
    task = result.tasks["paraphrase"]
    assert [row.line for row in task.skipped] == [4]
    assert task.rows == len(lines) - 2
    assert task.files == ["quora-dev.csv"]


def test_a_model_without_heads_has_nothing_to_measure(tiny_encoder, sample_data, run) -> None:
    import tercet

    with pytest.raises(TercetError, match="can only embed"):
        run(Tasks(), tercet.load(tiny_encoder), sample_data)
