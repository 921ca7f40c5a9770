"""Heads: one vector, or a pair of vectors, to the raw numbers that an objective reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.errors import TercetError
from tercet.nn.cosine import cosine

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
}
FEATURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "absdiff": lambda u, v: (u - v).abs(),
    "product": lambda u, v: u * v,
    "dot": lambda u, v: (u * v).sum(dim=-1, keepdim=True),
    "cosine": lambda u, v: cosine(u, v).unsqueeze(-1).to(u.dtype),
}
_ONE_NUMBER = ("dot", "cosine")


def _check(name: str, known: Iterable[str], *, what: str) -> str:
    if name not in known:
        raise TercetError(f"{what} {name!r} is unknown: use {', '.join(known)}")
    return name


def _linear(width: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(width, outputs)
    # BERT's initialisation.
    nn.init.normal_(layer.weight, mean=0.0, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer


class MlpHead(nn.Module):
    """Linear layers on one vector, of a sentence or of a pair encoded jointly."""

    def __init__(
        self,
        *,
        width: int,
        outputs: int,
        hidden: Sequence[int] = (),
        activation: str = "relu",
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        widths = [width, *hidden, outputs]
        self.layers = nn.ModuleList(map(_linear, widths[:-1], widths[1:]))
        self.activation = ACTIVATIONS[_check(activation, ACTIVATIONS, what="activation")]
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        for index, layer in enumerate(self.layers):
            if index > 0:
                vectors = self.activation(vectors)
            vectors = layer(self.dropout(vectors))
        return vectors


class FeatureHead(nn.Module):
    """Linear layers on features of two vectors, laid side by side in the given order."""

    def __init__(
        self,
        *,
        width: int,
        outputs: int,
        features: Sequence[str],
        hidden: Sequence[int] = (),
        activation: str = "relu",
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if not features:
            raise TercetError(f"`features` is empty: name one or more of {', '.join(FEATURES)}")
        self.features = [FEATURES[_check(name, FEATURES, what="feature")] for name in features]
        self.mlp = MlpHead(
            width=sum(1 if name in _ONE_NUMBER else width for name in features),
            outputs=outputs,
            hidden=hidden,
            activation=activation,
            dropout=dropout,
        )

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """u [n, width], v [n, width] -> [n, outputs]"""
        raw: Tensor = self.mlp(torch.cat([feature(u, v) for feature in self.features], dim=-1))
        return raw


class CosineHead(nn.Module):
    """The cosine of two vectors, after one linear layer where asked for."""

    def __init__(
        self,
        *,
        width: int,
        outputs: int = 1,
        projection: bool = False,
        projection_width: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if outputs != 1:
            raise TercetError(
                f"a `cosine` head gives one number, and its objective needs {outputs}"
            )
        self.projection = _linear(width, projection_width or width) if projection else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """u [n, width], v [n, width] -> fp32 [n, 1]"""
        u, v = (self.projection(self.dropout(vectors)) for vectors in (u, v))
        return cosine(u, v).unsqueeze(-1)


HEADS: dict[str, type[nn.Module]] = {
    "mlp": MlpHead,
    "features": FeatureHead,
    "cosine": CosineHead,
}
"""Heads by their kind in a recipe; keywords are `width`, `outputs` and the recipe's keys."""
