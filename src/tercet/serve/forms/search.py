"""Our own form: the rows of an index that are nearest to a query."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tercet.serve.exchange import (
    Body,
    TextOrTexts,
    Truncate,
    Whole,
    answer,
    asked,
    body_of,
    read,
    responses,
)
from tercet.serve.refusal import RefusalError
from tercet.serve.service import Service

if TYPE_CHECKING:
    from tercet.search.hits import Hit
    from tercet.search.index import Index

router = APIRouter(tags=["search"])


class SearchBody(Body):
    query: TextOrTexts
    top: Annotated[int, Field(ge=1, le=1000), Whole] = 10
    truncate: Truncate = None


class Row(BaseModel):
    """A row of the index with all its columns; the score is the cosine with the query."""

    model_config = ConfigDict(extra="allow")

    id: str
    text: str
    score: float


class Rows(BaseModel):
    results: list[list[Row]]


@router.post("/search", openapi_extra=body_of(SearchBody), responses=responses(Rows))
async def search(request: Request) -> Response:
    """The rows of the index that are nearest to each query, the nearest first."""
    body = await read(request, SearchBody)
    service: Service = request.app.state.service
    index: Index | None = request.app.state.index
    if index is None:
        raise RefusalError(404, "This server has no index; start it with --index FOLDER.")
    queries = [body.query] if isinstance(body.query, str) else body.query
    service.check_count(len(queries), "query")
    pieces = await service.pieces(queries)
    vectors = await service.vectors(pieces, asked(request, "query", body.truncate))
    found = await asyncio.to_thread(index.nearest, vectors, top=body.top)
    return answer({"results": [[_row(hit) for hit in hits] for hits in found]})


def about(index: Index | None) -> dict[str, Any] | None:
    """What /info tells of the index."""
    if index is None:
        return None
    return {"name": index.folder.rstrip("/").rpartition("/")[2], "rows": index.count()}


def _row(hit: Hit) -> dict[str, Any]:
    return {**hit.columns, "id": hit.id, "text": hit.text, "score": hit.score}
