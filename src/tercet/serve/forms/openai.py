"""The interface of OpenAI: embeddings and the list of models."""

from __future__ import annotations

import base64
import time
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from pydantic_core import to_json

from tercet.model import Floats
from tercet.serve.exchange import (
    answer,
    body_of,
    input_options,
    numbers,
    read,
    responses,
    service_of,
    write,
)
from tercet.serve.fields import ForeignBody, TextsOrIds, Whole
from tercet.serve.refusal import RefusalError, shown

router = APIRouter(prefix="/v1", tags=["OpenAI"])
STARTED = int(time.time())


class EmbeddingsBody(ForeignBody):
    input: TextsOrIds
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1), Whole] | None = None
    user: str | None = None


class Embedding(BaseModel):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class ServedModel(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ServedModels(BaseModel):
    object: Literal["list"]
    data: list[ServedModel]


class Error(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class Errors(BaseModel):
    """An answer other than 200."""

    error: Error


@router.post(
    "/embeddings", openapi_extra=body_of(EmbeddingsBody), responses=responses(EmbeddingList, Errors)
)
async def embeddings(request: Request) -> Response:
    """The vector of each input, of length 1."""
    body = await read(request, EmbeddingsBody)
    service = service_of(request)
    if body.model not in service.names:
        raise RefusalError(
            404,
            f"`model` is {shown(body.model)}; this server has {service.model.name!r}.",
            field="model",
            code="model_not_found",
        )
    service.check_width(body.dimensions)
    pieces = await service.input_pieces(body.input, "input")
    options = input_options(request, "input", None)
    vectors = await service.vectors(pieces, options, width=body.dimensions)
    tokens, encoding = options.counts.tokens, body.encoding_format
    return await write(vectors, lambda: _content(vectors, body.model, tokens, encoding=encoding))


@router.get("/models", responses=responses(ServedModels, Errors, reads=False))
async def models(request: Request) -> Response:
    """The model of this server."""
    name = service_of(request).model.name
    served = {"id": name, "object": "model", "created": STARTED, "owned_by": "tercet"}
    return answer({"object": "list", "data": [served]})


def _content(vectors: Floats, model: str, tokens: int, *, encoding: str) -> bytes:
    """The answer, assembled by hand: most of it is vectors."""
    rows = [_base64(row) if encoding == "base64" else numbers(row) for row in vectors]
    entries = b",".join(
        b'{"object":"embedding","index":%d,"embedding":%s}' % entry for entry in enumerate(rows)
    )
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    rest = to_json({"model": model, "usage": usage})
    return b'{"object":"list","data":[' + entries + b"]," + rest[1:]


def _base64(vector: Floats) -> bytes:
    return b'"' + base64.b64encode(vector.astype("<f4").tobytes()) + b'"'
