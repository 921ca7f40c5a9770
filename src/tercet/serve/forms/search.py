"""Tercet's own interface: the rows of an index that are nearest to a query."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tercet.errors import ArgumentError
from tercet.search.rerank import CANNOT_RERANK, pair_scores, ranking_task, rerank_pairs, reranked
from tercet.serve.exchange import answer, body_of, input_options, read, responses, service_of
from tercet.serve.fields import Body, TextOrTexts, Truncate, Whole
from tercet.serve.refusal import RefusalError

if TYPE_CHECKING:
    from tercet.search.hits import Hit
    from tercet.search.index import Index

router = APIRouter(tags=["search"])


class SearchBody(Body):
    query: TextOrTexts
    top: Annotated[int, Field(ge=1, le=1000, description="Rows per query."), Whole] = 10
    where: Annotated[
        str | None,
        Field(max_length=4096, description="A condition on columns, in SQL: `price > 3`."),
    ] = None
    rerank: Annotated[
        int,
        Field(
            ge=0,
            le=1000,
            description="The number of nearest rows per query that the cross mode scores too; "
            "they are ordered by the sum of both scores.",
        ),
        Whole,
    ] = 0
    truncate: Truncate = None


class FoundRow(BaseModel):
    """A row of the index with all its columns.

    `score` is the cosine with the query; `cross`, from 0 to 1, is the score of the cross mode.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    text: str
    score: float
    cross: float | None = None


class SearchAnswer(BaseModel):
    results: list[list[FoundRow]]


@router.post("/search", openapi_extra=body_of(SearchBody), responses=responses(SearchAnswer))
async def search(request: Request) -> Response:
    """The rows of the index that are nearest to each query, the nearest first."""
    body = await read(request, SearchBody)
    service = service_of(request)
    index = service.index
    if index is None:
        raise RefusalError(404, "This server has no index.")
    queries = [body.query] if isinstance(body.query, str) else body.query
    task = ranking_task(service.model, mode="cross")
    if body.rerank and task is None:
        raise RefusalError(422, CANNOT_RERANK, field="rerank")
    service.check_count(len(queries), "query")
    service.check_count(len(queries) * body.rerank, "rerank")
    options = input_options(request, "query", body.truncate)
    vectors = await service.vectors(await service.pieces(queries), options)
    count = max(body.top, body.rerank)
    try:
        hits = await asyncio.to_thread(index.nearest, vectors, top=count, where=body.where)
    except ArgumentError as error:
        raise RefusalError(422, str(error), field="where") from error
    pairs = rerank_pairs(queries, hits, body.rerank)
    if pairs and task is not None:
        columns = [await service.pieces(side) for side in zip(*pairs, strict=True)]
        # The client cannot shorten the texts of the index.
        options = replace(options, truncate=True)
        predicted = await service.predictions(task, "cross", columns, options)
        scores = pair_scores(service.model.tasks[task], predicted)
        hits = reranked(hits, scores.tolist(), body.rerank)
    return answer({"results": [[_row(hit) for hit in ranked[: body.top]] for ranked in hits]})


def about(index: Index | None) -> dict[str, Any] | None:
    """The index in /info."""
    if index is None:
        return None
    return {"name": index.folder.rstrip("/").rpartition("/")[2], "rows": index.count()}


def _row(hit: Hit) -> dict[str, Any]:
    row = {**hit.columns, "id": hit.id, "text": hit.text, "score": hit.score}
    return row if hit.cross is None else {**row, "cross": hit.cross}
