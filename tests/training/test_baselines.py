"""What a run measures before its first step, and what it says about itself at its end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import f1_score

from tercet.data.examples import read_examples
from tercet.evaluation.simple_scores import SimpleScores, read_baselines, write_baselines
from tercet.model import load
from tercet.recipe import Recipe
from tercet.report.report import Report
from tercet.training.baselines import majority_score
from tercet.training.listener import Silent
from tercet.training.regression import ALPHAS
from tercet.training.run import train_recipe

MLP = {"kind": "mlp"}
FEATURES = {"kind": "features", "features": ["u", "v"]}
TASKS: dict[str, Any] = {
    "sentiment": {
        "data": {"layout": "cs224n-sst"},
        "labels": ["0", "1", "2", "3", "4"],
        "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
    },
    "same": {
        "data": {"layout": "cs224n-quora"},
        "labels": ["no", "yes"],
        "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
    },
    "similarity": {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "bi": {"head": FEATURES, "objective": {"kind": "mean-squared-error"}},
    },
}
ONE = {"steps": 1, "batch": 4, "optimiser": {"lr": 1e-12}}
Train = Callable[..., tuple[Path, list[str]]]


class Hearing(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.fixture
def train(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))

    def run(data: Path, **blocks: Any) -> tuple[Path, list[str]]:
        tree = {
            "name": "measured",
            "summary": "A recipe of the tests",
            "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
            "stages": [ONE],
            **blocks,
        }
        listener, out = Hearing(), tmp_path / "run"
        recipe = Recipe.from_tree(tree, where="measured")
        train_recipe(recipe, data=data, out=out, device="cpu", listener=listener)
        return out, listener.said

    return run


def test_baselines_are_those_of_scikit_learn(
    train: Train, sample_data: Path, tiny_encoder: Path
) -> None:
    run, said = train(sample_data, tasks=TASKS)
    stored = json.loads((run / "baselines.json").read_text())["tasks"]
    untouched = load(tiny_encoder, device="cpu")
    untouched.info = untouched.info.model_copy(update={"max_tokens": 24})
    tasks = load(run).tasks

    def inputs(name: str, split: Any) -> tuple[Any, Any]:
        examples = read_examples(tasks[name], split, sample_data)
        parts = [untouched.embed(column) for column in examples.texts]
        if len(parts) == 2:
            u, v = parts
            parts = [u, v, np.abs(u - v), u * v]
        return parts, examples.labels

    for name in ("sentiment", "same", "similarity"):
        parts, labels = inputs(name, "train")
        lengths = [np.sqrt((part**2).sum(axis=1).mean()) for part in parts]
        rows = np.concatenate([p / length for p, length in zip(parts, lengths, strict=True)], 1)
        parts, expected = inputs(name, "dev")
        dev = np.concatenate([p / length for p, length in zip(parts, lengths, strict=True)], 1)
        known = stored[name]
        assert (known["rows"], known["method"]) == (len(labels), "dev")
        if name == "similarity":
            found = RidgeCV(alphas=ALPHAS).fit(rows, labels).predict(dev)
            assert known["metric"] == "pearson"
            assert known["linear"] == pytest.approx(pearsonr(expected, found).statistic, abs=1e-3)
            assert "majority" not in known
            continue
        linear = LogisticRegression(C=1.0, max_iter=1000).fit(rows, labels)
        most = DummyClassifier(strategy="most_frequent").fit(rows, labels)
        assert known["linear"] == pytest.approx(linear.score(dev, expected), abs=0.011)
        assert known["majority"] == pytest.approx(most.score(dev, expected))
        shown = f"majority class {known['majority']:.3f}, linear model on the encoder "
        assert any(s.startswith(f"{name}: simple baselines by") and shown in s for s in said)


def test_the_report_shows_them(train: Train, sample_data: Path) -> None:
    from tercet.evaluation.evaluation import evaluate

    run, _ = train(sample_data, tasks={"sentiment": TASKS["sentiment"]})
    linear = json.loads((run / "baselines.json").read_text())["tasks"]["sentiment"]["linear"]
    page = Report([evaluate(load(run), sample_data, suites=["tasks"])], run=run).to_html()
    assert f"{linear:.3f}" in page
    assert "linear model" in page.lower()


def test_without_dev_rows_they_are_cross_validated(train: Train, tmp_path: Path) -> None:
    rows = [f"{'film' if row % 3 else 'rain rain'} {row},{'ab'[row % 3 > 0]}" for row in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,kind", *rows]), "utf-8")
    task = {**TASKS["sentiment"], "labels": ["a", "b"]}
    task["data"] = {"train": "rows.csv", "texts": "text", "label": "kind"}
    run, said = train(tmp_path, tasks={"kind": task})
    stored = json.loads((run / "baselines.json").read_text())["tasks"]["kind"]
    assert stored["method"] == "5-fold cross-validation"
    assert stored["majority"] == pytest.approx(40 / 60)
    assert stored["linear"] > stored["majority"]
    assert any("(5-fold cross-validation)" in sentence for sentence in said)


def test_several_labels_of_most_rows() -> None:
    from tercet.specs import TaskSpec

    task = TaskSpec.model_validate(
        {
            "data": {"train": "x.csv", "texts": "text", "label": "tags"},
            "labels": ["a", "b", "c"],
            "multi_label": True,
            "single": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
        }
    )
    labels = (np.random.default_rng(0).random((50, 3)) < [0.9, 0.7, 0.1]).astype(np.int64)
    expected = f1_score(labels, np.tile([1, 1, 0], (50, 1)), average="micro")
    assert majority_score(task, labels, labels) == pytest.approx(expected)


@pytest.mark.parametrize("has_dev", [True, False])
def test_the_linear_model_of_several_labels_has_thresholds_of_its_own(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_dev: bool
) -> None:
    """A rare label that its word foretells only in part: one half would never predict it."""
    draw = np.random.default_rng(3)
    for split in ("train", "dev"):
        lines = []
        for row in range(120):
            rare = row % 4 == 0
            tags = (["rare"] if rare and draw.random() < 0.45 else []) + ["often"] * (row % 2)
            lines.append(f"{'rain rain' if rare else 'a film'} {row},{';'.join(tags)}")
        (tmp_path / f"{split}.csv").write_text("\n".join(["text,tags", *lines]), "utf-8")
    task = {
        "data": {"train": "train.csv", "texts": "text", "label": "tags", "label_separator": ";"},
        "labels": ["often", "rare"],
        "multi_label": True,
        "metric": "macro-f1",
        "single": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
    }
    if has_dev:
        task["data"]["dev"] = "dev.csv"

    def linear() -> float:
        run, _ = train(tmp_path, tasks={"tags": task})
        found = json.loads((run / "baselines.json").read_text())["tasks"]["tags"]["linear"]
        shutil.rmtree(run)
        return float(found)

    chosen = linear()
    monkeypatch.setattr("tercet.training.baselines.choose_label_thresholds", lambda *_: [0.5, 0.5])
    assert chosen > linear() + 0.1


def test_scores_are_kept_and_named_in_a_sentence(tmp_path: Path) -> None:
    scores = SimpleScores(metric="pearson", linear=0.5, rows=12, method="dev")
    assert scores.sentence("alike") == (
        "alike: simple baselines by pearson: linear model on the encoder 0.500 (dev)."
    )
    write_baselines(tmp_path, {"alike": scores})
    stored = json.loads((tmp_path / "baselines.json").read_text())["tasks"]
    assert stored["alike"] == {"metric": "pearson", "linear": 0.5, "rows": 12, "method": "dev"}
    assert read_baselines(tmp_path) == {"alike": scores}


def test_a_constant_model_is_warned_about_at_the_end(train: Train, tmp_path: Path) -> None:
    """The learning rate is far too high."""
    for split, every in (("train", 3), ("dev", 2)):
        rows = [f"{'rain' if row % every else 'a film film film'} {row},{'ab'[row % every > 0]}"
                for row in range(48)]  # fmt: skip
        (tmp_path / f"{split}.csv").write_text("\n".join(["text,kind", *rows]), "utf-8")
    task = {**TASKS["sentiment"], "labels": ["a", "b"]}
    task["data"] = {"train": "train.csv", "dev": "dev.csv", "texts": "text", "label": "kind"}
    stage = {"steps": 8, "batch": 16, "optimiser": {"lr": 3.0, "warmup": 0.0}}
    run, said = train(tmp_path, tasks={"kind": task}, stages=[stage], evaluation={"keep": "last"})
    warnings = json.loads((run / "summary.json").read_text())["warnings"]
    assert any("kind: all 48 rows are predicted to be " in warning for warning in warnings)
    assert any(" is below " in warning for warning in warnings)
    assert [s for s in said if s.startswith("Warning: ")] == [f"Warning: {w}" for w in warnings]
    assert said.index(f"Warning: {warnings[0]}") > said.index(
        next(s for s in said if s.startswith("The model is the one after"))
    )
