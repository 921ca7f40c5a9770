"""Masking words, on the host."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.objectives.masked_language_model import NOTHING
from tercet.text.tokens import Tokens

# BERT's: of the chosen words 80 % become the mask, 10 % any word, 10 % stay.
_MASKED, _REPLACED = 0.8, 0.9
# Shapes that differ little are made the same, so that a captured graph serves them all.
_PLACES_PER_SHAPE = 64


@dataclass(frozen=True, slots=True)
class Masked:
    """Tokens with words masked; and int64 [masked], where these are and which ones."""

    tokens: Tokens
    places: Tensor
    words: Tensor


@dataclass(frozen=True, slots=True)
class Masking:
    """Masks random words of a batch; never special tokens."""

    mask_id: int
    special_ids: Set[int]
    vocabulary: int

    def __call__(self, tokens: Tokens, *, share: float) -> Masked:
        """Mask this share of the words. Seeded by torch's generator, which is seeded per step."""
        seed = int(torch.randint(2**62, (), dtype=torch.int64))
        generator = np.random.default_rng(seed)
        places = self._choose(tokens, share, generator)
        words = tokens.ids[places].astype(np.int64)
        ids = tokens.ids.copy()
        fate = generator.random(len(places))
        ids[places[fate < _MASKED]] = self.mask_id
        replaced = places[(fate >= _MASKED) & (fate < _REPLACED)]
        ids[replaced] = generator.integers(self.vocabulary, size=len(replaced))
        spare = -len(places) % _PLACES_PER_SHAPE
        return Masked(
            tokens=replace(tokens, ids=ids),
            places=torch.from_numpy(np.pad(places, (0, spare))),
            words=torch.from_numpy(np.pad(words, (0, spare), constant_values=NOTHING)),
        )

    def _choose(
        self, tokens: Tokens, share: float, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Places of the chosen words, int64 [masked]: a share of every row's, at least one."""
        plain = ~np.isin(tokens.ids, list(self.special_ids))
        rows = np.repeat(np.arange(len(tokens)), tokens.lengths)[plain]
        places = np.flatnonzero(plain)
        # Words of a row in random order; the first of each row are chosen.
        order = np.lexsort((generator.random(len(places)), rows))
        held = np.bincount(rows, minlength=len(tokens))
        rank = np.arange(len(places)) - np.repeat(np.cumsum(held) - held, held)
        wanted = np.maximum(1, np.round(share * held)).astype(np.int64)
        chosen: NDArray[np.int64] = np.sort(places[order][rank < wanted[rows]])
        return chosen
