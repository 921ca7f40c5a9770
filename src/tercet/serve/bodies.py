"""Bodies of requests as typed objects, within bounds on time and memory whatever they hold."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from tercet.serve.fields import SHAPE
from tercet.serve.refusal import RefusalError, shown, too_many

SPARE = 64
"""Lists and objects of a body beside those of its inputs, and entries of its objects."""
B = TypeVar("B", bound=BaseModel)


def parse(body: bytes, kind: type[B], *, inputs: int) -> B:
    """The body as a `kind`; refused at its first error.

    inputs: texts or pairs that a request may have; more are refused before they are checked
    """
    _check_structure(body, most=inputs + SPARE)
    try:
        content = from_json(body, cache_strings=False)
    except ValueError as error:
        raise RefusalError(400, f"The body is not valid JSON: {error}.") from None
    if isinstance(content, dict):
        _check_counts({name: content.get(name) for name in kind.model_fields}, inputs)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise _refusal(error) from None


def _check_structure(body: bytes, *, most: int) -> None:
    """Refuse a body of many small lists or objects: parsed, they take 20 times its size."""
    if body.count(b"[") + body.count(b"{") <= most and body.count(b":") <= most:
        return
    text = np.frombuffer(body, np.uint8)
    outside = ~_in_strings(text)
    opened = int(np.count_nonzero(((text == ord("[")) | (text == ord("{"))) & outside))
    if opened > most or int(np.count_nonzero((text == ord(":")) & outside)) > most:
        raise RefusalError(
            413, f"The body has more than {most} lists or fields; send fewer inputs per request."
        )


def _in_strings(text: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each byte is in a string of the JSON, bool [bytes]."""
    quotes = text == ord('"')
    slashes = np.concatenate([[False], text == ord("\\"), [False]])
    starts, ends = np.flatnonzero(slashes[1:] != slashes[:-1]).reshape(-1, 2).T
    escaped = ends[(ends - starts) % 2 == 1]  # what follows an odd number of backslashes
    quotes[escaped[escaped < len(text)]] = False
    return np.asarray(np.logical_xor.accumulate(quotes))


def _check_counts(fields: dict[str, Any], inputs: int, place: str = "") -> None:
    """Refuse lists of more inputs than a request may have; token ids are cut later."""
    for name, value in fields.items():
        if isinstance(value, dict):
            _check_counts(value, inputs, f"{place}{name}.")
        elif isinstance(value, list) and len(value) > inputs and not _is_number(value[0]):
            raise too_many(f"{place}{name}", len(value), inputs)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refusal(error: ValidationError) -> RefusalError:
    first = error.errors(include_url=False, include_context=False)[0]
    places = [str(place) for place in first["loc"]]
    field = ".".join(place for place in places if not place.startswith(SHAPE))
    if first["type"] == "missing":
        return RefusalError(422, f"`{field}` is missing.", field=field)
    value = shown(first["input"])
    what = f"`{field}` is {value}" if field else f"The body is {value}"
    return RefusalError(
        422, f"{what}: {first['msg'][0].lower()}{first['msg'][1:]}.", field=field or None
    )
