"""Another name in the place of one."""

from __future__ import annotations

import random

from tercet.data.changes.english import names_in

_KINDS_BY_LINE = """
London Paris Rome Berlin Madrid Boston Chicago Toronto Sydney Tokyo Delhi Mumbai Cairo
India China Japan France Germany Brazil Canada Australia Mexico Spain Italy Russia
John Mary Peter Anna David Sarah James Laura Robert Julia Michael Helen
Google Apple Microsoft Amazon Facebook Toyota Samsung Intel Nokia Oracle
January February March April June July August September October November
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
English French German Spanish Chinese Japanese Russian Italian Arabic Hindi
Smith Jones Brown Taylor Wilson Clark Walker Turner Parker Collins Morris Ward
"""
_KINDS = [line.split() for line in _KINDS_BY_LINE.strip().splitlines()]
_OTHERS = _KINDS[-1]


def names(text: str, seed: int) -> str | None:
    """One name, wherever it is in the text, replaced by another, of its kind if that is known."""
    draw = random.Random(f"{seed} {text}")
    spans = names_in(text)
    # The first word has a capital whether or not it is a name.
    found = list(dict.fromkeys(text[start:end] for start, end in spans if start))
    if not found:
        return None
    old = draw.choice(found)
    kind = next((kind for kind in _KINDS if old in kind), _OTHERS)
    fresh = [name for name in kind if name not in text]
    if not fresh:
        return None
    new, parts, done = draw.choice(fresh), [], 0
    for start, end in spans:
        if text[start:end] == old:
            parts += [text[done:start], new]
            done = end
    return "".join([*parts, text[done:]])
