"""The head of a task as an ONNX graph; needs the extra `onnx`."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto

from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.nn.onnx.graph import Graph
from tercet.specs import Mode

OUTPUTS = "outputs"


def head_graph(network: Network, task: str, mode: Mode) -> ModelProto:
    """Vectors to the head's outputs.

    Inputs: vectors [rows, width]; u and v where the head reads two: of both sentences (bi), or of
    the pair in both orders. Output: outputs [rows, outputs].
    """
    spec = network.tasks[task].modes[mode]
    head: Any = network.heads_of(task)[mode]
    if not hasattr(head, "to_onnx"):
        kind = spec.head.kind if spec.head is not None else mode
        raise TercetError(
            f"The head of {task}.{mode} is of kind `{kind}`, which cannot be exported to ONNX."
        )
    graph = Graph()
    two = mode == "bi" or not spec.reads_vectors
    width = network.encoder.config.width
    names = ("u", "v") if two else ("vectors",)
    inputs = [graph.input(name, "float32", ["rows", width]) for name in names]
    options = {}
    if spec.shared is not None:
        layers: Any = network.shared[spec.shared.name]
        options["shared"] = lambda vectors: layers.to_onnx(graph, vectors)
    graph.output(OUTPUTS, head.to_onnx(graph, *inputs, **options), ["rows", "outputs"])
    return graph.model(f"{task}.{mode}")
