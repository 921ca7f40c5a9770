"""Evaluation rows that a model must not have seen."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tercet.specs.base import Spec

PairSet = Literal["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "MRPC", "PAWS"]


class UnseenSpec(Spec):
    """Training leaves out rows that are evaluation rows, and known duplicates that imply pairs of
    them: if a = b and b = c are known, so is a = c."""

    dev: bool = True
    """The dev rows of all tasks. Example: `false`."""
    sets: list[PairSet] = Field(default_factory=list)
    """Pairs of suites; of PAWS the dev rows of layout `paws-split`. Example: `["STS-B",
    "PAWS"]`."""
    keep: list[str] = Field(default_factory=list)
    """Tasks that keep rows of `sets`, where leaving them out would leave nothing to train on; the
    suites leave these pairs out instead. Example: `["similarity"]`."""
