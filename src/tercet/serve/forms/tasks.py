"""Tercet's own interface: sentiment, paraphrase, similarity and any other task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from tercet.model import SIMILARITY_SCALE, Floats, PairMode
from tercet.predictions import Prediction, to_label_sets, to_predictions
from tercet.serve.exchange import answer, body_of, input_options, read, responses, service_of
from tercet.serve.fields import Body, Pair, Pairs, TextOrTexts, TextsOrPairs, Truncate
from tercet.serve.refusal import RefusalError, shown
from tercet.serve.service import RequestCounts
from tercet.specs import Mode, TaskSpec

router = APIRouter(tags=["tasks"])

OptionalMode = Annotated[
    PairMode | None,
    Field(
        description="`cross` reads a pair jointly, `bi` compares vectors; default: the most "
        "accurate available."
    ),
]


class SentimentBody(Body):
    texts: TextOrTexts
    truncate: Truncate = None


class PairsBody(Body):
    pairs: Pairs
    mode: OptionalMode = None
    truncate: Truncate = None


class PredictBody(Body):
    inputs: TextsOrPairs
    mode: OptionalMode = None
    truncate: Truncate = None


class Classes(BaseModel):
    label: int
    name: str
    probabilities: list[float]


class Labels(BaseModel):
    """Of a task whose inputs may have several labels."""

    labels: list[int]
    names: list[str]
    probabilities: list[float]


class Answer(BaseModel):
    task: str
    mode: str
    truncated: int
    windowed: int


class Graded(Answer):
    results: list[float]


class Classified(Answer):
    results: list[Classes]


class Predicted(Answer):
    results: list[Classes] | list[Labels] | list[float]


@router.post("/sentiment", openapi_extra=body_of(SentimentBody), responses=responses(Classified))
async def sentiment(request: Request) -> Response:
    """The most likely class of each text by the task `sentiment`."""
    body = await read(request, SentimentBody)
    spec = _spec(request, "sentiment")
    labels = spec.labels
    if labels is None:
        raise RefusalError(404, "The task `sentiment` of this model has grades: use /predict.")
    if spec.multi_label:
        raise RefusalError(
            404, "The task `sentiment` of this model has several labels per text: use /predict."
        )
    texts = [body.texts] if isinstance(body.texts, str) else body.texts
    predictions = await _predict(request, "sentiment", texts, "texts", truncate=body.truncate)
    return predictions.answer(to_predictions(predictions.values, labels, Prediction))


@router.post("/paraphrase", openapi_extra=body_of(PairsBody), responses=responses(Graded))
async def paraphrase(request: Request) -> Response:
    """The probability that the two texts of each pair mean the same."""
    body = await read(request, PairsBody)
    spec = _spec(request, "paraphrase")
    if spec.labels is None or len(spec.labels) != 2 or spec.multi_label:
        raise RefusalError(404, "The task `paraphrase` does not have two classes: use /predict.")
    predictions = await _predict(
        request, "paraphrase", body.pairs, "pairs", mode=body.mode, truncate=body.truncate
    )
    values = predictions.values
    return predictions.answer((values if values.ndim == 1 else values[:, 1]).tolist())


@router.post("/similarity/pairs", openapi_extra=body_of(PairsBody), responses=responses(Graded))
async def similarity(request: Request) -> Response:
    """How similar in meaning the two texts of each pair are, from 0 to 5."""
    body = await read(request, PairsBody)
    grades = _spec(request, "similarity").range
    if grades is None:
        raise RefusalError(404, "The task `similarity` of this model has classes: use /predict.")
    predictions = await _predict(
        request, "similarity", body.pairs, "pairs", mode=body.mode, truncate=body.truncate
    )
    low, high = grades
    scaled = (predictions.values - low) * (SIMILARITY_SCALE / (high - low))
    return predictions.answer(scaled.tolist())


@router.post("/predict/{task}", openapi_extra=body_of(PredictBody), responses=responses(Predicted))
async def predict(request: Request, task: str) -> Response:
    """The classes, sets of labels or grades of texts or pairs by any task of the model."""
    body = await read(request, PredictBody)
    spec = _spec(request, task)
    predictions = await _predict(
        request, task, body.inputs, "inputs", mode=body.mode, truncate=body.truncate
    )
    values = predictions.values
    if spec.labels is None:
        return predictions.answer(values.tolist())
    if spec.multi_label:
        thresholds = service_of(request).model.thresholds(task, predictions.mode)
        return predictions.answer(to_label_sets(values, spec.labels, thresholds))
    return predictions.answer(to_predictions(values, spec.labels, Prediction))


@dataclass(frozen=True, slots=True)
class TaskPredictions:
    """The predictions for a request."""

    task: str
    mode: Mode
    counts: RequestCounts
    values: Floats

    def answer(self, results: list[Any]) -> Response:
        fields = {"task": self.task, "mode": self.mode}
        counts = {"truncated": self.counts.truncated, "windowed": self.counts.windowed}
        return answer({**fields, **counts, "results": results})


async def _predict(
    request: Request,
    task: str,
    inputs: Sequence[str] | Sequence[Pair],
    field: str,
    *,
    mode: PairMode | None = None,
    truncate: bool | None,
) -> TaskPredictions:
    service = service_of(request)
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
    options = input_options(request, field, truncate)
    values = await service.predictions(task, resolved, columns, options)
    return TaskPredictions(task, resolved, options.counts, values)


def _spec(request: Request, task: str) -> TaskSpec:
    service = service_of(request)
    service.resolve_mode(task, None)
    return service.model.tasks[task]
