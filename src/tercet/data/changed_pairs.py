"""Pairs of a sentence and itself changed by rule: nearly the same words, often another meaning."""

from __future__ import annotations

from itertools import chain, zip_longest

import numpy as np
from numpy.typing import NDArray

from tercet.data.changes import PAIR_CHANGES
from tercet.errors import TercetError
from tercet.specs import ChangesSpec

Rows = NDArray[np.int64]


class ChangedPairs:
    """Makes pairs of sentences one by one, and chooses among all in the end."""

    def __init__(self, spec: ChangesSpec) -> None:
        self._spec = spec
        self._known: set[str] = set()
        self._rules: list[int] = []
        """The rule that made each pair so far, by its place in the spec."""

    def of(self, text: str) -> list[tuple[str, str]]:
        """A pair for each rule that changes this sentence; none if it has been here before."""
        if text in self._known:
            return []
        self._known.add(text)
        pairs = []
        for place, name in enumerate(self._spec.rules):
            changed = PAIR_CHANGES[name].change(text, self._spec.seed)
            if changed is not None:
                pairs.append((text, changed))
                self._rules.append(place)
        return pairs

    def choose(self) -> Rows:
        """Pairs to keep, ascending: at random, and as many of each rule as there can be."""
        rules = np.array(self._rules, np.int64)
        if not len(rules):
            raise TercetError("`data.changes`: no rule changes any of the sentences.")
        draw = np.random.default_rng(self._spec.seed)
        dealt = [
            draw.permutation(np.flatnonzero(rules == place)) for place in sorted(set(self._rules))
        ]
        turns = chain.from_iterable(zip_longest(*(rows.tolist() for rows in dealt)))
        chosen = [row for row in turns if row is not None][: self._spec.pairs]
        return np.sort(np.array(chosen, np.int64))

    def describe(self) -> str:
        """How many pairs of each rule there were to choose from."""
        counts = np.bincount(np.array(self._rules, np.int64), minlength=len(self._spec.rules))
        found = zip(self._spec.rules, counts.tolist(), strict=True)
        return f"Changed by rule: {', '.join(f'{name} {count:,}' for name, count in found)}."
