"""Near pairs that are not known to mean the same, for heads that learn to rank."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import torch
from numpy.typing import NDArray

from tercet.data.cache import Stored, cached
from tercet.data.components import Components
from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.files import cache_folder
from tercet.infer.engine import Engine
from tercet.nn.cosine import unit
from tercet.specs import NegativesSpec
from tercet.text.tokens import Pieces
from tercet.training.listener import Listener
from tercet.training.teaching import hash_tensors

Rows = NDArray[np.int64]
FORMAT = 1  # of the cache: raise it when the same pairs give other negatives
BLOCK = 256  # texts per matrix product of the search for neighbours
SPARE = 12  # neighbours beyond `among`, since known duplicates are the nearest


def make_negatives(
    table: TaskTable, spec: NegativesSpec, *, engine: Engine, listener: Listener
) -> tuple[Rows, Rows]:
    """Rows of the first text and of the second text of every pair, int64 [m] each.

    `engine` has the encoder as published. They are cached on disk, by content.
    """

    def make() -> Stored:
        pairs = _make(table, spec, engine=engine, listener=listener)
        return Stored({"pairs": np.stack(pairs)}, None)

    stored = cached(cache_folder("negatives"), _key(table, spec, engine), make)
    first, second = stored.arrays["pairs"]
    return first, second


def _make(
    table: TaskTable, spec: NegativesSpec, *, engine: Engine, listener: Listener
) -> tuple[Rows, Rows]:
    assert table.labels is not None  # since the task learns from them
    same = np.flatnonzero(table.labels == 1)
    both = Pieces.concat(table.columns[:2])
    distinct, numbers = both.distinct()
    firsts, seconds = numbers[: len(table)], numbers[len(table) :]
    candidates, candidate_rows = np.unique(seconds, return_index=True)
    if len(candidates) <= spec.among:
        raise TercetError(
            f"`data.negatives.among` is {spec.among}, but there are only {len(candidates)} "
            "different second texts."
        )
    known = Components(firsts[same].astype(np.uint64), seconds[same].astype(np.uint64))
    groups = known.of(np.arange(len(distinct), dtype=np.uint64))
    with listener.working("vectors of the texts to rank") as progress:
        vectors = engine.vectors(both, distinct, progress=progress)
    units = unit(torch.from_numpy(vectors).to(engine.network.device))
    targets = units[torch.from_numpy(candidates).to(units.device)]
    generator = np.random.default_rng(spec.seed)
    count = min(spec.among + SPARE, len(candidates))
    chosen: list[tuple[int, int]] = []
    with listener.working("near pairs that differ") as progress:
        for start in range(0, len(same), BLOCK):
            rows = same[start : start + BLOCK]
            queries = torch.from_numpy(firsts[rows]).to(units.device)
            near = (units[queries] @ targets.T).topk(count, dim=1).indices.cpu().numpy()
            for row, places in zip(rows.tolist(), near, strict=True):
                differ = places[groups[candidates[places]] != groups[firsts[row]]][: spec.among]
                picked = generator.permutation(differ)[: spec.per_pair]
                chosen += [(row, int(candidate_rows[place])) for place in picked]
            progress(min(start + BLOCK, len(same)), len(same))
    pairs = np.array(chosen, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _key(table: TaskTable, spec: NegativesSpec, engine: Engine) -> str:
    parts = {
        "format": FORMAT,
        "table": table.digest(),
        "encoder": hash_tensors(engine.network.encoder),
        "pooling": engine.network.pooling,
        "max_tokens": engine.max_tokens,
        "negatives": spec.model_dump(mode="json"),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
