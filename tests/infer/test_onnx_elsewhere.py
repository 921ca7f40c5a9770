"""ONNX graphs outside Tercet: standard inputs, the same vectors in JavaScript, and old folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

import tercet
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.text.tokenizer import Tokenizer

TEXTS = ["a film that is worth a look", "dull", "The plot is long, and the cast is lost in it."]
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "embed.mjs"
NEAR = 1e-5
STANDARD = ["input_ids", "attention_mask"]


@pytest.fixture(
    scope="module",
    params=[
        ("tiny_encoder", [*STANDARD, "token_type_ids"]),
        ("tiny_mpnet", STANDARD),
    ],
    ids=["types", "no-types"],
)
def exported(request, tmp_path_factory) -> tuple[Model, Path, list[str]]:
    """A model in torch, its ONNX folder, and the inputs that its graph should have."""
    name, inputs = request.param
    folder = request.getfixturevalue(name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(folder), pooling="mean", tasks={})
    info = ModelInfo(encoder=name, pooling="mean", max_tokens=40, tasks={})
    tokenizer = Tokenizer.load(folder)
    out = tmp_path_factory.mktemp("onnx") / "model"
    export_onnx(out, Parts(network, tokenizer, info), precision="fp32")
    return Model(network, tokenizer, info), out, inputs


def test_graphs_take_what_other_tokenizers_give(exported) -> None:
    model, folder, names = exported
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    inputs = {value.name: (value.type, value.shape) for value in session.get_inputs()}
    assert inputs == dict.fromkeys(names, ("tensor(int64)", ["rows", "length"]))
    from transformers import AutoTokenizer

    given = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="np")
    (found,) = session.run(["embeddings"], {name: given[name] for name in names})
    assert np.abs(found - model.embed(TEXTS)).max() < NEAR


def test_folders_with_lengths_as_input_still_load(exported, tmp_path: Path) -> None:
    model, folder, names = exported
    shutil.copytree(folder, tmp_path / "old")
    _write_as_before(tmp_path / "old" / "model.onnx", has_types="token_type_ids" in names)
    assert np.abs(tercet.load(tmp_path / "old").embed(TEXTS) - model.embed(TEXTS)).max() < NEAR


def _write_as_before(path: Path, *, has_types: bool) -> None:
    """Give a graph the inputs of version 0.1: ids, types and lengths."""
    written = onnx.load(path)
    graph = written.graph
    del graph.input[:]
    square = ["rows", "length"]
    shapes = {"ids": square, **({"types": square} if has_types else {}), "lengths": ["rows"]}
    for name, shape in shapes.items():
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
    numbers = {"zero": ([], [0]), "one": ([], [1]), "last": ([1], [1])}
    for name, (shape, value) in numbers.items():
        graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, shape, value))
    before = [
        helper.make_node("Identity", ["ids"], ["input_ids"]),
        *([helper.make_node("Identity", ["types"], ["token_type_ids"])] if has_types else []),
        helper.make_node("Shape", ["ids"], ["width"], start=1),
        helper.make_node("Squeeze", ["width"], ["count"]),
        helper.make_node("Range", ["zero", "count", "one"], ["places"]),
        helper.make_node("Unsqueeze", ["lengths", "last"], ["ends"]),
        helper.make_node("Less", ["places", "ends"], ["real"]),
        helper.make_node("Cast", ["real"], ["attention_mask"], to=TensorProto.INT64),
    ]
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    path.write_bytes(written.SerializeToString())


def test_the_example_in_javascript_gives_the_same_vectors(exported, tmp_path: Path) -> None:
    modules = Path(os.environ.get("TERCET_NODE", "missing")) / "node_modules"
    if not shutil.which("node") or not (modules / "@huggingface" / "transformers").is_dir():
        pytest.skip(
            "TERCET_NODE names no folder with @huggingface/transformers, or node is missing"
        )
    model, folder, _ = exported
    # Imports are found from the folder of the script.
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "node_modules").symlink_to(modules.resolve())
    texts = [*TEXTS, "a text that is too long " * 200]
    command = ["node", str(tmp_path / EXAMPLE.name), str(folder), *texts]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    vectors = np.array([json.loads(line) for line in result.stdout.splitlines()])
    assert np.abs(vectors - model.embed(texts)).max() < 1e-4
