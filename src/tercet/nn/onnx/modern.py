"""ModernBERT as an ONNX graph; needs the extra `onnx`.

Its local layers hide far tokens by a mask: a graph takes memory with the square of a row's length.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tercet.nn.architectures.modernbert import LayerType, ModernbertConfig
from tercet.nn.onnx.encoder import Shapes, Writer


class ModernWriter(Writer):
    """Writes pre-norm layers with rotary positions, local attention and gated feed-forward."""

    config: ModernbertConfig

    def begin(self, shapes: Shapes) -> None:
        graph = self.graph
        rows = graph.add("Slice", shapes.rows, graph.integers(0), graph.integers(2))
        self.positions = graph.add("Expand", shapes.places, rows)
        keys, queries = (graph.add("Unsqueeze", shapes.places, graph.integers(i)) for i in (0, 1))
        distances = graph.add("Abs", graph.add("Sub", keys, queries))
        reach = graph.integers(self.config.window // 2)
        self.near = graph.add("And", shapes.mask, graph.add("LessOrEqual", distances, reach))
        self.turns = {kind: self._turns(kind) for kind in sorted(set(self.config.layer_types))}

    def _turns(self, kind: LayerType) -> tuple[str, str]:
        """Cosines and sines of all positions, each [positions, head_width / 2]."""
        width = self.config.width // self.config.heads
        steps = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        rates = np.float32(1.0) / np.float32(self.config.angle(kind)) ** steps
        angles = np.arange(self.config.positions, dtype=np.float32)[:, None] * rates
        return self.graph.constant(np.cos(angles)), self.graph.constant(np.sin(angles))

    def embed(self, ids: str, types: str, length: str) -> str:
        graph = self.graph
        words = graph.add("Gather", graph.constant(self.state["embeddings.words.weight"]), ids)
        flat = graph.add("Reshape", words, graph.integers(-1, self.config.width))
        return self._norm("embeddings.norm", flat)

    def layer(self, index: int, hidden: str, shapes: Shapes) -> str:
        name = f"layers.{index}"
        normed = self._norm(f"{name}.attention_norm", hidden) if index else hidden
        hidden = self.graph.add("Add", self._attention(index, normed, shapes), hidden)
        normed = self._norm(f"{name}.feed_forward_norm", hidden)
        return self.graph.add("Add", self._feed_forward(index, normed), hidden)

    def attend(self, index: int, parts: list[str], shapes: Shapes) -> str:
        kind = self.config.layer_types[index]
        query, key = (
            self.graph.add(
                *("RotaryEmbedding", part, *self.turns[kind], self.positions),
                num_heads=self.config.heads,
            )
            for part in parts[:2]
        )
        mask = shapes.mask if kind == "full_attention" else self.near
        return super().attend(index, [query, key, parts[2]], replace(shapes, mask=mask))

    def neurons(self, name: str, hidden: str, order: NDArray[np.int64]) -> str:
        weight, bias = self._parameters(f"{name}.expand")
        halves = np.split(weight, 2), np.split(bias, 2)
        activated, gate = self._linears(
            f"{name}.expand", hidden, *([half[order] for half in part] for part in halves)
        )
        activated = self.graph.activation(self.config.activation, activated)
        return self.graph.add("Mul", activated, gate)
