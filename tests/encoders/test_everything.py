"""What works for BERT works for every architecture: training in all its forms, folders, serving."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tercet
from tercet.model import Model
from tercet.nn.folder import load_encoder
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

TEXTS = ["A quiet film that stays with you.", "dull", "", "An hour too long, and then some! " * 9]
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))
MLP = {"kind": "mlp", "dropout": 0.1}
SST = {"layout": "cs224n-sst", "limit": 16}
QUORA = {"layout": "cs224n-quora", "limit": 16}
TASKS: dict[str, Any] = {
    "sentiment": {
        "data": SST,
        "labels": ["0", "1", "2", "3", "4"],
        "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
    },
    "paraphrase": {
        "data": QUORA,
        "labels": ["no", "yes"],
        "bi": {
            "head": {"kind": "features", "features": ["u", "v"]},
            "objective": {"kind": "cross-entropy"},
        },
        # Reads the pair in both orders, so the family's own separators are swapped too.
        "cross": {"head": {"kind": "dense-pair"}, "objective": {"kind": "cross-entropy"}},
    },
    "words": {"data": SST, "single": {"objective": {"kind": "masked-language-model"}}},
    "twice": {"data": SST, "chunk": 2, "single": {"objective": {"kind": "simcse"}}},
}
BESIDE: dict[str, Any] = {**TASKS["sentiment"], "side": {"rank": 2}}
STEPS = {"steps": 2, "batch": 4, "optimiser": {"lr": 1e-3}}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))


def train(encoder: Path, data: Path, out: Path, **changes: Any) -> Model:
    """Train a recipe with `changes` and load its model."""
    tree = {
        "name": "family",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(encoder), "pooling": "mean", "max_tokens": 40},
        "tasks": TASKS,
        "stages": [
            {"name": "words", "tasks": ["words", "twice"], "precision": "bf16", **STEPS},
            {
                "name": "together",
                "tasks": ["sentiment", "paraphrase"],
                "schedule": {"kind": "together"},
                "surgery": "pcgrad",
                "freeze": ["embeddings", "layers.0"],
                **STEPS,
            },
        ],
        "evaluation": {"every": 0, "keep": "last", "tasks": ["sentiment", "paraphrase"]},
        "checkpoint": {"every": 1, "keep": 9},
        "seed": 7,
    } | changes
    resume = out.exists()
    recipe = Recipe.model_validate(tree)
    train_recipe(recipe, data=data, out=out, resume=resume, device="cpu", listener=Silent())
    return tercet.load(out, device="cpu")


@pytest.fixture(scope="session")
def trained(
    new_family: Path, sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """The encoder's folder and a run that trained it."""
    out = tmp_path_factory.mktemp("run") / "run"
    train(new_family, sample_data, out)
    return new_family, out


def answers(model: Model) -> list[np.ndarray]:
    return [
        model.embed(TEXTS),
        model.predictions("sentiment", TEXTS),
        model.predictions("paraphrase", PAIRS, "bi"),
        model.predictions("paraphrase", PAIRS, "cross"),
    ]


def test_training_moves_what_is_not_frozen(trained: tuple[Path, Path]) -> None:
    folder, out = trained
    before = load_encoder(folder).state_dict()
    after = tercet.load(out, device="cpu").network.encoder.state_dict()
    moved = {
        name for name in before if name in after and not torch.equal(before[name], after[name])
    }
    # The first stage freezes nothing: even embeddings and distances moved.
    still = {name for name in after if not name.startswith("pooler.")} - moved
    assert not still


def test_a_frozen_part_stays(new_family: Path, sample_data: Path, tmp_path: Path) -> None:
    stage = {"freeze": ["embeddings", "layers.0"], "tasks": ["sentiment"], **STEPS}
    only = {"sentiment": TASKS["sentiment"]}
    evaluation = {"every": 0, "keep": "last"}
    model = train(
        *(new_family, sample_data, tmp_path / "run"),
        tasks=only,
        stages=[stage],
        evaluation=evaluation,
    )
    before, after = load_encoder(new_family).state_dict(), model.network.encoder.state_dict()
    frozen = ("embeddings.", "layers.0.", "pooler.")
    for name, tensor in after.items():
        assert torch.equal(before[name], tensor) == name.startswith(frozen), name


def test_a_run_resumes_to_the_last_bit(
    trained: tuple[Path, Path], sample_data: Path, tmp_path: Path
) -> None:
    folder, out = trained
    again = tmp_path / "run"
    shutil.copytree(out, again)
    (again / "summary.json").unlink()
    shutil.rmtree(again / "model")
    checkpoints = sorted((again / "checkpoints").iterdir())
    for checkpoint in checkpoints[3:]:
        shutil.rmtree(checkpoint)
    resumed = train(folder, sample_data, again)
    for ours, theirs in zip(answers(resumed), answers(tercet.load(out, device="cpu")), strict=True):
        assert np.array_equal(ours, theirs)


def test_a_student_and_side_weights_learn(
    trained: tuple[Path, Path], sample_data: Path, tmp_path: Path
) -> None:
    folder, out = trained
    taught = TASKS["sentiment"] | {"teacher": {"folder": str(out), "weight": 0.5}}
    vectors = {
        "data": SST,
        "teacher": {"folder": str(out), "weight": 1.0},
        "single": {"objective": {"kind": "teacher-vectors"}},
    }
    model = train(
        *(folder, sample_data, tmp_path / "run"),
        tasks={"sentiment": taught, "beside": BESIDE, "vectors": vectors},
        stages=[STEPS],
        evaluation={"every": 0, "keep": "last", "tasks": ["sentiment", "beside"]},
    )
    assert model.network.sides["beside"].state_dict()["layers.0.contract.up"].abs().max() > 0
    assert np.isfinite(model.predictions("beside", TEXTS)).all()


def test_the_model_folder_embeds_the_same_in_sentence_transformers(
    trained: tuple[Path, Path], tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    model = tercet.load(trained[1], device="cpu")
    model.save(tmp_path / "saved")
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(TEXTS)
    assert np.abs(theirs - model.embed(TEXTS)).max() <= 1e-5
    again = tercet.load(tmp_path / "saved", device="cpu")
    for ours, others in zip(answers(again), answers(model), strict=True):
        assert np.array_equal(ours, others)


def test_a_folder_of_sentence_transformers_embeds_the_same(sentence_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(sentence_folder), device="cpu")
    ours = tercet.load(sentence_folder, device="cpu")
    assert ours.info.max_tokens == 40
    expected = theirs.encode(TEXTS, normalize_embeddings=True)
    assert np.abs(expected - ours.embed(TEXTS)).max() <= 1e-5


def test_onnx_gives_the_same(trained: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from tercet.folders.model_folder import Parts
    from tercet.folders.onnx_folder import export_onnx

    model = tercet.load(trained[1], device="cpu")
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(tmp_path / "fp32", parts, precision="fp32")
    for ours, others in zip(answers(tercet.load(tmp_path / "fp32")), answers(model), strict=True):
        assert np.abs(ours - others).max() <= 1e-5
    export_onnx(tmp_path / "int8", parts, precision="int8")
    small = tercet.load(tmp_path / "int8").embed(TEXTS)
    assert (small * model.embed(TEXTS)).sum(axis=1).min() >= 0.99


def test_deberta_without_a_norm_of_distances_is_exported(make_family: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from tercet.folders.model_folder import Parts
    from tercet.folders.onnx_folder import export_onnx

    model = tercet.load(make_family("deberta-v2-apart"), device="cpu")
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(tmp_path / "fp32", parts, precision="fp32")
    assert np.abs(tercet.load(tmp_path / "fp32").embed(TEXTS) - model.embed(TEXTS)).max() <= 1e-5


def test_a_server_answers_as_the_model_does(trained: tuple[Path, Path]) -> None:
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from tercet.serve.app import build_app
    from tercet.serve.batcher import Batcher
    from tercet.serve.encode import encode
    from tercet.serve.keys import Keys
    from tercet.serve.metrics import Metrics
    from tercet.serve.service import Service
    from tercet.serve.settings import Limits

    model = tercet.load(trained[1], device="cpu")
    limits = Limits(
        inputs=64,
        tokens=40,
        body=200_000,
        long_inputs="truncate",
        queue_inputs=256,
        queue_tokens=8192,
        batch_tokens=512,
        wait=60.0,
        timeout=120.0,
    )
    batcher = Batcher(encode, limits, Metrics())
    service = Service(model, limits, batcher, None)
    app, _, _ = build_app(
        service, keys=Keys(file=None, listed=None), metrics=batcher.metrics, origins=[]
    )
    with TestClient(app) as client:
        body = {"inputs": PAIRS, "mode": "cross"}
        found = client.post("/predict/paraphrase", json=body).json()["results"]
    wanted = model.predictions("paraphrase", PAIRS, "cross")
    assert np.allclose([row["probabilities"] for row in found], wanted, atol=1e-6)


def test_fast_paths_are_those_of_the_record(new_family: Path) -> None:
    pytest.importorskip("triton")
    from tercet.nn.fused import is_fused

    encoder = load_encoder(new_family)
    config = encoder.config
    is_served = config.architecture.fused and config.words_width == config.width
    assert is_fused(encoder) == is_served
    assert is_served == (config.model_type not in ("electra", "modernbert", "deberta-v2"))
