"""The whole story as a user lives it: train, evaluate, predict, export, use elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet as package

STAGES = """
[[stages]]
name = "train"
steps = 24
batch = 16
optimiser = { lr = 2e-3 }

[evaluation]
every = 12
"""
TEXTS = ["A dull and lifeless film.", "The camera work of this comedy is a triumph!", "naïve 😀"]


@pytest.mark.usefixtures("on_cpu")
def test_from_files_to_vectors_in_another_library(
    tercet: Any,
    here: Any,
    write_recipe: Any,
    train_arguments: Any,
    sample_data: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    trained = tercet.succeed(*train_arguments(write_recipe(STAGES), out))
    assert trained.out.splitlines() == [str(out / "model")]
    assert "dev after step 24: score " in trained.err
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 25))

    figures = tmp_path / "figures.json"
    measured = here("evaluate", out, "--data", sample_data, "--json", figures)
    assert measured.code == 0, measured.err
    assert re.search(r"sentiment\taccuracy\*\t.*\tsingle\t60\n", measured.out)
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    tasks = json.loads(figures.read_text("utf-8"))["suites"]["tasks"]["tasks"]
    for task, modes in summary["dev"].items():
        for mode, metrics in modes.items():
            for metric, value in metrics.items():
                figure = tasks[task]["modes"][mode]["metrics"][metric]
                assert figure["value"] == pytest.approx(value)
                assert figure["interval"] is not None

    (sentiment,) = predict(tercet.run, out, "sentiment", "A dull and lifeless film.")
    assert sentiment["text"] == "A dull and lifeless film."
    assert sum(sentiment["probabilities"].values()) == pytest.approx(1.0, abs=1e-4)
    assert sentiment["name"].endswith(("negative", "neutral", "positive"))
    (paraphrase,) = predict(here, out, "paraphrase", "Who is it?", "Who might it be?")
    assert 0.0 <= paraphrase["probability"] <= 1.0
    (similarity,) = predict(here, out, "similarity", "A man cuts bread.", "A man cuts bread.")
    assert similarity["similarity"] == pytest.approx(5.0, abs=1e-3)

    exported = tmp_path / "exported"
    tercet.succeed("export", out, "--out", exported)
    from sentence_transformers import SentenceTransformer

    vectors = SentenceTransformer(str(exported), device="cpu").encode(TEXTS)
    ours = package.load(out, device="cpu").embed(TEXTS)
    np.testing.assert_allclose(vectors, ours, atol=1e-5)

    fast = tmp_path / "fast"
    tercet.succeed("export", out, "--format", "onnx-int8", "--out", fast)
    (again,) = predict(tercet.run, fast, "sentiment", "A dull and lifeless film.")
    assert again["probabilities"] == pytest.approx(sentiment["probabilities"], abs=0.05)
    measured = here("evaluate", fast, "--data", sample_data)
    assert measured.code == 0, measured.err
    assert re.search(r"sentiment\taccuracy\*\t.*\tsingle\t60\n", measured.out)


def predict(run: Any, model: Path, task: str, *texts: str) -> list[dict[str, Any]]:
    given = [part for text in texts for part in ("--text", text)]
    ended = run("predict", task, *given, "--model", model)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]
