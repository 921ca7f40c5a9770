"""Ids of many texts by few calls: texts are encoded joined by a special token, and separated again.

`tokenizers` releases Python's lock only while it encodes. An object per text, its list of ids and
the end of both take several microseconds under the lock, and so bound what many cores encode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Encoding
from tokenizers import Tokenizer as Backend

from tercet import cores

FlatIds = tuple[NDArray[np.int32], NDArray[np.int64]]
"""The ids of all texts, one after the other, int32 [total], and how many each has, int64 [n]."""
Encode = Callable[[list[str]], list[Encoding]]
GROUP = 64
"""Texts that are joined: more save nothing."""
SHARES = 4
"""Groups per core, at least, so that all cores have work until the end."""
PROBES = ("a b", "B", "", " c", "d ", "e\n", "##f", ".", "\u00e9\u4e2d", "\u0301g", "\U0002a6d6")
"""Texts that are encoded alone and joined, to see whether a tokenizer treats them alike. The last
is unknown to most: the token of unknown words separates nothing."""


@dataclass(frozen=True, slots=True)
class Separator:
    """A special token that texts do not contain, unless somebody writes it."""

    token: str
    id: int

    def ids_of(self, texts: Sequence[str], encode: Encode, *, size: int) -> FlatIds:
        """The ids of texts, `size` of them joined; where one contains the separator, they are
        encoded one by one."""
        groups = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        joined = encode([self.token.join([*group, ""]) for group in groups])
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for group, encoding in zip(groups, joined, strict=True):
            found = self._separated(encoding, len(group)) or flat_ids(encode(group))
            ids.append(found[0])
            lengths.append(found[1])
        return np.concatenate(ids), np.concatenate(lengths)

    def _separated(self, encoding: Encoding, count: int) -> FlatIds | None:
        """The ids of `count` texts that were encoded joined; None if they cannot be separated."""
        ids = np.array(encoding.ids, np.int32)
        is_end = ids == self.id
        ends = np.flatnonzero(is_end)
        return (ids[~is_end], np.diff(ends, prepend=-1) - 1) if len(ends) == count else None


def group_size(texts: int) -> int:
    """How many of the texts to join."""
    return max(min(GROUP, texts // (SHARES * cores.threads())), 1)


def separator_of(backend: Backend) -> Separator | None:
    """A separator that a tokenizer treats like the end of a text; None if it has none.

    A special token that is found before texts are normalised divides them: what follows is done for
    each part by itself. Some tokenizers still treat the first part differently.
    """
    added = backend.get_added_tokens_decoder()
    for id_, token in added.items():
        if not _divides(token):
            continue
        others = (other.content for other in added.values() if other is not token)
        if any(token.content in other for other in others):
            continue
        separator = Separator(token.content, id_)
        if _is_alike(backend, separator):
            return separator
    return None


def flat_ids(encodings: Sequence[Encoding]) -> FlatIds:
    """The ids of texts that were encoded one by one."""
    ids = [np.zeros(0, np.int32), *(np.array(each.ids, np.int32) for each in encodings)]
    return np.concatenate(ids), np.array([len(each) for each in encodings], np.int64)


def _divides(token: AddedToken) -> bool:
    strips = token.lstrip or token.rstrip or token.single_word or token.normalized
    is_word = token.content[:1].isalnum() or token.content[-1:].isalnum()
    return bool(token.special and token.content and not strips and not is_word)


def _is_alike(backend: Backend, separator: Separator) -> bool:
    def encode(texts: list[str]) -> list[Encoding]:
        return backend.encode_batch_fast(texts, add_special_tokens=False)

    (joined,) = encode([separator.token.join([*PROBES, ""])])
    separated = separator._separated(joined, len(PROBES))
    if separated is None:
        return False
    ids, lengths = flat_ids(encode(list(PROBES)))
    return np.array_equal(separated[0], ids) and np.array_equal(separated[1], lengths)
