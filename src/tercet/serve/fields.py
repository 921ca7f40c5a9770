"""The fields of requests' bodies: texts, pairs or token ids, with exact types."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

SHAPE = "shape:"
"""Prefix of the names of a field's alternatives, which are not part of an error's location."""


class Body(BaseModel):
    """The body of a request: exact types, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")


class ForeignBody(BaseModel):
    """The body of another server's interface; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


def _whole(value: object) -> object:
    """JSON has one number type: 3.0 is 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_tuple(value: object) -> object:
    """JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


Whole = BeforeValidator(_whole)
# A list of wrong entries is refused at the first: a report on all of them takes 800 times its size.
Texts = Annotated[list[str], Field(min_length=1, fail_fast=True)]
Pair = tuple[str, str]
Pairs = Annotated[
    list[Annotated[Pair, BeforeValidator(_as_tuple)]], Field(min_length=1, fail_fast=True)
]
Ids = Annotated[list[Annotated[int, Whole]], Field(min_length=1, fail_fast=True)]
IdRows = Annotated[list[Ids], Field(min_length=1, fail_fast=True)]


def _shape(value: object) -> str:
    """The intended shape of a field, by its first entry."""
    if not isinstance(value, list):
        return "shape:text" if isinstance(value, str) else "shape:texts"
    first = value[0] if value else None
    if isinstance(first, int | float) and not isinstance(first, bool):
        return "shape:ids"
    return "shape:lists" if isinstance(first, list) else "shape:texts"


TextOrTexts = Annotated[
    Annotated[str, Tag("shape:text")] | Annotated[Texts, Tag("shape:texts")],
    Discriminator(lambda value: "shape:text" if isinstance(value, str) else "shape:texts"),
]
"""One text, or several."""
TextsOrPairs = Annotated[
    Annotated[Texts, Tag("shape:texts")] | Annotated[Pairs, Tag("shape:lists")],
    Discriminator(lambda value: "shape:lists" if _shape(value) == "shape:lists" else "shape:texts"),
]
TextsOrIds = Annotated[
    Annotated[str, Tag("shape:text")]
    | Annotated[Texts, Tag("shape:texts")]
    | Annotated[Ids, Tag("shape:ids")]
    | Annotated[IdRows, Tag("shape:lists")],
    Discriminator(_shape),
]
"""One text or several; or the token ids of one or several."""
Truncate = Annotated[
    bool | None,
    Field(
        description="true: truncate inputs that are too long; false: refuse them; default: as the "
        "server is set."
    ),
]
