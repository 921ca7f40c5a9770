"""`not` put in or taken out."""

from __future__ import annotations

import re

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|am|can|could|will|would|should|must|might|may|does|do|did|has|have|had)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(can)not\b|\b(wo)(?: ?n't)\b|\b(ca)(?: ?n't)\b| ?n't\b| not\b", re.IGNORECASE
)


def negation(text: str, seed: int) -> str | None:
    """The first `not` removed, or one added after the first auxiliary verb."""
    if match := _NEGATED.search(text):
        can, would, could = match.groups()
        verb = can or (would and would[0] + "ill") or (could and could + "n") or ""
        return text[: match.start()] + verb + text[match.end() :]
    if match := _AUXILIARY.search(text):
        no = " NOT" if text.isupper() else " not"
        return text[: match.end()] + no + text[match.end() :]
    return None
