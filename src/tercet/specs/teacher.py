"""A teacher: a trained model whose outputs a task learns from."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from tercet.specs.base import Mode, Positive, Spec

WHOLE = 1.0
"""The weight of a teacher that replaces labels."""


class TeacherSpec(Spec):
    folder: Annotated[list[str], Field(min_length=1)]
    """A model folder, a run folder, or a name of `tercet weights`; the outputs of several are
    averaged."""
    recipe: str | None = None
    """The recipe that trains it; `tercet reproduce --from-scratch` runs it first."""
    task: str | None = None
    """Which of its tasks teaches; default: the one whose heads this task trains."""
    modes: Annotated[list[Mode], Field(min_length=1)] | None = None
    """Which of its modes teach, averaged; default: the most accurate."""
    temperature: Positive = 1.0
    """Divides the outputs of classifiers, the teacher's and the student's."""
    weight: Annotated[float, Field(gt=0.0, le=WHOLE)] = 0.5
    """Share of the teacher in the loss; labels have the rest. At 1 no labels are read."""

    @property
    def names(self) -> list[str]:
        """Its names outside this machine, without paths."""
        if self.recipe is not None:
            return [self.recipe]
        return [PurePath(folder).name if _is_place(folder) else folder for folder in self.folder]

    def without_places(self) -> Self:
        return self.model_copy(update={"folder": self.names})

    @model_validator(mode="before")
    @classmethod
    def _older_name(cls, value: Any) -> Any:
        """Version 0.1 had another name for the key `modes`."""
        if isinstance(value, dict) and "gears" in value and "modes" not in value:
            return {
                **{key: item for key, item in value.items() if key != "gears"},
                "modes": value["gears"],
            }
        return value

    @field_validator("folder", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


def _is_place(folder: str) -> bool:
    return PurePath(folder).is_absolute() or folder.startswith((".", "~"))
