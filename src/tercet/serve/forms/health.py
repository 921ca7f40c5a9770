"""Health checks and metrics."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from pydantic_core import to_json

from tercet.serve.exchange import answer, responses, service_of

router = APIRouter(tags=["health"])


class State(BaseModel):
    status: Literal["live", "ready", "draining", "stuck"]


READY: dict[int | str, dict[str, Any]] = {
    200: {"model": State},
    503: {"model": State, "description": "Shutting down, or the encoder is stuck."},
}


@router.head("/health", include_in_schema=False)
@router.head("/health/ready", include_in_schema=False)
@router.get("/health", responses=READY)
@router.get("/health/ready", responses=READY)
async def ready(request: Request) -> Response:
    """Whether the server answers requests: it accepts them and makes progress."""
    status = "ready"
    if request.app.state.gate.draining:
        status = "draining"
    elif service_of(request).batcher.stuck:
        status = "stuck"
    code = 200 if status == "ready" else 503
    return Response(to_json({"status": status}), code, media_type="application/json")


@router.head("/health/live", include_in_schema=False)
@router.get("/health/live", responses={200: {"model": State}})
async def live() -> Response:
    """Whether the server is alive."""
    return answer({"status": "live"})


METRICS = responses(None, reads=False)
METRICS[200] = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics"}


@router.get("/metrics", responses=METRICS, response_class=Response)
async def metrics(request: Request) -> Response:
    """Queue, batches, latency, tokens and refusals, for Prometheus."""
    text = request.app.state.metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
