"""How well the words of texts predict their labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

ROWS, WORDS = 1000, 100
"""At most so many rows, and words of each, are read."""
_WORD = re.compile(r"\w+")


def predictable_share(texts: Sequence[str], labels: Sequence[str]) -> float:
    """The share of the majority class's mistakes that a naive Bayes classifier avoids: 1 if it is
    never wrong, 0 or less if it is of no use. Each half of the rows is predicted from the other."""
    texts, labels = texts[:ROWS], labels[:ROWS]
    if len(labels) < 2 or not any(map(_words, texts)):
        return 0.0
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    counts = CountVectorizer(analyzer=_words, binary=True).fit_transform(texts)
    right = 0
    for half in (0, 1):
        model = MultinomialNB(alpha=0.5).fit(counts[half::2], labels[half::2])
        predicted = model.predict(counts[1 - half :: 2])
        right += sum(map(str.__eq__, predicted, labels[1 - half :: 2]))
    most = max(Counter(labels).values())
    return (right - most) / max(1, len(labels) - most)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())[:WORDS]
