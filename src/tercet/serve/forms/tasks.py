"""Our own form: sentiment, paraphrase, similarity and any other task, in both modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from tercet.model import SIMILARITY_SCALE, Floats, PairMode, Prediction, to_predictions
from tercet.serve.exchange import (
    Body,
    Pair,
    Pairs,
    TextOrTexts,
    TextsOrPairs,
    Truncate,
    answer,
    asked,
    body_of,
    read,
    responses,
)
from tercet.serve.refusal import RefusalError, shown
from tercet.serve.service import Facts, Service
from tercet.specs import Mode, TaskSpec

router = APIRouter(tags=["tasks"])


class SentimentBody(Body):
    texts: TextOrTexts
    truncate: Truncate = None


class PairsBody(Body):
    pairs: Pairs
    mode: PairMode | None = None
    """`cross` reads a pair jointly, `bi` compares vectors; the most exact there is when left out"""
    truncate: Truncate = None


class PredictBody(Body):
    inputs: TextsOrPairs
    mode: PairMode | None = None
    truncate: Truncate = None


class Classes(BaseModel):
    label: int
    name: str
    probabilities: list[float]


class Graded(BaseModel):
    task: str
    mode: str
    truncated: int
    results: list[float]


class Classified(BaseModel):
    task: str
    mode: str
    truncated: int
    results: list[Classes]


class Predicted(BaseModel):
    task: str
    mode: str
    truncated: int
    results: list[Classes] | list[float]


@router.post("/sentiment", openapi_extra=body_of(SentimentBody), responses=responses(Classified))
async def sentiment(request: Request) -> Response:
    """The likeliest class of each text, by the task `sentiment`."""
    body = await read(request, SentimentBody)
    labels = _spec(request, "sentiment").labels
    if labels is None:
        raise RefusalError(404, "The task `sentiment` of this model has grades: ask /predict.")
    texts = [body.texts] if isinstance(body.texts, str) else body.texts
    found = await _predict(request, "sentiment", texts, "texts", truncate=body.truncate)
    return found.answer(_classes(found.values, labels))


@router.post("/paraphrase", openapi_extra=body_of(PairsBody), responses=responses(Graded))
async def paraphrase(request: Request) -> Response:
    """The probability that the two texts of each pair say the same."""
    body = await read(request, PairsBody)
    labels = _spec(request, "paraphrase").labels
    if labels is None or len(labels) != 2:
        raise RefusalError(404, "The task `paraphrase` has not just two classes: ask /predict.")
    found = await _predict(
        request, "paraphrase", body.pairs, "pairs", mode=body.mode, truncate=body.truncate
    )
    return found.answer((found.values if found.values.ndim == 1 else found.values[:, 1]).tolist())


@router.post("/similarity/pairs", openapi_extra=body_of(PairsBody), responses=responses(Graded))
async def similarity(request: Request) -> Response:
    """How near in meaning the two texts of each pair are, from 0 to 5."""
    body = await read(request, PairsBody)
    grades = _spec(request, "similarity").range
    if grades is None:
        raise RefusalError(404, "The task `similarity` of this model has classes: ask /predict.")
    found = await _predict(
        request, "similarity", body.pairs, "pairs", mode=body.mode, truncate=body.truncate
    )
    low, high = grades
    return found.answer(((found.values - low) * (SIMILARITY_SCALE / (high - low))).tolist())


@router.post("/predict/{task}", openapi_extra=body_of(PredictBody), responses=responses(Predicted))
async def predict(request: Request, task: str) -> Response:
    """The classes, or the grades, that any task of the model gives to texts or pairs."""
    body = await read(request, PredictBody)
    labels = _spec(request, task).labels
    found = await _predict(
        request, task, body.inputs, "inputs", mode=body.mode, truncate=body.truncate
    )
    return found.answer(found.values.tolist() if labels is None else _classes(found.values, labels))


@dataclass(frozen=True, slots=True)
class Found:
    """Predictions of a request, before they take the form of its answer."""

    task: str
    mode: Mode
    facts: Facts
    values: Floats

    def answer(self, results: list[Any]) -> Response:
        facts = {"task": self.task, "mode": self.mode, "truncated": self.facts.truncated}
        return answer({**facts, "results": results})


async def _predict(
    request: Request,
    task: str,
    inputs: Sequence[str] | Sequence[Pair],
    field: str,
    *,
    mode: PairMode | None = None,
    truncate: bool | None,
) -> Found:
    service: Service = request.app.state.service
    resolved = service.resolve_mode(task, mode)
    service.check_count(len(inputs), field)
    wanted = "texts" if resolved == "single" else "pairs"
    if isinstance(inputs[0], str) != (wanted == "texts"):
        raise RefusalError(
            422,
            f"`{field}.0` is {shown(inputs[0])}: the task `{task}` reads {wanted}.",
            field=f"{field}.0",
        )
    sides = [inputs] if resolved == "single" else zip(*inputs, strict=True)
    columns = [await service.pieces(cast(Sequence[str], side)) for side in sides]
    taken = asked(request, field, truncate)
    values = await service.predictions(task, resolved, columns, taken)
    return Found(task, resolved, taken.facts, values)


def _spec(request: Request, task: str) -> TaskSpec:
    service: Service = request.app.state.service
    service.resolve_mode(task, None)
    return service.model.tasks[task]


def _classes(values: Floats, labels: list[str]) -> list[Prediction]:
    return to_predictions(values, labels, Prediction)
