"""Joined pairs with their two sentences swapped, computed on the device of the tokens."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tercet.nn.device_tokens import DeviceTokens


def swapped(tokens: DeviceTokens, *, separators: int) -> DeviceTokens:
    """Joined pairs (a, b) -> (b, a): every row keeps its length, so the plan stays valid.

    separators: how many tokens separate the two sentences; the first equals the row's last token
    """
    starts = tokens.offsets[:-1].long()
    lengths = tokens.offsets.diff().long()
    first = _first_end(tokens, starts + lengths - 1) - 1
    second = lengths - 2 - separators - first
    place, last = tokens.positions, lengths[tokens.rows] - 1
    a, b = first[tokens.rows], second[tokens.rows]
    source = torch.where(place <= b, place + a + separators, place + a - b)
    source = torch.where(place > b + separators, place - b - separators, source)
    source = torch.where((place == 0) | (place == last), place, source)
    # Rows that only fill a fixed shape are not pairs: indices for them must stay in range.
    source = starts[tokens.rows] + source.clamp(min=0).minimum(last)
    second_type = tokens.types.index_select(0, starts + lengths - 1)[tokens.rows]
    return replace(
        tokens,
        ids=tokens.ids.index_select(0, source),
        types=torch.where(place > b + separators, second_type, torch.zeros_like(second_type)),
    )


def _first_end(tokens: DeviceTokens, ends: Tensor) -> Tensor:
    """The first position in each row of the token that ends it, int64 [count]."""
    is_end = tokens.ids == tokens.ids.index_select(0, ends)[tokens.rows]
    far = torch.full_like(tokens.positions, tokens.longest)
    places = torch.where(is_end, tokens.positions, far)
    nowhere = torch.full_like(ends, tokens.longest)
    return nowhere.scatter_reduce(0, tokens.rows, places, "amin")
