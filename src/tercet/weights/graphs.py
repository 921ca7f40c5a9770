"""BERT weights out of an ONNX graph, plain or optimised by ONNX Runtime; needs the extra `onnx`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.files import write_json

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

Floats = NDArray[np.float32]
WEIGHTS = "model.safetensors"
_AS_THEY_ARE = re.compile(r"(LayerNorm\.(weight|bias)|_embeddings\.weight)$")
_PROJECTIONS = ("query", "key", "value")


@dataclass(frozen=True, slots=True)
class Graph:
    """An ONNX graph with the weights of a BERT, and how its vectors are made.

    file: the graph in the folder
    query_prefix: what its authors put before the query of a search; Tercet adds it nowhere itself
    """

    file: str
    pooling: Literal["mean", "cls"]
    query_prefix: str = ""


def convert(folder: Path, graph: Graph) -> None:
    """Replace the graph in a folder by model.safetensors and the files of sentence-transformers."""
    try:
        import onnx
    except ImportError as error:
        raise TercetError(
            "these weights are read from an ONNX graph: pip install 'tercet[onnx]'"
        ) from error
    from safetensors.numpy import save_file

    path = folder / graph.file
    if not path.is_file():
        raise TercetError(f"the download has no {graph.file}")
    tensors = dict(_tensors(onnx.load(path).graph))
    save_file(dict(sorted(tensors.items())), folder / WEIGHTS, metadata={"format": "pt"})
    path.unlink()
    if path.parent != folder:
        path.parent.rmdir()
    _describe(folder, graph, width=int(tensors["embeddings.word_embeddings.weight"].shape[1]))


def _tensors(graph: GraphProto) -> Iterator[tuple[str, Floats]]:
    """Names of `transformers` and their tensors, float32."""
    from onnx import numpy_helper

    constants = {part.name: numpy_helper.to_array(part) for part in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    layer = 0
    for node in graph.node:
        if node.op_type == "Attention":
            weight, bias = (np.split(constants[node.input[i]], 3, axis=-1) for i in (1, 2))
            for place, projection in enumerate(_PROJECTIONS):
                name = f"encoder.layer.{layer}.attention.self.{projection}"
                yield f"{name}.weight", _float32(weight[place].T)
                yield f"{name}.bias", _float32(bias[place])
            layer += 1
        for name in node.input:
            if name in constants and _AS_THEY_ARE.search(name):
                yield name, _float32(constants[name])
            elif name in constants and name.endswith(".bias"):
                yield name, _float32(constants[name])
                weight_name = f"{name.removesuffix('bias')}weight"
                yield weight_name, _float32(_matrix(node, makers, constants).T)


def _matrix(node: NodeProto, makers: dict[str, NodeProto], constants: dict[str, Any]) -> Any:
    """The matrix of the product that a bias is added to, [inputs, outputs]."""
    for name in node.input:
        maker = makers.get(name)
        if maker is not None and maker.op_type == "MatMul" and maker.input[1] in constants:
            return constants[maker.input[1]]
    raise TercetError(f"the ONNX graph adds a bias to something else than a product: {node.name}")


def _float32(values: Any) -> Floats:
    return np.ascontiguousarray(values, np.float32)


def _describe(folder: Path, graph: Graph, *, width: int) -> None:
    """Say how vectors are made, as sentence-transformers and Tercet read it."""
    kinds = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(kinds.items())
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 512})
    (folder / "1_Pooling").mkdir()
    pooling = {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": graph.pooling == "cls",
        "pooling_mode_mean_tokens": graph.pooling == "mean",
    }
    write_json(folder / "1_Pooling" / "config.json", pooling)
    prompts = {"query": graph.query_prefix} if graph.query_prefix else {}
    settings = {"prompts": prompts, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    write_json(folder / "config_sentence_transformers.json", settings)
