"""Reading the bodies of requests; writing answers as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from fastapi import Request, Response
from pydantic import BaseModel
from pydantic_core import to_json

from tercet.model import Floats
from tercet.serve.bodies import parse
from tercet.serve.refusal import RefusalError
from tercet.serve.service import InputOptions, RequestCounts, Service

JSON = b"application/json"
FEW = 64
"""Number of vectors that are written as JSON within a few milliseconds."""
FEW_BYTES = 16_384
"""Bytes of a body that are parsed faster than a thread starts."""
B = TypeVar("B", bound=BaseModel)


class Failed(BaseModel):
    """An answer other than 200."""

    error: str
    error_type: str
    field: str | None


def service_of(request: Request) -> Service:
    """The service that answers a request: one from its beginning to its end, even if another takes
    over meanwhile."""
    service: Service = request.scope.setdefault("service", request.app.state.service)
    return service


async def read(request: Request, kind: type[B]) -> B:
    """The body of a request as a `kind`."""
    content_type = _header(request, b"content-type") or b""
    if content_type.partition(b";")[0].strip().lower() != JSON:
        raise RefusalError(415, "The header Content-Type must be application/json.")
    body = await _bytes(request, limit=service_of(request).limits.body)
    service = service_of(request)
    parsed = partial(parse, body, kind, inputs=service.limits.inputs)
    if len(body) <= FEW_BYTES:
        return parsed()
    return await asyncio.get_running_loop().run_in_executor(service.reader, parsed)


def answer(content: Any) -> Response:
    """An answer as JSON."""
    return Response(to_answer(content), media_type="application/json")


def to_answer(content: Any) -> bytes:
    """The JSON of an answer; columns of an index may hold any type."""
    return to_json(content, inf_nan_mode="null", bytes_mode="base64", serialize_unknown=True)


def input_options(request: Request, field: str, truncate: bool | None) -> InputOptions:
    """How the inputs in a field are treated; their counts go to the request's log line."""
    long = service_of(request).limits.long_inputs
    if truncate is not None:
        long = "truncate" if truncate else "refuse"
    counts: RequestCounts = request.scope["counts"]
    client: str = request.scope["caller"]
    return InputOptions(counts=counts, field=field, long=long, client=client)


def numbers(vector: Floats) -> bytes:
    """A vector [width] as a JSON list, with eight decimals, more than float32 holds here."""
    return to_json(np.round(vector.astype(np.float64), 8).tolist())


async def write(vectors: Floats, build: Callable[[], bytes]) -> Response:
    """An answer that is mostly vectors; a long one is written in a thread."""
    body = build() if len(vectors) <= FEW else await asyncio.to_thread(build)
    return Response(body, media_type="application/json")


def responses(
    kind: Any, failed: type[BaseModel] = Failed, *, reads: bool = True
) -> dict[int | str, dict[str, Any]]:
    """The answers of an endpoint in the OpenAPI document; `reads`: whether it reads a body."""
    statuses = {
        401: "A key is missing.",
        421: "The header Host names another server.",
        500: "The server failed.",
        503: "Shutting down.",
    }
    if reads:
        statuses |= {
            400: "The body is not valid JSON.",
            404: "The server has no such model, task or mode.",
            408: "The body arrived too slowly.",
            413: "Too many bytes, inputs or tokens.",
            415: "The body is not declared as JSON.",
            422: "A field is invalid.",
            429: "Busy: try again after Retry-After seconds.",
            504: "Not answered in time.",
        }
    failures = {status: {"model": failed, "description": text} for status, text in statuses.items()}
    return {200: {"model": kind}, **dict(sorted(failures.items()))}


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """The entry of a body in the OpenAPI document."""
    reference = {"$ref": f"#/components/schemas/{kind.__name__}"}
    BODIES.add(kind)
    return {"requestBody": {"required": True, "content": {JSON.decode(): {"schema": reference}}}}


BODIES: set[type[BaseModel]] = set()
"""All kinds of `body_of`, for the components of the OpenAPI document."""


async def _bytes(request: Request, *, limit: int) -> bytes:
    """The body, refused as soon as it is longer than the limit."""
    declared = _header(request, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise _too_long(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise RefusalError(400, "The client left before its request was complete.")
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_long(limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            request.scope["read"] = True
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _header(request: Request, name: bytes) -> bytes | None:
    return next((value for key, value in request.scope["headers"] if key == name), None)


def _too_long(limit: int) -> RefusalError:
    return RefusalError(
        413, f"The body is longer than {limit} bytes; send fewer inputs per request."
    )
