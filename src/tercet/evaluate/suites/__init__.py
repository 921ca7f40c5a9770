"""The suites, by name. A new suite is a file of this folder and its class in the list below."""

from __future__ import annotations

from tercet.evaluate.suite import SUITES
from tercet.evaluate.suites.geometry import Geometry
from tercet.evaluate.suites.robustness import Robustness
from tercet.evaluate.suites.sts import Sts
from tercet.evaluate.suites.tasks import Tasks
from tercet.evaluate.suites.transfer import Transfer

__all__ = ["SUITES"]

for _suite in (Tasks, Sts, Transfer, Robustness, Geometry):
    SUITES.add(_suite.name, _suite)
