"""Texts and pairs that are longer than an encoder reads at once, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from tercet.text.template import Template, special_count
from tercet.text.tokens import Pieces


@dataclass(frozen=True, slots=True)
class LongInputs:
    """How many inputs were too long.

    inputs: texts or pairs, of any length
    long: those that were too long
    tokens: of the texts or joined pairs that were too long
    lost: those of their tokens that truncation dropped; 0 where they were read in windows
    """

    inputs: int = 0
    long: int = 0
    tokens: int = 0
    lost: int = 0

    @classmethod
    def of(
        cls, columns: Sequence[Pieces], *, joint: bool, template: Template, max_tokens: int
    ) -> LongInputs:
        """Of texts (one column) or pairs (two), which may be encoded jointly."""
        lengths = np.stack([column.lengths for column in columns])
        if joint:
            lengths = lengths.sum(axis=0, keepdims=True)
        lengths += special_count(template.pair_slots if joint else template.single_slots)
        over = lengths > max_tokens
        if not over.any():
            return cls(inputs=lengths.shape[1])
        whole = any(column.ends is not None for column in columns)
        return cls(
            inputs=lengths.shape[1],
            long=int(over.any(axis=0).sum()),
            tokens=int(lengths[over].sum()),
            lost=0 if whole else int((lengths[over] - max_tokens).sum()),
        )

    def __add__(self, other: LongInputs) -> LongInputs:
        return LongInputs(*map(int.__add__, astuple(self), astuple(other)))

    def __sub__(self, other: LongInputs) -> LongInputs:
        return LongInputs(*map(int.__sub__, astuple(self), astuple(other)))

    def sentence(self, kind: str, *, max_tokens: int) -> str | None:
        """What to tell users; None if no input was too long.

        kind: `texts` or `pairs`
        """
        if not self.long:
            return None
        one = kind.removesuffix("s")
        counted = f"{self.long:,} of {self.inputs:,} {kind if self.inputs != 1 else one}"
        verb = "was" if self.long == 1 else "were"
        how = "read in windows."
        if self.lost:
            # Neither none nor all of them is ever true.
            lost = f"{min(max(self.lost / self.tokens, 0.01), 0.99):.0%}".replace("%", " %")
            whose = "its" if self.long == 1 else "their"
            how = f"truncated ({lost} of {whose} tokens dropped)."
        return f"{counted} {verb} longer than {max_tokens:,} tokens and {verb} {how}"
