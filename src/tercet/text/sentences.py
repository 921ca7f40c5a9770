"""Where sentences end: in a text, and among its word pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

# A mark before a space, a mark of Chinese or Japanese, the end of a line, an HTML line break. No
# part repeats without bound before a condition: the time must not grow with the square of a text.
_END = re.compile(
    r"""[.!?\u2026]["'\u201d\u2019\u00bb)\]]{0,3}(?=\s)|[\u3002\uff01\uff1f]"""
    r"""[\u300d\u300f\u201d\u2019\uff09]{0,3}|\S(?=[^\S\n]*\n)|<\s*br\s*/?>""",
    re.IGNORECASE,
)

# Spaces that follow a word stay together: some tokenizers have pieces for several.
_WORD_END = re.compile(r"\S(?=[ \n])")


def sentence_ends(text: str, encoding: Encoding) -> NDArray[np.bool_]:
    """Whether a sentence of the text ends after each word piece, bool [pieces].

    An end after an abbreviation is harmless: it is only where a window may be cut.
    """
    ends = np.zeros(len(encoding), np.bool_)
    places = np.array([found.end() for found in _END.finditer(text)], np.int64)
    if not len(ends) or not len(places):
        return ends
    starts, stops = np.array(encoding.offsets, np.int64).reshape(-1, 2).T
    # The last piece that begins before the place; one that also goes on after it is not cut.
    last = np.searchsorted(starts, places) - 1
    whole = (last >= 0) & (stops[last] <= places)
    ends[last[whole]] = True
    return ends


def slices(text: str, *, size: int, most: int) -> Iterator[str]:
    """A text in parts of at least `size` characters but the last, cut after a word, so that the
    parts have the word pieces of the whole text; and of at most `most`, even if that cuts a word.
    """
    start = 0
    while len(text) - start > size:
        word = _WORD_END.search(text, start + size - 1, start + most)
        end = start + most if word is None else word.end()
        yield text[start:end]
        start = end
    if start < len(text) or not text:
        yield text[start:]
