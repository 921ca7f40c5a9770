"""Pairs of single sentences for a teacher to label: random ones, and near ones."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import torch
from numpy.typing import NDArray

from tercet.data.cache import Stored, cached
from tercet.errors import TercetError
from tercet.files import cache_folder
from tercet.infer.engine import Engine
from tercet.nn.cosine import unit
from tercet.specs import PairsSpec
from tercet.text.tokens import Pieces
from tercet.training.listener import Listener
from tercet.training.teaching import hash_tensors

Rows = NDArray[np.int64]
FORMAT = 1  # of the cache: raise it when the same sentences give other pairs
BLOCK = 256  # sentences per matrix product of the search for neighbours


def make_pairs(
    texts: Pieces, spec: PairsSpec, *, engine: Engine, listener: Listener
) -> tuple[Rows, Rows]:
    """Rows of the first and of the second sentence of every pair, int64 [m] each.

    No pair joins a sentence with itself or with its copy. `engine` has the encoder as published.
    Near pairs are cached on disk, by content.
    """
    rows, _ = texts.distinct()
    if len(rows) < 2:
        raise TercetError("`data.pairs` needs at least two different sentences.")
    first, second = _random(len(rows), spec.random, np.random.default_rng([spec.seed, 0]))
    if spec.nearest:

        def make() -> Stored:
            near = _nearest(texts, rows, spec, engine=engine, listener=listener)
            return Stored({"pairs": np.stack(near)}, None)

        stored = cached(cache_folder("pairs"), _key(texts, spec, engine), make)
        near = stored.arrays["pairs"]
        first, second = np.concatenate([first, near[0]]), np.concatenate([second, near[1]])
    return rows[first], rows[second]


def _random(rows: int, count: int, generator: np.random.Generator) -> tuple[Rows, Rows]:
    first = generator.integers(rows, size=count)
    # An offset of 1 to rows - 1 never leads back to the same row.
    return first, (first + generator.integers(1, rows, size=count)) % rows


def _nearest(
    texts: Pieces, distinct: Rows, spec: PairsSpec, *, engine: Engine, listener: Listener
) -> tuple[Rows, Rows]:
    """Indices into `distinct` of sentences, and of one of the nearest to each."""
    generator = np.random.default_rng([spec.seed, 1])
    repeats = spec.nearest > len(distinct)
    chosen = generator.choice(len(distinct), size=spec.nearest, replace=repeats)
    among = min(spec.among, len(distinct) - 1)
    picked = generator.integers(among, size=spec.nearest)
    with listener.working("vectors of the sentences to pair") as progress:
        vectors = engine.vectors(texts, distinct, progress=progress)
    known = unit(torch.from_numpy(vectors).to(engine.network.device))
    partners = np.empty(spec.nearest, np.int64)
    with listener.working("pairs of near sentences") as progress:
        for start in range(0, len(chosen), BLOCK):
            block = slice(start, start + BLOCK)
            rows = torch.from_numpy(chosen[block]).to(known.device)
            cosines = known[rows] @ known.T
            cosines.scatter_(1, rows[:, None], -2.0)
            nearest = cosines.topk(among, dim=1).indices.cpu().numpy()
            partners[block] = nearest[np.arange(len(nearest)), picked[block]]
            progress(min(start + BLOCK, len(chosen)), len(chosen))
    return chosen, partners


def _key(texts: Pieces, spec: PairsSpec, engine: Engine) -> str:
    digest = hashlib.sha256(texts.ids.tobytes() + texts.offsets.tobytes())
    parts = {
        "format": FORMAT,
        "texts": digest.hexdigest(),
        "encoder": hash_tensors(engine.network.encoder),
        "pooling": engine.network.pooling,
        "max_tokens": engine.max_tokens,
        "pairs": spec.model_dump(mode="json", exclude={"random"}),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
