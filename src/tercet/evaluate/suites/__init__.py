"""The suites, by name. A new suite is a file of this folder and a line here."""

from __future__ import annotations

from tercet.evaluate.suite import Suite
from tercet.evaluate.suites.geometry import Geometry
from tercet.evaluate.suites.robustness import Robustness
from tercet.evaluate.suites.sts import Sts
from tercet.evaluate.suites.tasks import Tasks
from tercet.evaluate.suites.transfer import Transfer
from tercet.specs.registry import Registry

SUITES: Registry[Suite] = Registry("suite")
SUITES.add(Tasks.name, Tasks())
SUITES.add(Sts.name, Sts())
SUITES.add(Transfer.name, Transfer())
SUITES.add(Robustness.name, Robustness())
SUITES.add(Geometry.name, Geometry())
