"""Sentences changed by rule: typing errors and casing, negation, numbers, names, word order.

A new rule is a function in a file of this folder and an entry here. Where a rule that makes pairs
changes a text in another way than before, raise `tercet.data.changed_pairs.FORMAT`.
"""

from __future__ import annotations

from tercet.data.changes.names import names
from tercet.data.changes.negation import negation
from tercet.data.changes.numbers import numbers
from tercet.data.changes.order import conjuncts, roles, words
from tercet.data.changes.record import Change
from tercet.data.changes.typing_errors import casing, typos
from tercet.specs import ChangeRule

PERTURBATIONS = (
    Change("typos", True, typos),
    Change("casing", True, casing),
    Change("negation", False, negation),
    Change("numbers", False, numbers),
)
"""Changes of a sentence whose predictions are compared before and after."""

PAIR_CHANGES: dict[ChangeRule, Change] = {
    "words": Change("words", False, words),
    "roles": Change("roles", False, roles),
    "names": Change("names", False, names),
    "numbers": Change("numbers", False, numbers),
    "negation": Change("negation", False, negation),
    "conjuncts": Change("conjuncts", True, conjuncts),
}
"""Changes that make a pair of a sentence and itself changed: nearly the same words, and another
meaning unless the rule keeps it."""
