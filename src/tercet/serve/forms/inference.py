"""The interface of text-embeddings-inference: embed, rerank, similarity, info."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, RootModel

import tercet
from tercet.model import Floats, Model
from tercet.search.rerank import pair_scores, ranking_task
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
from tercet.serve.fields import ForeignBody, Texts, TextsOrIds, Truncate, Whole
from tercet.serve.forms import search
from tercet.serve.service import TOKENIZERS, InputOptions, Service
from tercet.specs import TaskSpec

router = APIRouter(tags=["text-embeddings-inference"])

Direction = Annotated[
    Literal["right", "Right"], Field(description="Inputs are only cut at the end.")
]
NoPrompt = Annotated[None, Field(description="Prompts are not supported.")]


class EmbedBody(ForeignBody):
    inputs: TextsOrIds
    normalize: bool = True
    truncate: Truncate = None
    truncation_direction: Direction = "right"
    prompt_name: NoPrompt = None
    dimensions: Annotated[int, Field(ge=1), Whole] | None = None


class RerankBody(ForeignBody):
    query: str
    texts: Texts
    raw_scores: bool = False
    return_text: bool = False
    truncate: Truncate = None
    truncation_direction: Direction = "right"


class Compared(ForeignBody):
    source_sentence: str
    sentences: Texts


class Parameters(ForeignBody):
    truncate: Truncate = None
    truncation_direction: Direction = "right"
    prompt_name: NoPrompt = None


class SimilarityBody(ForeignBody):
    inputs: Compared
    parameters: Parameters | None = None


class Rank(BaseModel):
    index: int
    score: float
    text: str | None = None


Vectors = RootModel[list[list[float]]]
Ranks = RootModel[list[Rank]]
Cosines = RootModel[list[float]]


@router.post("/embed", openapi_extra=body_of(EmbedBody), responses=responses(Vectors))
async def embed(request: Request) -> Response:
    """The vector of each input."""
    body = await read(request, EmbedBody)
    service = service_of(request)
    service.check_width(body.dimensions)
    pieces = await service.input_pieces(body.inputs, "inputs")
    options = input_options(request, "inputs", body.truncate)
    vectors = await service.vectors(
        pieces, options, width=body.dimensions, normalize=body.normalize
    )
    return await write(vectors, lambda: b"[" + b",".join(map(numbers, vectors)) + b"]")


@router.post("/similarity", openapi_extra=body_of(SimilarityBody), responses=responses(Cosines))
async def similarity(request: Request) -> Response:
    """The cosine of a sentence's vector with those of others."""
    body = await read(request, SimilarityBody)
    service = service_of(request)
    sentences = body.inputs.sentences
    service.check_count(len(sentences), "inputs.sentences")
    truncate = body.parameters.truncate if body.parameters is not None else None
    options = input_options(request, "inputs.sentences", truncate)
    return answer(
        (await _cosines(service, body.inputs.source_sentence, sentences, options)).tolist()
    )


@router.post("/rerank", openapi_extra=body_of(RerankBody), responses=responses(Ranks))
async def rerank(request: Request) -> Response:
    """Texts ranked by their similarity to a query, the nearest first."""
    body = await read(request, RerankBody)
    service = service_of(request)
    service.check_count(len(body.texts), "texts")
    options = input_options(request, "texts", body.truncate)
    scores = await _scores(service, body, options)
    order = np.argsort(-scores, kind="stable").tolist()
    values = scores.tolist()
    ranks: list[dict[str, Any]] = [{"index": i, "score": values[i]} for i in order]
    if body.return_text:
        ranks = [{**rank, "text": body.texts[rank["index"]]} for rank in ranks]
    return answer(ranks)


@router.get("/info", responses=responses(dict[str, Any], reads=False))
async def info(request: Request) -> Response:
    """The model, its tasks and modes, the limits and the index."""
    service = service_of(request)
    return answer(_about(service, search.about(service.index)))


def _about(service: Service, index: dict[str, Any] | None) -> dict[str, Any]:
    """The fields of text-embeddings-inference, and Tercet's own."""
    model, limits = service.model, service.limits
    tasks = {name: _about_task(model, name, task) for name, task in model.tasks.items()}
    return {
        "model_id": model.name,
        "model_sha": None,
        "model_dtype": "float32",
        "model_type": {"embedding": {"pooling": model.info.pooling}},
        "max_concurrent_requests": limits.queue_inputs,
        "max_input_length": limits.tokens,
        "max_batch_tokens": limits.batch_tokens,
        "max_batch_requests": None,
        "max_client_batch_size": limits.inputs,
        "auto_truncate": limits.long_inputs != "refuse",
        "tokenization_workers": TOKENIZERS,
        "version": tercet.__version__,
        "tercet": {
            "width": model.width,
            "widths": model.widths,
            "layers": model.layers,
            "encoder": model.info.encoder,
            "recipe": model.info.recipe,
            "tasks": tasks,
            "side_tasks": model.info.side_tasks,
            "rerank": ranking_task(model) or "cosine",
            "limits": asdict(limits),
            "index": index,
        },
    }


def _about_task(model: Model, name: str, task: TaskSpec) -> dict[str, Any]:
    """What the page shows of a task."""
    return {
        "inputs": "texts" if model.resolve_mode(name) == "single" else "pairs",
        "modes": list(task.predicting_modes),
        "labels": task.labels,
        "range": task.range,
        "multi_label": task.multi_label,
        "thresholds": (model.info.thresholds or {}).get(name),
        "examples": (model.info.examples or {}).get(name, []),
    }


async def _scores(service: Service, body: RerankBody, options: InputOptions) -> Floats:
    """The score of each text, float32 [n]: from 0 to 1, or raw as the head predicts it."""
    task = ranking_task(service.model)
    if task is None:
        cosines = await _cosines(service, body.query, body.texts, options)
        return cosines if body.raw_scores else (cosines + np.float32(1)) / np.float32(2)
    mode = service.model.resolve_mode(task)
    query, texts = [await service.pieces([body.query]), await service.pieces(body.texts)]
    columns = [query.repeat(len(texts)), texts]
    predicted = await service.predictions(task, mode, columns, options)
    spec = service.model.tasks[task]
    if body.raw_scores and spec.range is not None:
        return predicted
    return pair_scores(spec, predicted)


async def _cosines(service: Service, text: str, others: list[str], options: InputOptions) -> Floats:
    """Cosines of a text with others, float32 [n]."""
    pieces = await service.pieces([*others, text])
    vectors = await service.vectors(pieces, options)
    cosines: Floats = vectors[:-1] @ vectors[-1]
    return cosines
