"""Depths: one encoder that answers after several of its layers, each with heads of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tercet
from tercet.data.examples import read_examples
from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.recipe import Recipe
from tercet.specs import DepthsSpec, tasks_by_depth
from tercet.text.tokenizer import Tokenizer
from tercet.training.distributed import World
from tercet.training.listener import Silent
from tercet.training.losses import Losses
from tercet.training.parts import choose_trainable
from tercet.training.regression import fit_classes
from tercet.training.run import train_recipe
from tercet.training.solve import HasLastLayer

CPU = torch.device("cpu")
FIRST = ["a fine film", "how do i learn the guitar?", "dull", "the cat sits on the mat"]
SECOND = ["a good movie indeed", "learn guitar", "lively and long", "a cat sits"]
PAIRS = list(zip(FIRST, SECOND, strict=True))
SENTIMENT: dict[str, Any] = {
    "data": {"layout": "cs224n-sst", "limit": 40},
    "labels": ["negative", "somewhat negative", "neutral", "somewhat positive", "positive"],
    "held_out": 0.25,
    "single": {
        "head": {"kind": "mlp", "hidden": [16], "activation": "tanh", "dropout": 0.0},
        "objective": {"kind": "cross-entropy"},
    },
}
SIMILARITY: dict[str, Any] = {
    "data": {"layout": "cs224n-sts", "limit": 20},
    "range": [0, 5],
    "bi": {
        "head": {"kind": "cosine"},
        "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
    },
    "cross": {
        "head": {"kind": "mlp", "dropout": 0.0},
        "objective": {"kind": "mean-squared-error"},
    },
}
RANKING: dict[str, Any] = {
    "data": {"layout": "quora-positives"},
    "bi": {"objective": {"kind": "multiple-negatives-ranking"}},
}
MASKED: dict[str, Any] = {
    "data": {"layout": "cs224n-sst"},
    "single": {"objective": {"kind": "masked-language-model"}},
}
TASKS = {"sentiment": SENTIMENT, "similarity": SIMILARITY, "ranking": RANKING, "masked": MASKED}


def deep_network(
    make_network: Callable[..., Network], blocks: dict[str, Any], **options: Any
) -> Network:
    """A network of the tiny encoder's two layers that also answers after the first."""
    plain = make_network(blocks, **options)
    depths = tasks_by_depth(DepthsSpec(layers=[1, 2], hidden=[8]), plain.tasks, full=2)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return Network(plain.encoder, pooling=plain.pooling, tasks=plain.tasks, depths=depths)


def losses_of(
    network: Network, tokenizer: Tokenizer, tables: dict[str, TaskTable], **spec: Any
) -> Losses:
    return Losses(
        network=network,
        tasks=network.tasks,
        tables=tables,
        template=tokenizer.template,
        max_tokens=24,
        world=World(rank=0, size=1, device=CPU),
        depths=DepthsSpec(layers=[1], **spec),
    )


@pytest.fixture
def tables(make_table: Callable[..., TaskTable]) -> dict[str, TaskTable]:
    return {
        "sentiment": make_table(FIRST, labels=[0, 3, 4, 1]),
        "similarity": make_table(FIRST, SECOND, labels=[0.0, 5.0, 2.5, 1.25]),
        "ranking": make_table(FIRST, SECOND),
    }


def test_one_depth_is_a_network_of_its_layers_that_shares_them(
    make_network: Callable[..., Network], tokenizer: Tokenizer
) -> None:
    network = deep_network(make_network, TASKS).eval()
    shallow = network.at(1)
    assert shallow.encoder.config.layers == len(shallow.encoder.layers) == 1
    assert shallow.encoder.layers[0] is network.encoder.layers[0]
    assert "masked" not in shallow.tasks
    assert not shallow.lesser_depths
    tokens = DeviceTokens.from_host(tokenizer.encode(FIRST, max_tokens=24), CPU)
    with torch.inference_mode():
        once = network.in_one_pass()
        for alone, each in zip([network.at(2), shallow], once, strict=True):
            expected = alone.outputs("sentiment", "single", tokens)
            assert torch.equal(each.outputs("sentiment", "single", tokens), expected)
        assert not torch.allclose(once[0].vectors(tokens), once[1].vectors(tokens))


def test_all_depths_take_one_pass_of_the_encoder(
    make_network: Callable[..., Network], tokenizer: Tokenizer, tables: dict[str, TaskTable]
) -> None:
    network = deep_network(make_network, TASKS)
    losses, calls = losses_of(network, tokenizer, tables), []
    layer = network.encoder.layers[1]
    plain = layer.forward
    layer.forward = lambda *inputs: (calls.append(1), plain(*inputs))[1]
    losses.loss(losses.batch("sentiment", np.arange(4), total=4))
    assert len(calls) == 1


@pytest.mark.parametrize("task", ["sentiment", "similarity", "ranking"])
def test_a_lesser_depth_learns_from_labels_and_from_the_full_depth(
    make_network: Callable[..., Network],
    tokenizer: Tokenizer,
    tables: dict[str, TaskTable],
    task: str,
) -> None:
    network = deep_network(make_network, TASKS)
    plain = losses_of(network.at(2), tokenizer, tables)
    batch = plain.batch(task, np.arange(4), total=4)
    full = plain.loss(batch)
    alone = losses_of(network.at(1), tokenizer, tables).loss(batch)
    labels = losses_of(network, tokenizer, tables, agreement=0.0, weight=0.5).loss(batch)
    torch.testing.assert_close(labels, full + 0.5 * alone)
    # A depth that agrees with itself has nothing to learn from it.
    same = losses_of(network, tokenizer, tables, agreement=1.0)
    mode = "single" if task == "sentiment" else "bi"
    tokens = DeviceTokens.from_host(batch.tokens[mode], CPU)
    answers = same._answers(network, batch, mode, tokens)
    agreed = same._disagreement(batch, mode, answers, answers)
    torch.testing.assert_close(agreed, torch.zeros(()), atol=1e-6, rtol=0)
    assert same.loss(batch) > full


def test_the_full_depth_does_not_learn_from_a_lesser_one(
    make_network: Callable[..., Network], tokenizer: Tokenizer, tables: dict[str, TaskTable]
) -> None:
    network = deep_network(make_network, TASKS)
    losses = losses_of(network, tokenizer, tables, agreement=1.0, weight=3.0)
    batch = losses.batch("sentiment", np.arange(4), total=4)
    alone = losses_of(network.at(2), tokenizer, tables)
    found = []
    for each in (losses, alone):
        network.zero_grad()
        torch.autograd.backward(each.loss(batch))
        head = network.heads_of("sentiment")["single"]
        found.append([p.grad.clone() for p in head.parameters() if p.grad is not None])
    assert found[0]
    for both, one in zip(*found, strict=True):
        torch.testing.assert_close(both, one)


def test_a_stage_freezes_a_part_at_every_depth(make_network: Callable[..., Network]) -> None:
    network = deep_network(make_network, TASKS, pooling="pooler")
    tree = recipe_tree("unused", depths=[1])
    tree["stages"][0]["freeze"] = ["heads.sentiment", "pooler", "layers.0"]
    stage = Recipe.from_tree(tree, where="x").stages[0]
    choose_trainable(network, stage, tasks=["sentiment", "similarity"])
    trains = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    assert any(name.startswith("depths.1.heads.similarity.cross.") for name in trains)
    frozen = ("heads.sentiment.", "encoder.pooler.", "encoder.layers.0.")
    frozen += ("depths.1.heads.sentiment.", "depths.1.pooler.")
    assert not [name for name in trains if name.startswith(frozen)]


def recipe_tree(encoder: Path | str, **encoder_keys: Any) -> dict[str, Any]:
    return {
        "name": "deep",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(encoder), "max_tokens": 24, **encoder_keys},
        "tasks": {"sentiment": SENTIMENT, "similarity": SIMILARITY},
        "stages": [{"steps": 6, "batch": 4, "schedule": {"kind": "together"}}],
        "evaluation": {"every": 0, "keep": "last"},
        "checkpoint": {"every": 2, "keep": 9},
    }


def train(tree: dict[str, Any], data: Path, out: Path, **options: Any) -> None:
    recipe = Recipe.from_tree(tree, where="deep")
    train_recipe(recipe, data=data, out=out, device="cpu", listener=Silent(), **options)


@pytest.fixture(scope="module")
def run(tiny_encoder: Path, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("deep") / "run"
    tree = recipe_tree(
        tiny_encoder, depths={"layers": [1, 2], "hidden": [8]}, widths=[8, 16, 32], pooling="pooler"
    )
    train(tree, sample_data, out)
    return out


def assert_same(found: tercet.Model, expected: tercet.Model) -> None:
    for task, inputs in (("sentiment", FIRST), ("similarity", PAIRS)):
        outputs = [model.predictions(task, inputs) for model in (found, expected)]
        assert np.array_equal(*outputs)


def test_a_run_leaves_a_model_of_several_depths(run: Path) -> None:
    model = tercet.load(run, device="cpu")
    assert model.depths == [1, 2]
    assert model.widths == [8, 16, 32]
    info = json.loads((run / "model" / "tercet.json").read_text("utf-8"))
    own = info["depths"]["1"]
    assert own["hidden"] == [8]
    assert own["scalings"]["sentiment"]["single"] != info["scalings"]["sentiment"]["single"]
    assert own["metrics"]["similarity"].keys() == {"cross", "bi"}
    assert json.loads((run / "summary.json").read_text("utf-8"))["depths"]["1"] == own["metrics"]
    card = (run / "model" / "README.md").read_text("utf-8")
    assert "after its first 1 layers" in card
    assert "| 1 | sentiment | single |" in card


def test_loading_some_layers_gives_that_depth_and_reads_nothing_else(run: Path) -> None:
    whole = tercet.load(run, device="cpu")
    model = tercet.load(run, device="cpu", layers=1)
    assert model.layers == 1
    assert model.depths == [1]
    names = [name for name, _ in model.network.named_parameters()]
    assert not [name for name in names if name.startswith(("encoder.layers.1", "depths"))]
    assert len(names) < len([*whole.network.named_parameters()])
    alone = whole.at(1)
    assert np.array_equal(model.embed(FIRST), alone.embed(FIRST))
    assert_same(model, alone)
    outputs = [each.predictions("sentiment", FIRST) for each in (model, whole)]
    assert not np.array_equal(*outputs)
    narrow = model.embed(FIRST, width=8)
    assert narrow.shape == (4, 8)
    np.testing.assert_allclose(np.linalg.norm(narrow, axis=1), 1.0, rtol=1e-5)
    full = tercet.load(run, device="cpu", layers=2)
    assert full.depths == [2]
    assert np.array_equal(full.embed(FIRST), whole.embed(FIRST))


def test_a_depth_that_was_not_trained_is_refused(run: Path, tiny_encoder: Path) -> None:
    with pytest.raises(TercetError, match="after 3 layers; it answers after 1 and 2"):
        tercet.load(run, device="cpu", layers=3)
    with pytest.raises(TercetError, match="after 1 layers; it answers after 2"):
        tercet.load(tiny_encoder, device="cpu", layers=1)


def test_saving_keeps_all_depths_or_the_one_that_was_loaded(run: Path, tmp_path: Path) -> None:
    tercet.load(run, device="cpu").save(tmp_path / "whole")
    again = tercet.load(tmp_path / "whole", device="cpu", layers=1)
    shallow = tercet.load(run, device="cpu", layers=1)
    assert_same(again, shallow)
    shallow.save(tmp_path / "one")
    plain = tercet.load(tmp_path / "one", device="cpu")
    assert plain.depths == [1]
    assert_same(plain, shallow)
    sentence_transformers = pytest.importorskip("sentence_transformers")
    peer = sentence_transformers.SentenceTransformer(str(tmp_path / "one"), device="cpu")
    theirs = peer.encode(FIRST, normalize_embeddings=True)
    np.testing.assert_allclose(theirs, shallow.embed(FIRST), atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_depth_is_exported_to_onnx(run: Path, tmp_path: Path, precision: Any) -> None:
    pytest.importorskip("onnxruntime")
    from tercet.folders.model_folder import Parts
    from tercet.folders.onnx_folder import export_onnx

    for layers in (1, None):
        model = tercet.load(run, device="cpu", layers=layers)
        parts = Parts(model.network, model.tokenizer, model.info)
        export_onnx(tmp_path / "onnx", parts, precision=precision)
        exported = tercet.load(tmp_path / "onnx")
        near = 1e-4 if precision == "fp32" else 0.1
        np.testing.assert_allclose(exported.embed(FIRST), model.embed(FIRST), atol=near)
        found = exported.predictions("sentiment", FIRST)
        np.testing.assert_allclose(found, model.predictions("sentiment", FIRST), atol=near)
        assert exported.info.depths is None
    with pytest.raises(TercetError, match="the layers that they were exported with"):
        tercet.load(tmp_path / "onnx", layers=1)


def test_resume_is_exact_with_depths(tiny_encoder: Path, sample_data: Path, tmp_path: Path) -> None:
    tree = recipe_tree(tiny_encoder, depths=[1])
    tree["stages"][0]["surgery"] = "pcgrad"
    train(tree, sample_data, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "again")
    for file in ("summary.json", "model"):
        path = tmp_path / "again" / file
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    checkpoints = sorted((tmp_path / "again" / "checkpoints").iterdir())
    for newer in checkpoints[1:]:
        shutil.rmtree(newer)
    train(tree, sample_data, tmp_path / "again", resume=True)
    for file in ("metrics.jsonl", "model/heads.safetensors", "model/model.safetensors"):
        whole, again = ((tmp_path / name / file).read_bytes() for name in ("whole", "again"))
        if file == "metrics.jsonl":
            whole, again = (_losses(text) for text in (whole, again))
        assert whole == again, file


def _losses(journal: bytes) -> Any:
    return [json.loads(line).get("losses") for line in journal.splitlines()]


@pytest.mark.parametrize(
    ("encoder", "task", "message"),
    [
        ({"depths": [2, 1]}, {}, "must rise"),
        ({"depths": [1, 3]}, {}, "has only 2 layers"),
        ({"depths": [1]}, {"side": {"rank": 2}}, "leave out `side` or encoder.depths"),
    ],
)
def test_depths_that_cannot_be_are_named(
    tiny_encoder: Path,
    sample_data: Path,
    tmp_path: Path,
    encoder: dict[str, Any],
    task: dict[str, Any],
    message: str,
) -> None:
    tree = recipe_tree(tiny_encoder, **encoder)
    tree["tasks"]["sentiment"] = {**SENTIMENT, **task}
    with pytest.raises(TercetError, match=message):
        train(tree, sample_data, tmp_path / "x")


@pytest.mark.parametrize("keeps", [True, False])
def test_a_task_is_added_to_every_depth_or_to_the_full_one_alone(
    run: Path, sample_data: Path, tmp_path: Path, keeps: bool
) -> None:
    tree = recipe_tree("unused")
    tree["onto"] = str(run)
    tree["encoder"] = {"depths": [1]} if keeps else {}
    tree["tasks"] = {"mood": {**SENTIMENT, "held_out": 0.0}}
    tree["stages"] = [{"steps": 2, "batch": 4, "freeze": ["encoder"]}]
    train(tree, sample_data, tmp_path / "run")
    model, before = (tercet.load(each, device="cpu") for each in (tmp_path / "run", run))
    assert model.depths == ([1, 2] if keeps else [2])
    for depth in model.depths:
        found, known = model.at(depth), before.at(depth)
        assert_same(found, known)
        assert found.predictions("mood", FIRST).shape == (4, 5)


def test_heads_are_solved_at_every_depth(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path
) -> None:
    tree = recipe_tree(tiny_encoder, depths=[1])
    linear = {**SENTIMENT, "held_out": 0.0}
    linear["single"] = {**SENTIMENT["single"], "head": {"kind": "mlp"}}
    tree["tasks"] = {"sentiment": linear}
    tree["stages"] = [{"solve": True}]
    train(tree, sample_data, tmp_path / "run")
    model = tercet.load(tmp_path / "run", device="cpu")
    examples = read_examples(model.tasks["sentiment"], "train", sample_data)
    for depth in model.depths:
        own = model.at(depth)
        head = own.network.heads_of("sentiment")["single"]
        assert isinstance(head, HasLastLayer)
        vectors = torch.from_numpy(own.engine.vectors(own.pieces(examples.texts[0])))
        with torch.inference_mode():
            inputs = head.inputs(vectors).numpy()
        expected = fit_classes(inputs, examples.labels, outputs=5, blocks=head.blocks)
        np.testing.assert_allclose(head.last.weight.detach(), expected.weights, atol=1e-3)
