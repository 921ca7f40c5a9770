"""Recipes that start from a finished model or add tasks to it, with and without side weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tercet.errors import TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.model import SHIPPED_FOLDER, Model
from tercet.model import load as load_on
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

# Runs are trained on the CPU; on a GPU their models would answer in another precision.
load = partial(load_on, device="cpu")
MLP = {"kind": "mlp", "dropout": 0.1}
SHARED = {"name": "common", "hidden": [8]}
OLD: dict[str, Any] = {
    "sentiment": {
        "data": {"layout": "cs224n-sst", "limit": 40},
        "labels": ["0", "1", "2", "3", "4"],
        "held_out": 0.2,
        "single": {"head": MLP, "shared": SHARED, "objective": {"kind": "cross-entropy"}},
    },
    "similarity": {
        "data": {"layout": "cs224n-sts", "limit": 40},
        "range": [0, 5],
        "cross": {"head": MLP, "objective": {"kind": "mean-squared-error"}},
    },
}
FEATURES = {"kind": "features", "features": ["u", "v", "absdiff"], "dropout": 0.0}
NEW: dict[str, Any] = {
    "same": {
        "data": {"layout": "cs224n-quora", "limit": 40},
        "labels": ["no", "yes"],
        "held_out": 0.2,
        "bi": {"head": FEATURES, "objective": {"kind": "binary-cross-entropy"}},
        "cross": {"head": {"kind": "dense-pair"}, "objective": {"kind": "cross-entropy"}},
    },
}
SIDE = {"rank": 2}
FAST = {"lr": 1e-2, "warmup": 0.0, "decay": "constant"}
FROZEN = {"steps": 6, "batch": 8, "optimiser": FAST, "freeze": ["encoder"]}
TEXTS = ["a quiet film", "how do i read a book ?", "a man is playing the guitar"]
PAIRS = list(zip(TEXTS, TEXTS[::-1], strict=True))
Train = Callable[..., Path]


@pytest.fixture(scope="module")
def train(tiny_encoder: Path, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    folder = tmp_path_factory.mktemp("onto")

    def run(name: str, *, resume: bool = False, **blocks: Any) -> Path:
        """The folder of a run; a block that is None is left out."""
        tree: dict[str, Any] = {
            "name": name,
            "summary": "A recipe of the tests",
            "encoder": {"name": str(tiny_encoder), "max_tokens": 24, "pooling": "cls"},
            "tasks": OLD,
            "stages": [{**FROZEN, "freeze": []}],
            "evaluation": {"every": 0},
        } | blocks
        tree = {key: value for key, value in tree.items() if value is not None}
        recipe = Recipe.from_tree(tree, where=name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TERCET_CACHE", str(folder / "cache"))
            train_recipe(
                recipe,
                data=sample_data,
                out=folder / name,
                resume=resume,
                device="cpu",
                listener=Silent(),
            )
        return folder / name

    return run


@pytest.fixture(scope="module")
def base(train: Train) -> Path:
    return train("base")


@pytest.fixture(scope="module")
def added(train: Train, base: Path) -> Path:
    """A task with side weights on top of the base."""
    tasks = {"same": {**NEW["same"], "side": SIDE}}
    return train("added", onto=str(base), encoder=None, tasks=tasks, stages=[FROZEN])


def digests(model: Model, tasks: Any) -> dict[str, str]:
    """The sha256 of vectors and of all heads' outputs and predictions."""
    columns = [model.pieces([pair[side] for pair in PAIRS]) for side in (0, 1)]
    values = {"vectors": model.embed(TEXTS)}
    for name in tasks:
        for mode in model.tasks[name].predicting_modes:
            used = columns[: 1 if mode == "single" else 2]
            values[f"{name} {mode}"] = model.engine.outputs(name, mode, used)
            values[f"{name} {mode} predicted"] = model.engine.predictions(name, mode, used)
    return {key: hashlib.sha256(value.tobytes()).hexdigest() for key, value in values.items()}


def test_a_run_can_start_from_a_run(train: Train, base: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(base.parent)
    stages = [{**FROZEN, "steps": 1}]
    run = train("start", encoder={"name": "base"}, tasks=NEW, stages=stages)
    started = load(run)
    assert np.array_equal(started.embed(TEXTS), load(base).embed(TEXTS))
    assert (started.info.pooling, started.info.max_tokens) == ("cls", 24)
    assert list(started.tasks) == ["same"]
    # The stored recipe is complete, and trains again to the same weights.
    stored = Recipe.load(run / "recipe.toml")
    assert (stored.encoder.pooling, stored.encoder.max_tokens) == ("cls", 24)
    own = train("other-pooling", encoder={"name": "base/model", "pooling": "mean"}, stages=stages)
    assert load(own).info.pooling == "mean"


@pytest.mark.parametrize("side", [None, SIDE], ids=["plain", "side"])
def test_old_answers_keep_every_bit(train: Train, base: Path, side: Any) -> None:
    before = load(base)
    tasks = {"same": {**NEW["same"], "side": side}} if side else NEW
    run = train(f"bits-{side}", onto=str(base), encoder=None, tasks=tasks, stages=[FROZEN])
    after = load(run)
    assert list(after.tasks) == ["sentiment", "similarity", "same"]
    assert digests(after, before.tasks) == digests(before, before.tasks)
    assert after.info.scalings.keys() == {"sentiment", "same"}
    assert after.info.scalings["sentiment"] == before.info.scalings["sentiment"]
    assert after.info.metrics.keys() == {"sentiment", "similarity", "same"}
    assert after.info.metrics["similarity"] == before.info.metrics["similarity"]
    assert (after.info.encoder, after.info.pooling) == (before.info.encoder, "cls")
    assert after.info.recipe == f"base, then bits-{side}"
    saved = run / "again"
    after.save(saved)
    assert digests(load(saved), after.tasks) == digests(after, after.tasks)


def test_a_task_is_added_to_the_shipped_model(train: Train) -> None:
    before = load("tercet/small")
    tasks = {"same": {**NEW["same"], "side": {"rank": 2, "layers": [5]}}}
    tasks["same"]["data"] = {"layout": "cs224n-quora", "limit": 12}
    stages = [{**FROZEN, "steps": 1}]
    run = train("shipped", onto="tercet/small", encoder=None, tasks=tasks, stages=stages)
    after = load(run, device="cpu")
    assert digests(after, before.tasks) == digests(before, before.tasks)
    assert after.info.tasks.keys() == {*before.info.tasks, "same"}
    # The stored bits are the same too: half precision stays half precision.
    shipped = SHIPPED_FOLDER
    for file in ("model.safetensors", "heads.safetensors"):
        old, new = load_file(shipped / file), load_file(run / "model" / file)
        assert all(new[name].dtype == tensor.dtype for name, tensor in old.items())
        assert all(torch.equal(new[name], tensor) for name, tensor in old.items())
    assert json.loads((run / "model/config.json").read_text()) == json.loads(
        (shipped / "config.json").read_text()
    )


def test_side_weights_train_beside_a_frozen_body(added: Path, base: Path) -> None:
    tensors = load_file(added / "model/heads.safetensors")
    ups = [
        value for name, value in tensors.items() if name.startswith("sides/same.") and "up" in name
    ]
    assert len(ups) == 2 * 4
    assert all(up.abs().sum() > 0 for up in ups)
    card = (added / "model/README.md").read_text()
    assert "Task `same` has side weights" in card
    assert "side weights" not in (base / "model/README.md").read_text()


def test_side_weights_change_their_own_task_only(added: Path) -> None:
    # In bf16 the encoder is a copy, which a change of the weights does not reach.
    model = load(added, precision="fp32")
    before = digests(model, model.tasks)
    for parameter in model.network.sides.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    after = digests(model, model.tasks)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {
        f"same {mode}{end}" for mode in ("bi", "cross") for end in ("", " predicted")
    }


def test_an_evaluation_keeps_vectors_with_side_weights_apart(added: Path) -> None:
    model = load(added)
    encoded = EncodedTexts(model)
    plain = encoded.embed(TEXTS)
    sides = [[pair[side] for pair in PAIRS] for side in (0, 1)]
    for mode in ("bi", "cross"):
        found = encoded.predictions("same", mode, sides)
        assert np.allclose(found, model.predictions("same", PAIRS, mode), atol=1e-6)
    assert np.array_equal(encoded.embed(TEXTS), plain)


def test_a_killed_run_resumes_exactly(train: Train, base: Path, added: Path, monkeypatch) -> None:
    import tercet.training.loop as loop

    tasks = {"same": {**NEW["same"], "side": SIDE}}
    blocks = {"onto": str(base), "encoder": None, "tasks": tasks, "stages": [FROZEN]}
    blocks["checkpoint"] = {"every": 2}
    whole = train("whole", **blocks)
    step = loop.Update.__call__
    calls = []

    def dying(self: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return step(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Update, "__call__", dying)
        with pytest.raises(KeyboardInterrupt):
            train("killed", **blocks)
    killed = train("killed", resume=True, **blocks)
    for file in ("model.safetensors", "heads.safetensors"):
        ours, theirs = load_file(whole / "model" / file), load_file(killed / "model" / file)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_task_like_one_with_side_weights_trains_them(train: Train, base: Path) -> None:
    tasks = {
        "same": {**NEW["same"], "side": SIDE},
        "more": {"data": {"layout": "cs224n-quora", "limit": 20}, "like": "same"},
    }
    stages = [{**FROZEN, "tasks": ["more"], "freeze": ["encoder", "heads.same"]}]
    run = train("like", onto=str(base), encoder=None, tasks=tasks, stages=stages)
    tensors = load_file(run / "model/heads.safetensors")
    ups = [value for name, value in tensors.items() if name.endswith("up")]
    assert all(up.abs().sum() > 0 for up in ups)
    assert not any("more" in name for name in tensors)


def test_side_weights_can_be_frozen(train: Train, base: Path) -> None:
    tasks = {"same": {**NEW["same"], "side": SIDE}}
    stages = [{**FROZEN, "freeze": ["encoder", "sides.same"]}]
    run = train("frozen", onto=str(base), encoder=None, tasks=tasks, stages=stages)
    tensors = load_file(run / "model/heads.safetensors")
    assert all(not value.any() for name, value in tensors.items() if name.endswith("up"))


def test_side_weights_are_not_exported_to_onnx(added: Path, tmp_path: Path) -> None:
    model = load(added)
    with pytest.raises(TercetError, match=r"task `same` has side weights"):
        export_onnx(
            tmp_path / "onnx", Parts(model.network, model.tokenizer, model.info), precision="fp32"
        )


def test_onnx_folders_cannot_be_trained(train: Train, base: Path, tmp_path: Path) -> None:
    model = load(base)
    folder = tmp_path / "onnx"
    export_onnx(folder, Parts(model.network, model.tokenizer, model.info), precision="fp32")
    for blocks in ({"encoder": {"name": str(folder)}}, {"onto": str(folder), "encoder": None}):
        with pytest.raises(TercetError, match=r"holds ONNX graphs, which cannot be trained"):
            train("onnx", **blocks, tasks=NEW, stages=[FROZEN])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"tasks": OLD}, r"has a task `sentiment` already"),
    ({"stages": [{"steps": 1}]}, r"stage `train` trains the encoder"),
    ({"stages": [{"steps": 1, "freeze": ["layers.0-1"]}]}, r"stage `train` trains the encoder"),
    ({"encoder": {"name": "all-minilm-l6-v2"}}, r"encoder\.name is 'all-minilm-l6-v2'"),
    ({"encoder": {"pooling": "mean"}}, r"`encoder\.pooling` is 'mean', .* has 'cls'"),
    ({"encoder": {"max_tokens": 48}}, r"`encoder\.max_tokens` is 48, .* has 24"),
    ({"onto": "all-minilm-l6-v2"}, r"`onto` is 'all-minilm-l6-v2', which is not a finished"),
    ({"tasks": {"more": {**NEW["same"], "like": "sentiment"}}}, r"`like` names task `sentiment`"),
    (
        {
            "tasks": {
                "same": {
                    "data": {"layout": "cs224n-sst"},
                    "labels": ["0", "1", "2", "3", "4"],
                    "single": OLD["sentiment"]["single"],
                }
            }
        },
        r"task `same` would train the shared layers `common`",
    ),
]


@pytest.mark.parametrize(("blocks", "sentence"), WRONG)
def test_what_would_change_the_model_is_refused(
    train: Train, base: Path, blocks: dict[str, Any], sentence: str
) -> None:
    blocks = {"onto": str(base), "encoder": None, "tasks": NEW, "stages": [FROZEN], **blocks}
    with pytest.raises(TercetError, match=sentence):
        train("wrong", **blocks)
    assert not (base.parent / "wrong").exists()


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        ({"side": {"layers": [0, 0]}}, r"names a layer twice"),
        ({"side": {"layers": [7]}}, r"`side\.layers` names layer 7"),
        (
            {"bi": {"objective": {"kind": "simcse"}}, "cross": None, "labels": None},
            r"`side` needs a head that predicts",
        ),
    ],
)
def test_side_weights_that_do_not_fit_are_refused(
    train: Train, base: Path, task: dict[str, Any], sentence: str
) -> None:
    spec = {**NEW["same"], "held_out": 0.0, "side": SIDE, **task}
    tasks = {"same": {key: value for key, value in spec.items() if value is not None}}
    with pytest.raises(TercetError, match=sentence):
        train("wrong", onto=str(base), encoder=None, tasks=tasks, stages=[FROZEN])
