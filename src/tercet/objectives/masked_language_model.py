"""Masked language modelling (Devlin et al., 2019): say which words were masked."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

NOTHING = -100
"""The word at a place that only fills a fixed shape."""


class MaskedLanguageModel:
    """Cross-entropy over the vocabulary: the mean over a sentence's masked words, over sentences.

    A sentence counts the same however many of its words are masked, so that ranks, each of which
    knows its own sentences only, add up.
    """

    def __init__(self, *, share: float = 0.15) -> None:
        self.share = share

    def loss(
        self, logits: Tensor, words: Tensor, *, rows: Tensor, count: int, total: int
    ) -> Tensor:
        """Sum of the sentences' losses over `total`, in fp32.

        logits: [masked, vocabulary]
        words: int64 [masked], the words that were there, or NOTHING
        rows: int64 [masked], the sentence of each
        count: sentences that rows may name
        total: sentences of the batch over all ranks
        """
        losses = functional.cross_entropy(
            logits.float(), words, reduction="none", ignore_index=NOTHING
        )
        real = (words != NOTHING).float()
        masked = torch.zeros(count, device=logits.device).index_add(0, rows, real)
        return (losses / masked[rows].clamp(min=1.0)).sum() / total
