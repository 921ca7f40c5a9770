"""Masking words, on the host: which ones, and what stands in their place."""

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
_PLACES_A_SHAPE = 64


@dataclass(frozen=True, slots=True)
class Masking:
    """Chooses words of a batch and hides them; special tokens are never chosen."""

    mask_id: int
    special_ids: Set[int]
    vocabulary: int

    def __call__(self, tokens: Tokens, *, share: float) -> tuple[Tokens, Tensor]:
        """The tokens with words hidden; and int64 [2, masked], their places and the words.

        What is random comes from torch's generator, which training seeds for every step.
        """
        seed = int(torch.randint(2**62, (), dtype=torch.int64))
        generator = np.random.default_rng(seed)
        places = self._choose(tokens, share, generator)
        words = tokens.ids[places].astype(np.int64)
        ids = tokens.ids.copy()
        fate = generator.random(len(places))
        ids[places[fate < _MASKED]] = self.mask_id
        replaced = places[(fate >= _MASKED) & (fate < _REPLACED)]
        ids[replaced] = generator.integers(self.vocabulary, size=len(replaced))
        return replace(tokens, ids=ids), _to_fixed_shape(places, words)

    def _choose(
        self, tokens: Tokens, share: float, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Places of the chosen words, int64 [masked]: a share of every row's, but at least one."""
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


def _to_fixed_shape(places: NDArray[np.int64], words: NDArray[np.int64]) -> Tensor:
    spare = -len(places) % _PLACES_A_SHAPE
    filled = np.stack(
        [np.pad(places, (0, spare)), np.pad(words, (0, spare), constant_values=NOTHING)]
    )
    return torch.from_numpy(filled)
