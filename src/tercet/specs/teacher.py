"""A teacher: a trained model whose outputs a task learns from."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Self

from pydantic import AliasChoices, Field

from tercet.specs.base import ONE_OR_MORE, Mode, Positive, Spec

WHOLE = 1.0
"""The weight of a teacher that replaces labels."""


class TeacherSpec(Spec):
    folder: Annotated[list[str], Field(min_length=1), ONE_OR_MORE]
    """A model folder, a run folder, or a name of `tercet weights`; the outputs of several are
    averaged. Example: `"runs/teacher"`."""
    recipe: str | None = None
    """The recipe that trains it; `tercet reproduce --from-scratch` runs it first. Example:
    `"tercet/base"`."""
    task: str | None = None
    """Which of its tasks teaches; default: the one whose heads this task trains. Example:
    `"paraphrase"`."""
    modes: Annotated[list[Mode], Field(min_length=1)] | None = Field(
        None,
        validation_alias=AliasChoices("modes", "gears"),  # the name in version 0.1
    )
    """Which of its modes teach, averaged; default: the most accurate. Example: `["cross"]`."""
    temperature: Positive = 1.0
    """Divides the outputs of classifiers, the teacher's and the student's. Example: `2.0`."""
    weight: Annotated[float, Field(gt=0.0, le=WHOLE)] = 0.5
    """Share of the teacher in the loss; labels have the rest. At 1 no labels are read. Example:
    `0.7`."""

    @property
    def names(self) -> list[str]:
        """Its names outside this machine, without paths."""
        if self.recipe is not None:
            return [self.recipe]
        return [PurePath(folder).name if _is_place(folder) else folder for folder in self.folder]

    def without_places(self) -> Self:
        return self.model_copy(update={"folder": self.names})


def _is_place(folder: str) -> bool:
    return PurePath(folder).is_absolute() or folder.startswith((".", "~"))
