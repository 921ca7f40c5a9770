"""The ONNX folder: graphs of the encoder and its heads, the tokenizer and the metadata.

model.onnx holds the encoder with pooling and normalisation, heads/TASK.MODE.onnx one head each.
Writing needs the extra `onnx` and torch; reading only ONNX Runtime.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from tercet.data.sketch import Sketch
from tercet.errors import TercetError, install_hint
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import (
    INFO_FILE,
    Parts,
    check_max_tokens,
    is_model_folder,
    read_info,
    replace_model_folder,
    write_info,
)
from tercet.folders.seen_file import write_seen
from tercet.network.onnx_network import (
    HEADS_FOLDER,
    MODEL_FILE,
    OnnxNetwork,
    exported_heads,
    head_file,
)
from tercet.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from onnx import ModelProto

Precision = Literal["fp32", "int8"]


class OnnxParts(NamedTuple):
    """The parts of a model in ONNX Runtime."""

    network: OnnxNetwork
    tokenizer: Tokenizer
    info: ModelInfo


def is_onnx_folder(folder: Path) -> bool:
    return is_model_folder(folder) and (folder / MODEL_FILE).is_file()


def export_onnx(
    folder: Path, parts: Parts, *, precision: Precision, sketch: Sketch | None = None
) -> None:
    """Write an ONNX folder of the network's full depth; int8 applies to linear layers of the
    encoder, heads stay fp32."""
    try:
        from tercet.network.head_graph import head_graph
        from tercet.nn.onnx.encoder import encoder_graph
        from tercet.nn.onnx.rounding import find_roundings
    except ImportError as error:
        if error.name != "onnx":
            raise
        raise TercetError(
            f"Export to ONNX needs further packages: {install_hint('onnx')}."
        ) from error
    network, tokenizer, info = parts
    info = info.at(network.encoder.config.layers)
    if network.sides:
        raise TercetError(
            f"The task `{next(iter(network.sides))}` has side weights, which cannot be exported to "
            "ONNX."
        )
    heads = {
        (task, mode): head_graph(network, task, mode) for task, mode in exported_heads(info.tasks)
    }
    roundings = find_roundings(network.encoder, tokenizer) if precision == "int8" else None
    encoder = encoder_graph(network.encoder, pooling=info.pooling, roundings=roundings)
    with replace_model_folder(folder) as writing:
        _write_graph(writing / MODEL_FILE, encoder)
        (writing / HEADS_FOLDER).mkdir()
        for (task, mode), graph in heads.items():
            _write_graph(head_file(writing, task, mode), graph)
        tokenizer.save(writing)
        write_info(writing / INFO_FILE, info)
        write_seen(writing, sketch)


def load_onnx_folder(folder: Path) -> OnnxParts:
    """Read what `export_onnx` wrote."""
    info = read_info(folder / INFO_FILE)
    tokenizer = Tokenizer.load(folder, is_saved=True)
    network = OnnxNetwork(folder, tasks=info.tasks)
    tokenizer.check_fits(network.vocabulary)
    check_max_tokens(folder, info, most=network.max_tokens)
    return OnnxParts(network, tokenizer, info)


def save_onnx_folder(folder: Path, parts: OnnxParts, *, sketch: Sketch | None = None) -> None:
    """Copy the folder that a model was loaded from, with its present metadata."""
    network, tokenizer, info = parts
    with replace_model_folder(folder) as writing:
        # Only what was read as a graph: a folder may hold links to any file of this machine.
        network.open_heads()
        shutil.copyfile(network.folder / MODEL_FILE, writing / MODEL_FILE)
        (writing / HEADS_FOLDER).mkdir()
        for task, mode in exported_heads(info.tasks):
            source = head_file(network.folder, task, mode)
            shutil.copyfile(source, head_file(writing, task, mode))
        tokenizer.save(writing)
        write_info(writing / INFO_FILE, info)
        write_seen(writing, sketch)


def _write_graph(path: Path, graph: ModelProto) -> None:
    path.write_bytes(graph.SerializeToString())
