"""Weights in packages that hold an ONNX graph of them, made up by the tests."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tercet import weights
from tercet.errors import TercetError
from tercet.weights import Entry, Graph, Npm, Wheels
from tercet.weights.graphs import convert

onnx = pytest.importorskip("onnx")
WIDTH = 4
LAYER = "encoder.layer.0"
PROJECTIONS = ("query", "key", "value")


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    """Some tensors of a BERT, by their names in `transformers`."""
    generator = np.random.default_rng(0)
    names = {
        "embeddings.word_embeddings.weight": (7, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
    }
    for part in (*(f"attention.self.{p}" for p in PROJECTIONS), "attention.output.dense"):
        names |= {f"{LAYER}.{part}.weight": (WIDTH, WIDTH), f"{LAYER}.{part}.bias": (WIDTH,)}
    return {
        name: generator.standard_normal(shape).astype(np.float16) for name, shape in names.items()
    }


def graph_of(tensors: dict[str, np.ndarray], *, optimised: bool) -> bytes:
    """A graph with these weights, as torch or as ONNX Runtime's optimiser writes it."""
    helper = onnx.helper
    constants = {
        n: t for n, t in tensors.items() if n.startswith("embeddings") or n.endswith("bias")
    }
    nodes = [
        helper.make_node("Gather", ["embeddings.word_embeddings.weight", "ids"], ["words"]),
        helper.make_node("Mul", ["words", "embeddings.LayerNorm.weight"], ["hidden"]),
    ]
    products = [f"{LAYER}.attention.output.dense"]
    if optimised:
        names = [f"{LAYER}.attention.self.{projection}" for projection in PROJECTIONS]
        constants["qkv"] = np.concatenate([tensors[f"{n}.weight"].T for n in names], axis=1)
        constants["qkv_bias"] = np.concatenate([constants.pop(f"{n}.bias") for n in names])
        inputs = ["hidden", "qkv", "qkv_bias"]
        nodes.append(helper.make_node("Attention", inputs, ["mixed"], domain="com.microsoft"))
    else:
        products += [f"{LAYER}.attention.self.{projection}" for projection in PROJECTIONS]
    for number, name in enumerate(products):
        constants[f"onnx::MatMul_{number}"] = tensors[f"{name}.weight"].T
        nodes.append(
            helper.make_node("MatMul", ["hidden", f"onnx::MatMul_{number}"], [f"p{number}"])
        )
        kind = "SkipLayerNormalization" if optimised else "Add"
        nodes.append(helper.make_node(kind, [f"{name}.bias", f"p{number}"], [f"s{number}"]))
    made = [onnx.numpy_helper.from_array(np.ascontiguousarray(t), n) for n, t in constants.items()]
    graph = helper.make_graph(nodes, "bert", [], [], initializer=made)
    return helper.make_model(graph).SerializeToString()


def put_wheel(index: Path, files: dict[str, bytes]) -> None:
    information = "tiny_graph-1.0.dist-info"
    files = {f"inside/{name}": content for name, content in files.items()} | {
        f"{information}/METADATA": b"Metadata-Version: 2.1\nName: tiny-graph\nVersion: 1.0\n",
        f"{information}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/RECORD": b"",
    }
    with zipfile.ZipFile(index / "tiny_graph-1.0-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TERCET_WEIGHTS", raising=False)
    return folder


@pytest.fixture
def register(
    tensors: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Wheels | Npm], None]:
    """Registers a package with the files that the conversion of its graph should leave."""

    def register(package: Wheels | Npm) -> None:
        folder = tmp_path / "expected"
        folder.mkdir()
        (folder / "config.json").write_bytes(b"{}")
        if package.graph is not None:
            graph = folder / package.graph.file
            graph.parent.mkdir(exist_ok=True)
            graph.write_bytes(graph_of(tensors, optimised=False))
            convert(folder, package.graph)
        files = {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*")
            if path.is_file()
        }
        registry = {"tiny": Entry(None, "a test", files, "abc", package)}
        monkeypatch.setattr(weights, "REGISTRY", registry)

    return register


@pytest.mark.parametrize("optimised", [False, True])
def test_a_wheel_with_a_graph_becomes_weights(
    index: Path, tensors: dict, register: Any, optimised: bool
) -> None:
    content = graph_of(tensors, optimised=optimised)
    put_wheel(index, {"config.json": b"{}", "onnx/model.onnx": content, "run.py": b"import os"})
    graph = Graph("onnx/model.onnx", pooling="cls", query_prefix="Find: ")
    register(Wheels(("tiny-graph==1.0",), "inside", graph=graph))
    folder = weights.resolve("tiny")
    found = load_file(folder / "model.safetensors")
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name].astype("f4")) for name in tensors)
    assert not [path for path in folder.rglob("*") if path.suffix in (".onnx", ".py")]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert (pooling["pooling_mode_cls_token"], pooling["pooling_mode_mean_tokens"]) == (True, False)
    prompts = json.loads((folder / "config_sentence_transformers.json").read_text())
    assert (prompts["prompts"], prompts["default_prompt_name"]) == ({"query": "Find: "}, None)


def test_a_graph_of_other_weights_is_refused(index: Path, tensors: dict, register: Any) -> None:
    changed = {name: tensor + np.float16(1) for name, tensor in tensors.items()}
    put_wheel(index, {"model.onnx": graph_of(changed, optimised=False)})
    graph = Graph("model.onnx", pooling="mean")
    register(Wheels(("tiny-graph==1.0",), "inside", graph=graph))
    with pytest.raises(TercetError, match="has sha256"):
        weights.resolve("tiny")


@pytest.mark.parametrize("whole", [True, False])
def test_a_package_of_npm_is_checked_and_converted(
    index: Path,
    tensors: dict,
    register: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole: bool,
) -> None:
    archive = tmp_path / "tiny.tgz"
    with tarfile.open(archive, "w:gz") as opened:
        for name, content in {
            "package/inside/config.json": b"{}",
            "package/inside/model.onnx": graph_of(tensors, optimised=False),
            "package/inside/../../up.json": b"{}",
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if not whole:
        archive.write_bytes(archive.read_bytes()[:-9] + b"different")
    programs = tmp_path / "programs"
    programs.mkdir()
    npm = programs / "npm"
    npm.write_text(f'#!/bin/sh\ntest "$5" = @tests/tiny@1.0 && cp {archive} "$4"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    graph = Graph("model.onnx", pooling="mean")
    package = Npm("@tests/tiny@1.0", "package/inside", sha256=digest, graph=graph)
    register(package)
    if not whole:
        with pytest.raises(TercetError, match=r"tiny\.tgz has sha256"):
            weights.resolve("tiny")
        return
    folder = weights.resolve("tiny")
    assert load_file(folder / "model.safetensors").keys() == tensors.keys()
    assert sorted(path.name for path in folder.glob("*.json")) == [
        *("config.json", "config_sentence_transformers.json", "modules.json"),
        "sentence_bert_config.json",
    ]


def test_without_npm_it_is_said(
    index: Path, register: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    register(Npm("@tests/tiny@1.0", "package", sha256=""))
    with pytest.raises(TercetError, match="a package of npm, which is not installed"):
        weights.resolve("tiny")


def test_small_encoders_of_the_registry_pool_as_their_authors_do(tmp_path: Path) -> None:
    for name, pooling in (("gte-small", "mean"), ("bge-small-en-v1.5", "cls")):
        package = weights.REGISTRY[name].package
        assert package.graph is not None
        assert package.graph.pooling == pooling
