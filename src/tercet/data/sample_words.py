"""Words and phrases from sample_words.toml, from which `sample` composes its rows."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import NamedTuple


class Family(NamedTuple):
    """Topics, and questions about them; each inner list words the same question."""

    topics: list[str]
    questions: list[list[str]]


_WORDS = tomllib.loads((resources.files("tercet.data") / "sample_words.toml").read_text("utf-8"))

KINDS: list[str] = _WORDS["kinds"]
TITLES: list[str] = _WORDS["titles"]
ASPECTS: list[str] = _WORDS["aspects"]
VERDICTS: list[list[str]] = _WORDS["verdicts"]
FAMILIES = [Family(**family) for family in _WORDS["families"]]
WEIGHTS: dict[str, float] = _WORDS["weights"]
PLURALS = tuple(map(str, _WORDS["plurals"]))
WHO, ACTIONS, THINGS, PLACES = (
    [tuple(map(str, wordings)) for wordings in _WORDS[name]]
    for name in ("who", "actions", "things", "places")
)
