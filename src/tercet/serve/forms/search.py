"""Tercet's own interface: the rows of an index that are nearest to a query."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tercet.errors import ArgumentError
from tercet.search.conditions import check_condition
from tercet.search.rerank import CANNOT_RERANK, pair_scores, ranking_task, reranked
from tercet.serve.exchange import body_of, input_options, read, responses, service_of, to_answer
from tercet.serve.fields import Body, TextOrTexts, Truncate, Whole
from tercet.serve.refusal import RefusalError
from tercet.serve.service import InputOptions, Service
from tercet.specs import Floats
from tercet.text.tokens import Pieces

if TYPE_CHECKING:
    from tercet.search.hits import Hit
    from tercet.search.index import Index

router = APIRouter(tags=["search"])

ROWS_PER_INPUT = 10
"""Rows of an answer, per input that a request may have."""
ROWS_AT_ONCE = 1024
"""Rows that are found and written before the next ones, so that no answer grows unseen."""
ANSWER_SHARE = 8
"""Bytes of an answer, per byte that a request may have."""


class SearchBody(Body):
    query: TextOrTexts
    top: Annotated[int, Field(ge=1, le=1000, description="Rows per query."), Whole] = 10
    where: Annotated[
        str | None,
        Field(
            max_length=4096,
            description="A condition on columns, in SQL: `price > 3`. Functions that make long "
            "values, such as `repeat`, are refused.",
        ),
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
    if body.where is not None:
        try:
            check_condition(body.where)
        except ArgumentError as error:
            raise RefusalError(422, str(error), field="where") from error
    task = ranking_task(service.model, mode="cross")
    if body.rerank and task is None:
        raise RefusalError(422, CANNOT_RERANK, field="rerank")
    service.check_count(len(queries), "query")
    service.check_count(len(queries) * body.rerank, "rerank")
    count = max(body.top, body.rerank)
    _check_rows(len(queries), count, most=ROWS_PER_INPUT * service.limits.inputs)
    options = input_options(request, "query", body.truncate)
    pieces = await service.pieces(queries)
    vectors = await service.vectors(pieces, options, width=index.width)
    # The client cannot shorten the texts of the index.
    long = "truncate" if options.long == "refuse" else options.long
    search = Search(service, index, body, count, replace(options, long=long))
    left = ANSWER_SHARE * service.limits.body
    parts: list[bytes] = []
    group = max(ROWS_AT_ONCE // count, 1)
    for start in range(0, len(queries), group):
        chosen = np.arange(start, min(start + group, len(queries)))
        hits = await search.nearest(pieces.take(chosen), vectors[chosen])
        parts.append(await asyncio.to_thread(_write, [ranked[: body.top] for ranked in hits]))
        left -= len(parts[-1])
        if left < 0:
            raise RefusalError(
                413,
                f"The answer is longer than {ANSWER_SHARE * service.limits.body} bytes; lower "
                "`top`, or send fewer queries per request.",
                field="top",
            )
    return Response(b'{"results":[' + b",".join(parts) + b"]}", media_type="application/json")


@dataclass(frozen=True, slots=True)
class Search:
    """One request to an index.

    count: rows that are found for each query
    """

    service: Service
    index: Index
    body: SearchBody
    count: int
    options: InputOptions

    async def nearest(self, queries: Pieces, vectors: Floats) -> list[list[Hit]]:
        """The nearest rows of each query, reranked if that is asked for."""
        where, rerank = self.body.where, self.body.rerank
        find = partial(self.index.nearest, vectors, top=self.count, where=where)
        try:
            hits = await asyncio.to_thread(find)
        except ArgumentError as error:
            raise RefusalError(422, str(error), field="where") from error
        task = ranking_task(self.service.model, mode="cross")
        texts = [hit.text for ranked in hits for hit in ranked[:rerank]]
        if not texts or task is None:
            return hits
        # A query is tokenised once, however long it is and however many rows it is compared with.
        rows = np.repeat(np.arange(len(hits)), [len(ranked[:rerank]) for ranked in hits])
        columns = [queries.take(rows), await self.service.pieces(texts)]
        predicted = await self.service.predictions(task, "cross", columns, self.options)
        scores = pair_scores(self.service.model.tasks[task], predicted)
        return reranked(hits, scores.tolist(), rerank)


def _check_rows(queries: int, count: int, *, most: int) -> None:
    if queries * count > most:
        raise RefusalError(
            413,
            f"{queries} queries with {count} rows each are {queries * count} rows; an answer may "
            f"have {most}: lower `top`, or send fewer queries per request.",
            field="top",
        )


def _write(hits: list[list[Hit]]) -> bytes:
    """The results of some queries as JSON, without the brackets of their list."""
    return to_answer([[_row(hit) for hit in ranked] for ranked in hits])[1:-1]


def about(index: Index | None) -> dict[str, Any] | None:
    """The index in /info."""
    if index is None:
        return None
    return {"name": index.folder.rstrip("/").rpartition("/")[2], "rows": index.count()}


def _row(hit: Hit) -> dict[str, Any]:
    row = {**hit.columns, "id": hit.id, "text": hit.text, "score": hit.score}
    return row if hit.cross is None else {**row, "cross": hit.cross}
