"""How a classifier's outputs are scaled before they become probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from tercet.specs.base import Mode, Spec
from tercet.specs.predictions import Floats


class Scaling(Spec):
    """Outputs are divided by `temperature`, then `shift` is added (two classes only)."""

    temperature: Annotated[float, Field(ge=1e-4, le=1e4)] = 1.0
    """Divides outputs; above 1, predictions are less certain. Example: `1.4`."""
    shift: Annotated[float, Field(ge=-1e4, le=1e4)] = 0.0
    """Added to outputs, after the division. Example: `-0.2`."""

    def apply(self, outputs: Floats) -> Floats:
        """outputs [n, outputs] -> the same, scaled"""
        scaled: Floats = outputs / np.float32(self.temperature) + np.float32(self.shift)
        return scaled


Scalings = Mapping[str, Mapping[Mode, Scaling]]
"""By task and mode."""
Thresholds = Mapping[str, Mapping[Mode, Sequence[float]]]
"""By task and mode: of each label, the least probability at which it is predicted."""
