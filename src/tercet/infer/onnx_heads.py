"""Heads on vectors as ONNX graphs; needs the extra `onnx`."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.nn.exemplars import Exemplars
from tercet.nn.onnx.graph import Graph
from tercet.specs import (
    CosineHeadSpec,
    DensePairHeadSpec,
    ExemplarHeadSpec,
    FeatureHeadSpec,
    LayersHeadSpec,
    Mode,
    ModeSpec,
    NearestHeadSpec,
)

OUTPUTS = "outputs"


def head_graph(network: Network, task: str, mode: Mode, spec: ModeSpec) -> ModelProto:
    """Vectors to what a head gives before it becomes a prediction.

    Inputs: vectors [rows, width]; u and v where the head reads two: of both sentences (bi), or of
    the pair in both orders (dense-pair). Output: outputs [rows, outputs].
    """
    head = network.heads_of(task)[mode]
    shared = network.shared[spec.shared.name] if spec.shared is not None else None
    return _Writer(head, shared, spec, width=network.encoder.config.width).model(f"{task}.{mode}")


class _Writer:
    def __init__(
        self, head: nn.Module, shared: nn.Module | None, spec: ModeSpec, *, width: int
    ) -> None:
        self.head = head
        self.shared = shared
        self.spec = spec
        self.width = width
        self.graph = Graph()

    def model(self, name: str) -> ModelProto:
        head = self.spec.head
        if isinstance(head, LayersHeadSpec):
            raise TercetError(
                f"The head of {name} is of kind `{head.kind}`, which reads hidden states and "
                "cannot be exported to ONNX yet."
            )
        if isinstance(head, FeatureHeadSpec):
            given = self._features(head, *self._two())
        elif isinstance(head, CosineHeadSpec):
            given = self._cosine_head(*self._two())
        elif isinstance(head, DensePairHeadSpec):
            given = self._dense_pair(head, *self._two())
        elif isinstance(head, ExemplarHeadSpec):
            given = self._exemplars(self._input("vectors"))
        elif isinstance(head, NearestHeadSpec):
            given = self._nearest(self._input("vectors"))
        else:
            given = self._layers(self.head, self._through(self._input("vectors")))
        self.graph.output(OUTPUTS, given, ["rows", "outputs"])
        return self.graph.model(name)

    def _input(self, name: str) -> str:
        return self.graph.input(name, "float32", ["rows", self.width])

    def _two(self) -> tuple[str, str]:
        return self._input("u"), self._input("v")

    def _features(self, head: FeatureHeadSpec, u: str, v: str) -> str:
        graph = self.graph
        product = graph.add("Mul", u, v)
        made = {
            "u": lambda: u,
            "v": lambda: v,
            "absdiff": lambda: graph.add("Abs", graph.add("Sub", u, v)),
            "product": lambda: product,
            "dot": lambda: self._sum(product),
            "cosine": lambda: self._cosine(u, v),
        }
        laid = graph.add("Concat", *(made[name]() for name in head.features), axis=1)
        return self._layers(self._part("mlp"), self._through(laid))

    def _cosine_head(self, u: str, v: str) -> str:
        projection = self._part("projection")
        if isinstance(projection, nn.Linear):
            u, v = (self._linear(projection, vectors) for vectors in (u, v))
        return self._cosine(u, v)

    def _dense_pair(self, head: DensePairHeadSpec, ab: str, ba: str) -> str:
        ab, ba = self._through(ab), self._through(ba)
        read = [ab, ba] + ([self.graph.add("Sub", ab, ba)] if head.difference else [])
        branches = self._part("branches")
        assert isinstance(branches, nn.ModuleList)
        given = [self._linear(layer, part) for layer, part in zip(branches, read, strict=True)]
        laid = self.graph.add("Concat", *given, axis=1)
        if head.activation is not None:
            laid = self._activate(head.activation, laid)
        return self._linear(self._part("final"), laid)

    def _exemplars(self, vectors: str) -> str:
        """One linear layer on cosines and labels; the labels' part is the same for all rows."""
        final, cosines = self._part("final"), self._cosines(vectors)
        weight, bias = _numbers(final.weight), _numbers(final.bias)
        labels = np.maximum(_numbers(self._kept().labels), 0.0)
        count = len(labels)
        bias = bias + weight[:, count:] @ labels
        constants = [self.graph.constant(weight[:, :count].T), self.graph.constant(bias)]
        return self.graph.add("Gemm", cosines, *constants)

    def _nearest(self, vectors: str) -> str:
        graph, head = self.graph, self.head
        cosines, labels = self._cosines(vectors), _numbers(self._kept().labels)
        scale = head.scale
        assert isinstance(scale, Tensor)
        found = []
        for label in range(_outputs(head)):
            others = graph.constant(labels != label)
            kept = graph.add("Where", others, graph.number(-1.0), cosines)
            found.append(graph.add("ReduceMax", kept, graph.integers(1), keepdims=1))
        scales = graph.number(float(scale.detach()))
        return graph.add("Mul", graph.add("Concat", *found, axis=1), scales)

    def _cosines(self, vectors: str) -> str:
        kept = _numbers(self._kept().vectors)
        norms = np.linalg.norm(kept, axis=1, keepdims=True)
        unit = kept / np.where(norms <= _SHORTEST, np.inf, norms)
        return self.graph.add("MatMul", self._unit(vectors), self.graph.constant(unit.T))

    def _kept(self) -> Exemplars:
        exemplars = self.head.exemplars
        assert isinstance(exemplars, Exemplars)
        return exemplars

    def _through(self, vectors: str) -> str:
        """Through the shared layers, where there are some."""
        if self.shared is None or self.spec.shared is None:
            return vectors
        layers = self.shared.layers
        assert isinstance(layers, nn.ModuleList)
        for layer in layers:
            vectors = self._activate(self.spec.shared.activation, self._linear(layer, vectors))
        return vectors

    def _layers(self, mlp: nn.Module, vectors: str) -> str:
        layers, activation = mlp.layers, getattr(self.spec.head, "activation", None)
        assert isinstance(layers, nn.ModuleList)
        for index, layer in enumerate(layers):
            if index > 0:
                vectors = self._activate(str(activation), vectors)
            vectors = self._linear(layer, vectors)
        return vectors

    def _part(self, name: str) -> nn.Module:
        part = getattr(self.head, name)
        assert isinstance(part, nn.Module)
        return part

    def _linear(self, layer: nn.Module, vectors: str) -> str:
        weight, bias = _numbers(layer.weight), _numbers(layer.bias)
        constants = [self.graph.constant(weight.T), self.graph.constant(bias)]
        return self.graph.add("Gemm", vectors, *constants)

    def _activate(self, name: str, vectors: str) -> str:
        return self.graph.add({"relu": "Relu", "tanh": "Tanh", "gelu": "Gelu"}[name], vectors)

    def _sum(self, vectors: str) -> str:
        return self.graph.add("ReduceSum", vectors, self.graph.integers(1), keepdims=1)

    def _cosine(self, u: str, v: str) -> str:
        return self._sum(self.graph.add("Mul", self._unit(u), self._unit(v)))

    def _unit(self, vectors: str) -> str:
        """Vectors of length 1; a zero vector stays zero."""
        graph = self.graph
        norms = graph.add("ReduceL2", vectors, graph.integers(1), keepdims=1)
        none = graph.add("LessOrEqual", norms, graph.number(_SHORTEST))
        norms = graph.add("Where", none, graph.number(np.inf), norms)
        return graph.add("Div", vectors, norms)


_SHORTEST = 1e-12


def _numbers(tensor: object) -> np.ndarray:
    assert isinstance(tensor, Tensor)
    return tensor.detach().float().cpu().numpy()


def _outputs(head: nn.Module) -> int:
    outputs = head._outputs
    assert isinstance(outputs, int)
    return outputs
