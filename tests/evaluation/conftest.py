"""A tiny model with heads, and small data for all suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.suite import Context, Suite, SuiteResult
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

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
def run():
    """Runs a suite on a model, or on texts that it has encoded, and a data folder."""

    def run_suite(
        suite: Suite, model: Model | EncodedTexts, data: Path, **options: Any
    ) -> SuiteResult:
        texts = EncodedTexts(model) if isinstance(model, Model) else model
        return suite.run(Context(texts, data, **options))

    return run_suite


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
