"""Heads: one vector, or a pair of vectors, to the raw numbers that an objective reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.nn.activations import ACTIVATIONS
from tercet.nn.cosine import cosine
from tercet.nn.exemplars import ExemplarHead, NearestHead
from tercet.nn.layers_head import LayersHead

Through = Callable[[Tensor], Tensor]
"""Shared layers: what a head reads [n, width] to what its own layers begin with."""

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


def feature_width(features: Sequence[str], width: int) -> int:
    """How wide the features of vectors of a width are, laid side by side."""
    return sum(1 if name in _ONE_NUMBER else width for name in features)


def _as_it_is(vectors: Tensor) -> Tensor:
    return vectors


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
        shared: int | None = None,
    ) -> None:
        """`shared`: the width that shared layers give, where some stand before this head's own."""
        super().__init__()
        widths = [shared or width, *hidden, outputs]
        self.layers = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.activation = ACTIVATIONS[_check(activation, ACTIVATIONS, what="activation")]
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, shared: Through = _as_it_is) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        vectors = shared(vectors)
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
        shared: int | None = None,
    ) -> None:
        super().__init__()
        if not features:
            raise TercetError(f"`features` is empty: name one or more of {', '.join(FEATURES)}")
        self.features = [FEATURES[_check(name, FEATURES, what="feature")] for name in features]
        self.mlp = MlpHead(
            width=feature_width(features, width),
            outputs=outputs,
            hidden=hidden,
            activation=activation,
            dropout=dropout,
            shared=shared,
        )

    def forward(self, u: Tensor, v: Tensor, shared: Through = _as_it_is) -> Tensor:
        """u [n, width], v [n, width] -> [n, outputs]"""
        laid = torch.cat([feature(u, v) for feature in self.features], dim=-1)
        raw: Tensor = self.mlp(laid, shared)
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
        self.projection = (
            nn.Linear(width, projection_width or width) if projection else nn.Identity()
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """u [n, width], v [n, width] -> fp32 [n, 1]"""
        u, v = (self.projection(self.dropout(vectors)) for vectors in (u, v))
        return cosine(u, v).unsqueeze(-1)


class DensePairHead(nn.Module):
    """A pair encoded jointly in both orders: one linear layer for each, perhaps one for their
    difference, and a final one on what these give."""

    def __init__(
        self,
        *,
        width: int,
        outputs: int,
        difference: bool = True,
        activation: str | None = None,
        dropout: float = 0.1,
        shared: int | None = None,
    ) -> None:
        super().__init__()
        self.difference = difference
        branches = 3 if difference else 2
        self.branches = nn.ModuleList(nn.Linear(shared or width, outputs) for _ in range(branches))
        self.final = nn.Linear(branches * outputs, outputs)
        # It starts as a plain sum: at a fine-tuning rate so few weights hardly move, and a random
        # start can put the labels out of their reach.
        with torch.no_grad():
            self.final.weight.copy_(torch.eye(outputs).repeat(1, branches))
            self.final.bias.zero_()
        self.activation = ACTIVATIONS[activation] if activation is not None else _as_it_is
        self.dropout = nn.Dropout(dropout)

    def forward(self, ab: Tensor, ba: Tensor, shared: Through = _as_it_is) -> Tensor:
        """ab, ba [n, width], of each pair in its two orders -> [n, outputs]"""
        ab, ba = shared(ab), shared(ba)
        read = [ab, ba, ab - ba] if self.difference else [ab, ba]
        given = [layer(self.dropout(part)) for layer, part in zip(self.branches, read, strict=True)]
        raw: Tensor = self.final(self.activation(torch.cat(given, dim=-1)))
        return raw


HEADS: dict[str, type[nn.Module]] = {
    "mlp": MlpHead,
    "features": FeatureHead,
    "cosine": CosineHead,
    "dense-pair": DensePairHead,
    "layers": LayersHead,
    "exemplars": ExemplarHead,
    "nearest": NearestHead,
}
"""Heads by their kind in a recipe; keywords are `width`, `outputs` and the recipe's keys, and
`config` for `layers`."""
