"""The head of masked language modelling (Devlin et al., 2019), its decoder tied to the words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class MaskedWordsHead(nn.Module):
    """A linear layer, GELU and a norm; then the inner product with every word's embedding."""

    def __init__(self, *, width: int, words_width: int, vocabulary: int, norm_eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, words_width)
        self.norm = nn.LayerNorm(words_width, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, hidden: Tensor, words: Tensor) -> Tensor:
        """hidden [n, width], words [vocabulary, words_width] -> logits [n, vocabulary]"""
        activated = self.norm(functional.gelu(self.dense(hidden)))
        return functional.linear(activated, words, self.bias)
