"""The suites, by name. A new suite is a file of this folder and its class in the list below."""

from __future__ import annotations

from tercet.evaluation.suite import SUITES
from tercet.evaluation.suites.depths import Depths
from tercet.evaluation.suites.geometry import Geometry
from tercet.evaluation.suites.robustness import Robustness
from tercet.evaluation.suites.sts import Sts
from tercet.evaluation.suites.tasks import Tasks
from tercet.evaluation.suites.transfer import Transfer

__all__ = ["SUITES"]

for _suite in (Tasks, Sts, Transfer, Robustness, Geometry, Depths):
    SUITES.add(_suite.name, _suite)
