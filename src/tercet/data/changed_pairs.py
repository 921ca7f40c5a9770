"""Pairs of a sentence and itself changed by rule: nearly the same words, often another meaning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.cache import Stored, cached, hash_texts
from tercet.data.changes import PAIR_CHANGES
from tercet.errors import TercetError
from tercet.files import cache_folder
from tercet.specs import ChangesSpec

FORMAT = 1  # of the cache: raise it when a rule changes the same sentence in another way
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChangedPairs:
    """m pairs.

    rows: int64 [m], ascending, which sentence each is made of
    changed: that sentence after its change
    found: how many pairs of each rule there were to choose from
    """

    rows: Rows
    changed: list[str]
    found: Mapping[str, int]

    @property
    def remark(self) -> str:
        counts = ", ".join(f"{name} {count:,}" for name, count in self.found.items())
        return f"Changed by rule: {counts}."


def make_changed_pairs(texts: Sequence[str], spec: ChangesSpec) -> ChangedPairs:
    """Pairs of distinct sentences: at random, and as many of each rule as there can be.

    They are cached on disk, by content: a million changes take a minute.
    """
    stored = cached(cache_folder("changes"), _key(texts, spec), lambda: _make(texts, spec))
    content = stored.arrays["changed"].tobytes()
    bounds = pairwise([0, *stored.arrays["ends"].tolist()])
    changed = [content[start:end].decode() for start, end in bounds]
    return ChangedPairs(stored.arrays["rows"], changed, stored.notes)


def _make(texts: Sequence[str], spec: ChangesSpec) -> Stored:
    known: set[str] = set()
    made: list[tuple[int, int, str]] = []
    for row, text in enumerate(texts):
        if text in known:
            continue
        known.add(text)
        for place, rule in enumerate(spec.rules):
            changed = PAIR_CHANGES[rule].change(text, spec.seed)
            if changed is not None:
                made.append((row, place, changed))
    if not made:
        raise TercetError("`data.changes`: no rule changes any of the sentences.")
    rules = np.array([place for _, place, _ in made], np.int64)
    chosen = [made[index] for index in _choose(rules, spec)]
    encoded = [changed.encode() for _, _, changed in chosen]
    counts = np.bincount(rules, minlength=len(spec.rules)).tolist()
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.array([row for row, _, _ in chosen], np.int64),
        "changed": np.frombuffer(b"".join(encoded), np.uint8),
        "ends": np.cumsum([len(each) for each in encoded], dtype=np.int64),
    }
    return Stored(arrays, dict(zip(spec.rules, counts, strict=True)))


def _choose(rules: Rows, spec: ChangesSpec) -> list[int]:
    """Places of the pairs to keep, ascending, by the rule that made each."""
    draw = np.random.default_rng(spec.seed)
    dealt = [draw.permutation(np.flatnonzero(rules == place)) for place in np.unique(rules)]
    turns = chain.from_iterable(zip_longest(*(rows.tolist() for rows in dealt)))
    return sorted([row for row in turns if row is not None][: spec.pairs])


def _key(texts: Sequence[str], spec: ChangesSpec) -> str:
    parts = {
        "format": FORMAT,
        "texts": hash_texts([texts]),
        "changes": spec.model_dump(mode="json"),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
