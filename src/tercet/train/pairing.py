"""Pairs made of single sentences, for a teacher to label: at random, and of near ones."""

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
from tercet.specs import PairsSpec
from tercet.text.tokens import Pieces
from tercet.train.listener import Listener
from tercet.train.teaching import hash_tensors

Rows = NDArray[np.int64]
FORMAT = 1  # of the cache: raise it when the same sentences give other pairs
AT_ONCE = 256  # sentences whose neighbours are looked for in one matrix product


def make_pairs(
    texts: Pieces, spec: PairsSpec, *, engine: Engine, listener: Listener
) -> tuple[Rows, Rows]:
    """Rows of the first and of the second sentence of every pair, int64 [m] each.

    No pair joins a sentence with itself or with its copy. `engine` has the encoder as it is before
    training. Pairs of near ones are kept on disk, by content.
    """
    kept, _ = texts.distinct()
    if len(kept) < 2:
        raise TercetError("`data.pairs` needs two different sentences or more.")
    first, second = _random(len(kept), spec.random, np.random.default_rng([spec.seed, 0]))
    if spec.nearest:

        def make() -> Stored:
            near = _nearest(texts, kept, spec, engine=engine, listener=listener)
            return Stored({"pairs": np.stack(near)}, None)

        stored = cached(cache_folder("pairs"), _key(texts, spec, engine), make)
        near = stored.arrays["pairs"]
        first, second = np.concatenate([first, near[0]]), np.concatenate([second, near[1]])
    return kept[first], kept[second]


def _random(rows: int, count: int, generator: np.random.Generator) -> tuple[Rows, Rows]:
    first = generator.integers(rows, size=count)
    # A step of 1 to rows - 1, around the end: never back to the same.
    return first, (first + generator.integers(1, rows, size=count)) % rows


def _nearest(
    texts: Pieces, kept: Rows, spec: PairsSpec, *, engine: Engine, listener: Listener
) -> tuple[Rows, Rows]:
    """Places among `kept` of sentences, and of one of the nearest of each."""
    generator = np.random.default_rng([spec.seed, 1])
    again = spec.nearest > len(kept)
    chosen = generator.choice(len(kept), size=spec.nearest, replace=again)
    among = min(spec.among, len(kept) - 1)
    picked = generator.integers(among, size=spec.nearest)
    with listener.working("vectors of the sentences to pair") as progress:
        vectors = engine.vectors(texts, kept, progress=progress)
    known = torch.from_numpy(vectors).to(engine.network.device)
    known /= known.norm(dim=1, keepdim=True).clamp(min=1e-12)
    found = np.empty(spec.nearest, np.int64)
    with listener.working("pairs of near sentences") as progress:
        for start in range(0, len(chosen), AT_ONCE):
            block = slice(start, start + AT_ONCE)
            rows = torch.from_numpy(chosen[block]).to(known.device)
            cosines = known[rows] @ known.T
            cosines.scatter_(1, rows[:, None], -2.0)
            nearest = cosines.topk(among, dim=1).indices.cpu().numpy()
            found[block] = nearest[np.arange(len(nearest)), picked[block]]
            progress(min(start + AT_ONCE, len(chosen)), len(chosen))
    return chosen, found


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
