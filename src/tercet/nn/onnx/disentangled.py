"""DeBERTa as an ONNX graph; needs the extra `onnx`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tercet.nn.architectures.deberta import Comparison, DebertaConfig
from tercet.nn.disentangled import Distances
from tercet.nn.encoder import Encoder
from tercet.nn.onnx.encoder import Floats, Shapes, Writer
from tercet.nn.onnx.rounding import Rounding
from tercet.specs import Pooling


class DisentangledWriter(Writer):
    """Writes BERT's layers with disentangled attention."""

    config: DebertaConfig

    def __init__(
        self, encoder: Encoder, *, pooling: Pooling, roundings: Mapping[str, Rounding] | None
    ) -> None:
        super().__init__(encoder, pooling=pooling, roundings=roundings)
        distances = encoder.relations
        assert isinstance(distances, Distances)
        table = distances.table.weight
        table = table if distances.norm is None else distances.norm(table)
        self.table: Floats = table.detach().float().cpu().numpy()
        self.rows = distances.buckets.cpu().numpy()
        self.farthest = distances.farthest

    def begin(self, shapes: Shapes) -> None:
        """The rows of the table for the distances of all pairs of tokens, [length, length]."""
        graph = self.graph
        keys, queries = (graph.add("Unsqueeze", shapes.places, graph.integers(i)) for i in (0, 1))
        away = graph.add("Add", graph.add("Sub", queries, keys), graph.integers(self.farthest))
        self.table_rows = graph.add("Gather", graph.constant(self.rows), away)
        head_width = self.config.width // self.config.heads
        self.per_head = graph.integers(0, 0, self.config.heads, head_width)

    def embed(self, ids: str, types: str, length: str) -> str:
        graph, state = self.graph, self.state
        summed = graph.add("Gather", graph.constant(state["embeddings.words.weight"]), ids)
        if "embeddings.types.weight" in state:
            kinds = state["embeddings.types.weight"]
            if types:
                added = graph.add("Gather", graph.constant(kinds), types)
            else:
                added = graph.constant(kinds[0])
            summed = graph.add("Add", summed, added)
        flat = graph.add("Reshape", summed, graph.integers(-1, self.config.words_width))
        if "embeddings.widen.weight" in state:
            flat = self._linear("embeddings.widen", flat)
        return self._norm("embeddings.norm", flat)

    def attend(self, index: int, parts: list[str], shapes: Shapes) -> str:
        graph, config = self.graph, self.config
        head_width = config.width // config.heads
        scale = 1.0 / math.sqrt(head_width * (1 + len(set(config.comparisons))))
        added = graph.add("Where", shapes.mask, graph.number(0.0), graph.number(-np.inf))
        for comparison in sorted(set(config.comparisons)):
            compared = self._compared(index, comparison, parts, scale)
            added = graph.add("Add", added, compared)
        heads = config.heads
        return graph.add(
            "Attention", *parts, added, scale=scale, q_num_heads=heads, kv_num_heads=heads
        )

    def _compared(self, index: int, comparison: Comparison, parts: list[str], scale: float) -> str:
        """Scores of words and distances, [rows, heads, length, length]."""
        graph = self.graph
        words = parts[0] if comparison == "c2p" else parts[1]
        words = graph.add(
            "Transpose", graph.add("Reshape", words, self.per_head), perm=[0, 2, 1, 3]
        )
        scores = graph.add("MatMul", words, graph.constant(self._projected(index, comparison)))
        # A row of these scores is a query's (c2p) or a key's (p2c).
        buckets = self.table_rows
        if comparison == "p2c":
            buckets = graph.add("Transpose", buckets, perm=[1, 0])
        shape = graph.add("Concat", *self._sizes(scores), axis=0)
        found = graph.add("GatherElements", scores, graph.add("Expand", buckets, shape), axis=3)
        found = graph.add("Mul", found, graph.number(scale))
        return found if comparison == "c2p" else graph.add("Transpose", found, perm=[0, 1, 3, 2])

    def _sizes(self, scores: str) -> tuple[str, str]:
        """rows, heads and length of scores, and the length again."""
        graph = self.graph
        shape = graph.add("Shape", scores)
        first = graph.add("Slice", shape, graph.integers(0), graph.integers(3))
        return first, graph.add("Slice", shape, graph.integers(2), graph.integers(3))

    def _projected(self, index: int, comparison: Comparison) -> Floats:
        """The distances as keys or queries: [heads, head_width, rows of the table]."""
        name = f"layers.{index}.attention"
        if self.config.shares_projections:
            weight, bias = self._parameters(f"{name}.qkv")
            place = 1 if comparison == "c2p" else 0
            weight, bias = np.split(weight, 3)[place], np.split(bias, 3)[place]
        else:
            own = "distance_keys" if comparison == "c2p" else "distance_queries"
            weight, bias = self._parameters(f"{name}.{own}")
        projected = self.table @ weight.T + bias
        return projected.reshape(len(self.table), self.config.heads, -1).transpose(1, 2, 0)
