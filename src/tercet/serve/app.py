"""The app: forms, page and gate around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

import tercet
from tercet.serve.exchange import BODIES
from tercet.serve.forms import health, inference, openai, tasks
from tercet.serve.gate import Gate
from tercet.serve.keys import Keys
from tercet.serve.metrics import Metrics
from tercet.serve.page import add_page
from tercet.serve.refusal import RefusalError
from tercet.serve.service import Service

REFERENCE = "#/components/schemas/{model}"


class Api(FastAPI):
    """FastAPI, told of the bodies that the forms read themselves."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            kinds = sorted(BODIES, key=lambda kind: kind.__name__)
            _, found = models_json_schema(
                [(kind, "validation") for kind in kinds], ref_template=REFERENCE
            )
            document["components"]["schemas"] |= found["$defs"]
        return super().openapi()


def build_app(
    service: Service, *, keys: Keys, metrics: Metrics, origins: list[str]
) -> tuple[ASGIApp, Gate]:
    """The app that a server runs, and the gate in it that can be told to drain."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        service.batcher.stop()

    api = Api(
        title="Tercet",
        summary="One encoder, three answers: sentiment, paraphrase and similarity.",
        version=tercet.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    for form in (tasks, openai, inference, health):
        api.include_router(form.router)
    add_page(api)
    api.add_exception_handler(HTTPException, _not_here)
    gate = Gate(api, keys=keys, metrics=metrics, timeout=service.limits.timeout)
    api.state.service = service
    api.state.metrics = metrics
    api.state.gate = gate
    api.state.about = inference.about(service, None)
    if not origins:
        return gate, gate
    opened = CORSMiddleware(
        gate, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"]
    )
    return opened, gate


async def _not_here(request: Request, error: Exception) -> Response:
    """A path or a method that no endpoint has, in the form of all refusals."""
    assert isinstance(error, HTTPException)
    method = request.method if error.status_code == 405 else ""
    sentence = (
        f"Not to be asked with {method}." if method else "Nothing is here; /docs tells what is."
    )
    refusal = RefusalError(error.status_code, sentence)
    return Response(
        refusal.body(openai=request.url.path.startswith("/v1/")),
        status_code=refusal.status,
        headers=dict(error.headers or {}),
        media_type="application/json",
    )
