"""How a classifier's outputs are scaled before they become probabilities."""

from __future__ import annotations

from collections.abc import Mapping

from tercet.specs.base import Mode, Positive, Spec


class Scaling(Spec):
    """Outputs are divided by `temperature`; to the one of two classes `shift` is added then."""

    temperature: Positive = 1.0
    shift: float = 0.0


Scalings = Mapping[str, Mapping[Mode, Scaling]]
"""Of each task, of each mode."""
