"""What all blocks of a recipe have in common: their base, and the types of their keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

Mode = Literal["single", "bi", "cross"]
Pooling = Literal["cls", "pooler", "mean", "max"]
Long = Literal["truncate", "windows"]
"""How a text longer than the encoder reads is treated: its end is dropped, or it is read in
windows whose vectors and outputs are averaged."""
Feature = Literal["u", "v", "absdiff", "product", "dot", "cosine"]
Activation = Literal["relu", "tanh", "gelu"]
Metric = Literal["accuracy", "f1", "macro-f1", "micro-f1", "exact-match", "pearson", "spearman"]
Column = Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1)]
Delimiter = Literal["tab", "comma", "semicolon", "pipe"]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


def _rises(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] >= bounds[1]:
        raise ValueError(f"{list(bounds)} must go from low to high")
    return bounds


def is_computable(low: float, high: float) -> bool:
    """Whether grades in this range differ in single precision, which training computes in."""
    largest = max(abs(low), abs(high))
    return 1e-30 < largest < 1e30 and high - low > 1e-5 * largest


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str | int) else value


Interval = Annotated[tuple[float, float], AfterValidator(_rises)]
ONE_OR_MORE = BeforeValidator(_as_list)
"""A single value stands for a list of one."""


class Spec(BaseModel):
    """A block of a recipe: its keys are fixed, its values do not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
