"""The app: endpoints, page and gate around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

import tercet
from tercet.serve.document import Api
from tercet.serve.forms import health, inference, openai, search, tasks
from tercet.serve.gate import FAILED, Gate
from tercet.serve.keys import Keys
from tercet.serve.metrics import Metrics
from tercet.serve.page import add_page
from tercet.serve.refusal import RefusalError
from tercet.serve.service import Service


class App(NamedTuple):
    """What a server runs.

    entry: what answers connections
    gate: can be set to drain
    api: can be given another service
    """

    entry: ASGIApp
    gate: Gate
    api: Api


def build_app(
    service: Service,
    *,
    keys: Keys,
    metrics: Metrics,
    origins: list[str],
    hosts: frozenset[str] | None = None,
) -> App:
    """Endpoints, page and gate around a service, which may be replaced by another later.

    origins, hosts: values that the headers Origin and Host may have; hosts None: any
    """
    batcher = service.batcher

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        batcher.stop()

    api = Api(
        title="Tercet",
        summary="One encoder, many answers: several sentence tasks on one transformer encoder.",
        version=tercet.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    add_endpoints(api)
    add_page(api)
    api.add_exception_handler(RefusalError, _refuse)
    api.add_exception_handler(HTTPException, _not_found)
    api.add_exception_handler(Exception, _fail)
    gate = Gate(api, keys=keys, metrics=metrics, timeout=service.limits.timeout, hosts=hosts)
    api.serve_from(service)
    api.state.metrics = metrics
    api.state.gate = gate
    if not origins:
        return App(gate, gate, api)
    opened = CORSMiddleware(
        gate, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"]
    )
    return App(opened, gate, api)


def add_endpoints(api: FastAPI) -> None:
    """Add the endpoints that the OpenAPI document lists."""
    for form in (openai, inference, tasks, search, health):
        api.include_router(form.router)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusalError)
    return error.response(request.url.path)


async def _not_found(request: Request, error: Exception) -> Response:
    """An unknown path or method, in the format of all refusals."""
    assert isinstance(error, HTTPException)
    sentence = "Unknown path; /docs lists the endpoints."
    if error.status_code == 405:
        sentence = f"This path does not accept {request.method}."
    response = RefusalError(error.status_code, sentence).response(request.url.path)
    response.headers.update(error.headers or {})
    return response


async def _fail(request: Request, error: Exception) -> Response:
    """The gate logs the error; this is the client's answer."""
    return RefusalError(500, FAILED).response(request.url.path)
