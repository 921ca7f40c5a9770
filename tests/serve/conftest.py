"""A small model of all tasks in both modes, and servers of it on loopback ports."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
import uvicorn

from tercet.folders.model_card import ModelInfo
from tercet.model import Model, load
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.serve.app import build_app
from tercet.serve.batcher import Batcher
from tercet.serve.connection import Connection
from tercet.serve.document import Api
from tercet.serve.encode import encode
from tercet.serve.gate import Gate
from tercet.serve.keys import Keys
from tercet.serve.metrics import Metrics
from tercet.serve.service import Service
from tercet.serve.settings import Limits
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

MLP = {"kind": "mlp", "hidden": [8]}
PAIR = {"kind": "features", "features": ["u", "v", "absdiff", "cosine"]}
GRADES = {"kind": "mean-squared-error", "targets": [0, 1]}
TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "sentiment": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["awful", "bad", "fair", "good", "great"],
            "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
        },
        "paraphrase": {
            "data": {"layout": "cs224n-quora"},
            "labels": ["different", "paraphrase"],
            "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
            "bi": {"head": PAIR, "objective": {"kind": "cross-entropy"}},
        },
        "similarity": {
            "data": {"layout": "cs224n-sts"},
            "range": [1, 3],
            "cross": {"head": MLP, "objective": GRADES},
            "bi": {"head": {"kind": "cosine", "projection": True}, "objective": GRADES},
        },
        "tone": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["cold", "warm"],
            "single": {
                "head": {"kind": "layers", "layers": 1},
                "objective": {"kind": "cross-entropy"},
            },
        },
        "turned": {
            "data": {"layout": "cs224n-quora"},
            "labels": ["no", "yes"],
            "cross": {"head": {"kind": "dense-pair"}, "objective": {"kind": "cross-entropy"}},
        },
    }.items()
}
LIMITS = Limits(
    inputs=64,
    tokens=48,
    body=200_000,
    long_inputs="truncate",
    queue_inputs=256,
    queue_tokens=8192,
    batch_tokens=512,
    wait=60.0,
    timeout=120.0,
)
"""Times are long: tests may run on a busy machine."""


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Path:
    folder = tmp_path_factory.mktemp("served") / "small"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
        for parameter in network.heads.parameters():
            torch.nn.init.normal_(parameter, std=0.3)  # so that predictions differ
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=48, tasks=TASKS)
    Model(network, Tokenizer.load(tiny_encoder), info).save(folder)
    return folder


@pytest.fixture(scope="session")
def model(model_folder: Path) -> Model:
    return load(model_folder)


@dataclass(frozen=True, slots=True)
class Serving:
    """A server in a thread of this process."""

    url: str
    port: int
    gate: Gate
    batcher: Batcher
    client: httpx.Client
    api: Api

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.client.post(path, json=body, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)


Serve = Callable[..., Serving]


@contextmanager
def serving(
    model: Model,
    *,
    keys: Keys | None = None,
    origins: list[str] | None = None,
    index: Any = None,
    encode_with: Any = None,
    hosts: frozenset[str] | None = None,
    **limits: Any,
) -> Iterator[Serving]:
    chosen = replace(LIMITS, **limits)
    batcher = Batcher(encode_with or encode, chosen, Metrics())
    service = Service(model, chosen, batcher, index)
    app, gate, api = build_app(
        service,
        keys=keys or Keys(file=None, listed=None),
        metrics=batcher.metrics,
        origins=origins or [],
        hosts=hosts,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=partial(Connection, timeout=chosen.timeout),  # type: ignore[arg-type]
            ws="none",
            lifespan="on",
            log_config=None,
        )
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=url, timeout=60) as client:
            yield Serving(url, port, gate, batcher, client, api)
    finally:
        server.should_exit = True
        thread.join(60)


@pytest.fixture(scope="session")
def serve(model: Model) -> Iterator[Serve]:
    """Starts a server of the small model with other limits or keys than usual."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(serving(model, **options))


@pytest.fixture
def serve_model() -> Iterator[Serve]:
    """Starts a server of any model."""
    with ExitStack() as stack:
        yield lambda model, **options: stack.enter_context(serving(model, **options))


@pytest.fixture(scope="session")
def server(serve: Serve) -> Serving:
    """One server that many tests ask."""
    return serve()
