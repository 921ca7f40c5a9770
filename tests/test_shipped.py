"""The model that ships: it is there, it answers, and it is as good as its card says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr
from typer.testing import CliRunner

import tercet
from tercet.cli.app import app
from tercet.data.examples import read_examples
from tercet.files import read_json_object
from tercet.model import SHIPPED_FOLDER, Model
from tercet.recipe import Recipe

RESULTS = Path(__file__).parents[1] / "results"
SENTENCES = [
    "A quiet triumph.",
    "A dull and lifeless film.",
    "How do I learn the guitar?",
    "What is the best way to learn guitar?",
    "The train leaves at noon.",
]


@pytest.fixture(scope="module")
def shipped() -> Model:
    return tercet.load()


def test_it_takes_no_more_than_its_share_of_the_package() -> None:
    sketch = SHIPPED_FOLDER / "seen.safetensors"
    assert sketch.stat().st_size <= 4_000_000
    weights = set(SHIPPED_FOLDER.rglob("*.safetensors")) - {sketch}
    assert sum(file.stat().st_size for file in weights) <= 48_000_000


def test_it_knows_the_rows_that_it_was_trained_on(shipped: Model, real_data: Path) -> None:
    sketch = shipped.sketch
    assert sketch is not None
    tasks = Recipe.load("tercet/small").tasks
    for name in ("sentiment", "paraphrase", "similarity"):
        assert sketch.seen(read_examples(tasks[name], "train", real_data).texts).all()
    # It may take a row in a thousand for its own, and never denies one.
    known = read_json_object(RESULTS / "contamination.json")
    seen = sketch.seen(read_examples(tasks["similarity"], "dev", real_data).texts)
    assert 0 <= seen.sum() - known["sets"]["similarity, dev"]["seen"] <= 3
    pairs = read_examples(tasks["paraphrase"], "dev", real_data)
    assert pairs.labels is not None
    implied = sketch.implied(*pairs.texts)
    for label in (1, 0):
        of_file = known["quora-dev"][f"label {label}"]["implied"]
        # Some rows of the files are held out of training.
        assert implied[pairs.labels == label].sum() == pytest.approx(of_file, abs=10)


def test_it_answers_all_three_tasks(shipped: Model) -> None:
    good, bad = shipped.sentiment(SENTENCES[:2])
    assert good.label >= 3
    assert bad.label <= 1
    same, other = shipped.paraphrase([(SENTENCES[2], SENTENCES[3]), (SENTENCES[2], SENTENCES[4])])
    assert same > 0.5 > other
    near, far = shipped.similarity([(SENTENCES[2], SENTENCES[3]), (SENTENCES[2], SENTENCES[4])])
    assert near > 3 > 1.5 > far


def test_it_needs_no_network_and_no_cache(tmp_path: Path) -> None:
    command = "import tercet; print(tercet.load().sentiment(['A quiet triumph.']))"
    environment = {
        "PATH": "", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "TERCET_WEIGHTS": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, env=environment, check=True
    )
    assert "positive" in done.stdout


def test_other_libraries_read_the_same_vectors() -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    peer = sentence_transformers.SentenceTransformer(str(SHIPPED_FOLDER), device="cpu")
    theirs = peer.encode(SENTENCES, normalize_embeddings=True)
    assert np.abs(theirs - tercet.load(device="cpu").embed(SENTENCES)).max() < 1e-5


def test_int8_keeps_its_vectors(shipped: Model, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    command = ["export", "--format", "onnx-int8", "--out", str(tmp_path / "int8")]
    assert CliRunner().invoke(app, command).exit_code == 0
    cosines = (tercet.load(tmp_path / "int8").embed(SENTENCES) * shipped.embed(SENTENCES)).sum(1)
    assert cosines.min() > 0.97


def test_dev_scores_are_those_of_its_card(shipped: Model, real_data: Path) -> None:
    tasks = shipped.info.tasks
    sentiment = read_examples(tasks["sentiment"], "dev", real_data)
    found = [one.label for one in shipped.sentiment(sentiment.texts[0])]
    assert np.mean(np.asarray(found) == sentiment.labels) == pytest.approx(
        _told("sentiment", "single"), abs=0.003
    )
    pairs = read_examples(tasks["paraphrase"], "dev", real_data)
    # All rows would take minutes: the record of the card's scores has those of some rows.
    record = read_json_object(RESULTS / "small.json")["records"]["shipped"]
    every, scores = int(record["values"]["every"]), {row[1]: row[3] for row in record["rows"][1:3]}
    some = list(zip(*pairs.texts, strict=True))[::every]
    assert pairs.labels is not None
    for mode in ("cross", "bi"):
        said = np.asarray(shipped.paraphrase(some, mode=mode)) > 0.5
        measured = float(np.mean(said == pairs.labels[::every]))
        assert measured == pytest.approx(float(record["values"][f"checked {mode}"]), abs=0.002)
        assert _told("paraphrase", mode) == pytest.approx(float(scores[mode]), abs=0.001)
    grades = read_examples(tasks["similarity"], "dev", real_data)
    for mode in ("cross", "bi"):
        said = shipped.similarity(list(zip(*grades.texts, strict=True)), mode=mode)
        measured = pearsonr(said, grades.labels).statistic
        assert measured == pytest.approx(_told("similarity", mode), abs=0.003)


def _told(task: str, mode: str) -> float:
    """The first figure of a task in the card's table."""
    card = (SHIPPED_FOLDER / "README.md").read_text("utf-8")
    found = re.search(rf"^\| {task} \|.*\| {mode} \| \S+ ([\d.]+)", card, re.MULTILINE)
    assert found is not None, card
    return float(found[1])
