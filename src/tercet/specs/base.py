"""What all blocks of a recipe have in common: their base, and the types of their keys."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Mode = Literal["single", "bi", "cross"]
Pooling = Literal["cls", "pooler", "mean", "max"]
Feature = Literal["u", "v", "absdiff", "product", "dot", "cosine"]
Activation = Literal["relu", "tanh", "gelu"]
Metric = Literal["accuracy", "f1", "macro-f1", "pearson", "spearman"]
Column = Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


def _rises(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] >= bounds[1]:
        raise ValueError(f"{list(bounds)} must go from low to high")
    return bounds


Interval = Annotated[tuple[float, float], AfterValidator(_rises)]


class Spec(BaseModel):
    """A block of a recipe: its keys are fixed, its values do not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
