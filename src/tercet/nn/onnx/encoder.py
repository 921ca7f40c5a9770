"""The encoder as an ONNX graph, with pooling and normalisation; needs the extra `onnx`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from tercet.errors import TercetError
from tercet.nn.encoder import Encoder
from tercet.nn.onnx.graph import MICROSOFT, Graph
from tercet.nn.onnx.rounding import Rounding
from tercet.specs import Pooling
from tercet.specs.registry import resolve

Floats = NDArray[np.float32]


def encoder_graph(
    encoder: Encoder, *, pooling: Pooling, roundings: Mapping[str, Rounding] | None
) -> ModelProto:
    """Token ids to vectors.

    roundings: for int8, of the linear layers by name; None for fp32
    Inputs, int64 [rows, length], under the names that tokenizers of other libraries give them:
    input_ids; attention_mask, 1 for the tokens that each row starts with and 0 for the padding
    after them; and, where the encoder has several token types, token_type_ids. Outputs: vectors
    [rows, width], as pooled, and embeddings [rows, width], of length 1.
    """
    config = encoder.config
    if not config.architecture.onnx:
        raise TercetError(
            f"Encoders of the architecture `{config.model_type}` cannot be exported to ONNX yet."
        )
    writer: Writer = resolve(config.architecture.onnx)(
        encoder, pooling=pooling, roundings=roundings
    )
    return writer.model()


@dataclass(frozen=True, slots=True)
class Shapes:
    """Values that all layers share.

    rows: [rows, length, width], flat: [-1, width]; as shapes
    mask: which tokens attend to which, bool [rows, 1, length, length]; with a relative position
        bias what is added to the scores, [rows, heads, length, length]
    places: [length]
    """

    rows: str
    flat: str
    mask: str
    places: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rounded:
    """Hidden states as 8-bit steps, the size of a step, and the step that represents zero."""

    steps: str
    scale: str
    zero: str


class Writer:
    """Writes the graph of an encoder with BERT's layers."""

    def __init__(
        self, encoder: Encoder, *, pooling: Pooling, roundings: Mapping[str, Rounding] | None
    ) -> None:
        self.config = encoder.config
        self.pooling = pooling
        self.roundings = roundings
        self.state: dict[str, Floats] = {
            name: tensor.detach().float().cpu().numpy()
            for name, tensor in encoder.state_dict().items()
        }
        self.buckets = None
        if encoder.relative_bias is not None:
            self.buckets = encoder.relative_bias.buckets.cpu().numpy()
        self.graph = Graph()

    def model(self) -> ModelProto:
        graph, width = self.graph, self.config.width
        ids = graph.input("input_ids", "int64", ["rows", "length"])
        attention_mask = graph.input("attention_mask", "int64", ["rows", "length"])
        has_types = self.config.token_types > 1
        types = graph.input("token_type_ids", "int64", ["rows", "length"]) if has_types else ""
        shape = graph.add("Shape", ids)
        length = graph.add("Gather", shape, graph.integers(1))
        start, step = (graph.constant(np.array(value, np.int64)) for value in (0, 1))
        places = graph.add("Range", start, graph.add("Squeeze", length), step)
        real = graph.add("Cast", attention_mask, to=TensorProto.BOOL)
        shapes = Shapes(
            rows=graph.add("Concat", shape, graph.integers(width), axis=0),
            flat=graph.integers(-1, width),
            mask=self._mask(real, places, shape),
            places=places,
        )
        self.begin(shapes)
        hidden = self.embed(ids, types, length)
        for index in range(self.config.layers):
            hidden = self.layer(index, hidden, shapes)
        hidden = self._norm("final_norm", hidden) if self.config.architecture.final_norm else hidden
        vectors = self._pool(graph.add("Reshape", hidden, shapes.rows), real)
        graph.output("vectors", vectors, ["rows", width])
        graph.output("embeddings", graph.unit(vectors), ["rows", width])
        return graph.model(
            "encoder", max_tokens=self.config.max_tokens, vocabulary=self.config.vocabulary
        )

    def begin(self, shapes: Shapes) -> None:
        """Add what the layers of an architecture share besides `shapes`."""

    def embed(self, ids: str, types: str, length: str) -> str:
        """ids and types [rows, length] -> [total, width]; total is rows * length."""
        graph, state = self.graph, self.state
        words = graph.add("Gather", graph.constant(state["embeddings.words.weight"]), ids)
        table = state["embeddings.positions.weight"][self.config.first_position :]
        if self.config.token_types == 1:
            table = table + state["embeddings.types.weight"]
        start = graph.integers(0)
        positions = graph.add("Slice", graph.constant(table), start, length, start)
        summed = graph.add("Add", words, positions)
        if types:
            kinds = graph.constant(state["embeddings.types.weight"])
            summed = graph.add("Add", summed, graph.add("Gather", kinds, types))
        flat = graph.add("Reshape", summed, graph.integers(-1, self.config.words_width))
        embedded = self._norm("embeddings.norm", flat)
        has_widen = "embeddings.widen.weight" in state
        return self._linear("embeddings.widen", embedded) if has_widen else embedded

    def layer(self, index: int, hidden: str, shapes: Shapes) -> str:
        """hidden [total, width] -> [total, width]."""
        name = f"layers.{index}"
        attended = self.graph.add("Add", self._attention(index, hidden, shapes), hidden)
        hidden = self._norm(f"{name}.attention_norm", attended)
        added = self._feed_forward(index, hidden)
        return self._norm(f"{name}.feed_forward_norm", self.graph.add("Add", added, hidden))

    def _attention(self, index: int, hidden: str, shapes: Shapes) -> str:
        """[total, width] -> [total, width]."""
        name = f"layers.{index}.attention"
        weight, bias = self._parameters(f"{name}.qkv")
        projected = self._linears(f"{name}.qkv", hidden, np.split(weight, 3), np.split(bias, 3))
        parts = [self.graph.add("Reshape", part, shapes.rows) for part in projected]
        mixed = self.attend(index, parts, shapes)
        return self._linear(f"{name}.output", self.graph.add("Reshape", mixed, shapes.flat))

    def attend(self, index: int, parts: list[str], shapes: Shapes) -> str:
        """Queries, keys and values, each [rows, length, width] -> [rows, length, width]."""
        heads = self.config.heads
        return self.graph.add(
            "Attention", *parts, shapes.mask, q_num_heads=heads, kv_num_heads=heads
        )

    def _feed_forward(self, index: int, hidden: str) -> str:
        """[total, width] -> [total, width]."""
        name = f"layers.{index}.feed_forward"
        every = np.arange(self.config.feed_forward)
        if self.roundings is None:
            return self._linear(f"{name}.contract", self.neurons(name, hidden, every))
        narrow, narrow_bias = self._parameters(f"{name}.contract")
        rounding = self.roundings[f"{name}.contract"]
        # Those in fp32 come last: the 8-bit product reads zeros there, an fp32 product reads them.
        order = np.append(np.setdiff1d(every, rounding.apart), rounding.apart)
        usual = len(order) - len(rounding.apart)
        activated = self.neurons(name, hidden, order)
        narrow = narrow[:, order]
        weight = np.where(np.arange(len(order)) < usual, narrow, np.float32(0))
        product = self._product(self._rounded(activated, rounding), weight, narrow_bias)
        if not len(rounding.apart):
            return product
        ends = map(self.graph.integers, (usual, len(order), 1))
        apart = self.graph.add("Slice", activated, *ends)
        return self.graph.add("Gemm", apart, self.graph.constant(narrow[:, usual:].T), product)

    def neurons(self, name: str, hidden: str, order: NDArray[np.int64]) -> str:
        """The activated neurons of a feed-forward part in an order: [total, feed_forward]."""
        weight, bias = self._parameters(f"{name}.expand")
        (expanded,) = self._linears(f"{name}.expand", hidden, [weight[order]], [bias[order]])
        return self.graph.activation(self.config.activation, expanded)

    def _parameters(self, name: str) -> tuple[Floats, Floats]:
        """Weight and bias; a missing bias is zero."""
        weight = self.state[f"{name}.weight"]
        return weight, self.state.get(f"{name}.bias", np.zeros(len(weight), np.float32))

    def _linear(self, name: str, hidden: str) -> str:
        weight, bias = self._parameters(name)
        (result,) = self._linears(name, hidden, [weight], [bias])
        return result

    def _linears(
        self, name: str, hidden: str, weights: list[Floats], biases: list[Floats]
    ) -> list[str]:
        """The parts of a linear layer; weights [outputs, inputs], biases [outputs] each."""
        layers = zip(weights, biases, strict=True)
        if self.roundings is None or name not in self.roundings:
            return [self.graph.linear(weight, bias, hidden) for weight, bias in layers]
        rounding = self.roundings[name]
        rounded = self._rounded(hidden, rounding)
        return [self._product(rounded, weight * rounding.divisors, bias) for weight, bias in layers]

    def _rounded(self, hidden: str, rounding: Rounding) -> _Rounded:
        graph = self.graph
        if (rounding.divisors != 1).any():
            hidden = graph.add("Mul", hidden, graph.constant(1 / rounding.divisors))
        scale = graph.constant(np.array(rounding.step, np.float32))
        zero = graph.constant(np.array(rounding.zero, np.uint8))
        steps = graph.add("QuantizeLinear", hidden, scale, zero)
        return _Rounded(steps=steps, scale=scale, zero=zero)

    def _product(self, hidden: _Rounded, weight: Floats, bias: Floats) -> str:
        """The product in 8 bits; weight [outputs, inputs], bias [outputs]."""
        graph = self.graph
        steps, scales = quantised(weight)
        inputs = [
            *(hidden.steps, graph.constant(steps.T), hidden.scale, graph.constant(scales)),
            *(hidden.zero, "", graph.constant(bias)),
        ]
        return graph.add("MatMulIntegerToFloat", *inputs, domain=MICROSOFT)

    def _norm(self, name: str, hidden: str) -> str:
        weight, bias = map(self.graph.constant, self._parameters(name))
        return self.graph.add(
            "LayerNormalization", hidden, weight, bias, epsilon=self.config.norm_eps
        )

    def _mask(self, real: str, places: str, shape: str) -> str:
        """real, bool [rows, length], and places [length] -> the mask of attention."""
        graph = self.graph
        is_key = graph.add("Unsqueeze", real, graph.integers(1, 2))
        if self.buckets is None:
            rows, length = (graph.add("Gather", shape, graph.integers(i)) for i in (0, 1))
            square = graph.add("Concat", rows, graph.integers(1), length, length, axis=0)
            return graph.add("Expand", is_key, square)
        keys, queries = (graph.add("Unsqueeze", places, graph.integers(i)) for i in (0, 1))
        distances = graph.add("Sub", keys, queries)
        farthest = graph.integers(len(self.buckets) // 2)
        buckets = graph.add(
            "Gather", graph.constant(self.buckets), graph.add("Add", distances, farthest)
        )
        table = graph.constant(self.state["relative_bias.table.weight"])
        bias = graph.add("Transpose", graph.add("Gather", table, buckets), perm=[2, 0, 1])
        return graph.add("Where", is_key, bias, graph.number(-np.inf))

    def _pool(self, hidden: str, real: str) -> str:
        """hidden [rows, length, width] and real, bool [rows, length] -> [rows, width]."""
        graph = self.graph
        if self.pooling in ("cls", "pooler"):
            first = graph.add("Slice", hidden, *map(graph.integers, (0, 1, 1)))
            first = graph.add("Squeeze", first, graph.integers(1))
            if self.pooling == "cls":
                return first
            if "pooler.dense.weight" not in self.state:
                raise TercetError(
                    "pooling 'pooler' needs an encoder with a pooler; this one has none"
                )
            return graph.activation("tanh", graph.linear(*self._parameters("pooler.dense"), first))
        real = graph.add("Unsqueeze", real, graph.integers(2))
        if self.pooling == "max":
            masked = graph.add("Where", real, hidden, graph.number(-np.inf))
            return graph.add("ReduceMax", masked, graph.integers(1), keepdims=0)
        masked = graph.add("Where", real, hidden, graph.number(0.0))
        summed = graph.add("ReduceSum", masked, graph.integers(1), keepdims=0)
        ones = graph.add("Cast", real, to=TensorProto.FLOAT)
        counts = graph.add("ReduceSum", ones, graph.integers(1), keepdims=0)
        return graph.add("Div", summed, counts)


def quantised(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """A weight [outputs, inputs] in steps from -127 to 127, and the size of a step [outputs]."""
    scales = np.abs(weight).max(axis=1) / np.float32(127)
    scales[scales == 0] = 1.0
    steps = np.rint(weight / scales[:, None])
    return np.clip(steps, -127, 127).astype(np.int8), scales
