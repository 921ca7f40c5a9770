"""A server that takes another model while it answers, and tasks with side weights in one batch."""

from __future__ import annotations

import gc
import shutil
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.errors import TercetError
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.model import Model, load
from tercet.network.network import Network
from tercet.serve.document import Api
from tercet.serve.keys import Keys
from tercet.serve.loading import Ready, folder_state, limits_for, load_model
from tercet.serve.reload import make_service
from tercet.serve.settings import Settings
from tercet.specs import TaskSpec

TEXTS = ["a quiet film", "how do i read a book ?", "a man is playing the guitar"]
PAIRS = [[first, second] for first, second in zip(TEXTS, TEXTS[::-1], strict=True)]
SIDE = {"side": {"rank": 2}}
PAIR = {"kind": "features", "features": ["u", "v", "absdiff"]}
NEW = {
    "mood": {
        "data": {"layout": "cs224n-sst"},
        "labels": ["low", "high"],
        **SIDE,
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
    },
    "same": {
        "data": {"layout": "cs224n-quora"},
        "labels": ["no", "yes"],
        **SIDE,
        "bi": {"head": PAIR, "objective": {"kind": "cross-entropy"}},
        "cross": {"head": {"kind": "dense-pair"}, "objective": {"kind": "cross-entropy"}},
    },
}


def with_new_tasks(model: Model) -> Model:
    """The model with two tasks more, which have side weights."""
    added = {name: TaskSpec.model_validate(block) for name, block in NEW.items()}
    tasks = {**model.info.tasks, **added}
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = Network(model.network.encoder, pooling="mean", tasks=tasks)
        for parameter in [*network.heads.parameters(), *network.sides.parameters()]:
            torch.nn.init.normal_(parameter, std=0.3)
    network.load_head_state({**network.head_state(), **model.network.head_state()})
    network.to(model.network.device)
    return Model(network, model.tokenizer, model.info.model_copy(update={"tasks": tasks}))


def settings_of(folder: Path, **options: Any) -> Settings:
    usual: dict[str, Any] = {
        "model": str(folder),
        "index": None,
        "keys": None,
        "listed_keys": None,
        "layers": None,
        "origins": [],
        "allowed_hosts": [],
        "max_inputs": 64,
        "max_tokens": None,
        "max_body": 200_000,
        "long_inputs": "truncate",
        "queue_inputs": 256,
        "queue_tokens": 8192,
        "batch_tokens": None,
        "max_wait": 60.0,
        "timeout": 120.0,
    }
    return Settings(**usual | options)


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the small model's folder, which tests may replace."""
    return Path(shutil.copytree(model_folder, tmp_path / "small"))


def ready_for(folder: Path) -> Ready:
    settings = settings_of(folder)
    return Ready(settings, Keys(file=None, listed=None), load_model(settings))


def test_requests_for_tasks_with_side_weights_share_no_vectors_with_others(
    serve_model: Callable[..., Any], folder: Path
) -> None:
    model = with_new_tasks(load(folder))
    hold, held = threading.Event(), threading.Event()

    def encode_together(parts: Any) -> Any:
        """The first batch waits, so that all later requests are in one."""
        from tercet.serve.encode import encode

        if not held.is_set():
            held.set()
            hold.wait(60)
        return encode(parts)

    server = serve_model(model, encode_with=encode_together, batch_tokens=4096)
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("sentiment", {"inputs": TEXTS}),
        ("mood", {"inputs": TEXTS}),
        ("same", {"inputs": PAIRS, "mode": "bi"}),
        ("same", {"inputs": PAIRS, "mode": "cross"}),
        ("paraphrase", {"inputs": PAIRS, "mode": "bi"}),
        ("paraphrase", {"inputs": PAIRS, "mode": "cross"}),
    ]
    with ThreadPoolExecutor(len(bodies) + 1) as pool:
        first = pool.submit(server.post, "/embed", {"inputs": "a"})
        held.wait(60)
        asked = [pool.submit(server.post, f"/predict/{task}", body) for task, body in bodies]
        while server.batcher._arrivals.qsize() < len(bodies):
            pass
        hold.set()
        assert first.result().status_code == 200
        answers = [reply.result().json()["results"] for reply in asked]
    for (task, body), results in zip(bodies, answers, strict=True):
        expected = model.predictions(task, body["inputs"], body.get("mode"))
        found = np.array([result["probabilities"] for result in results])
        last = expected if expected.ndim == 1 else expected[:, -1]
        assert np.allclose(found[:, -1], last, atol=1e-5)
    assert server.get("/info").json()["tercet"]["side_tasks"] == ["mood", "same"]


def test_another_service_takes_over_with_new_tasks(
    serve_model: Callable[..., Any], folder: Path
) -> None:
    ready = ready_for(folder)
    server = serve_model(ready.loaded.model)
    api: Api = server.api
    assert server.post("/predict/mood", {"inputs": TEXTS}).status_code == 404
    before = server.post("/predict/sentiment", {"inputs": TEXTS}).json()["results"]
    assert ready.newer() is None
    with_new_tasks(load(folder)).save(folder)
    newer = ready.newer()
    assert newer is not None
    ready.loaded = newer
    api.serve_from(make_service(ready, newer, server.batcher))
    assert server.post("/predict/mood", {"inputs": TEXTS}).status_code == 200
    assert server.post("/predict/sentiment", {"inputs": TEXTS}).json()["results"] == before
    paths = server.get("/openapi.json").json()["paths"]
    (task,) = paths["/predict/{task}"]["post"]["parameters"]
    assert {"mood", "same", "sentiment"} <= set(task["schema"]["enum"])
    assert "mood" in server.get("/info").json()["tercet"]["tasks"]


def test_nothing_keeps_a_replaced_model_in_memory(folder: Path) -> None:
    from tercet.serve.app import build_app
    from tercet.serve.batcher import Batcher
    from tercet.serve.encode import encode
    from tercet.serve.metrics import Metrics

    ready = ready_for(folder)
    old = weakref.ref(ready.loaded.model.network)
    batcher = Batcher(encode, ready.loaded.limits, Metrics())
    app = build_app(
        make_service(ready, ready.loaded, batcher),
        keys=ready.keys,
        metrics=batcher.metrics,
        origins=[],
    )
    with_new_tasks(load(folder)).save(folder)
    ready.refresh()
    app.api.serve_from(make_service(ready, ready.loaded, batcher))
    gc.collect()
    assert old() is None
    assert "mood" in app.api.state.service.model.tasks


def test_a_folder_that_cannot_be_loaded_leaves_the_old_model(folder: Path, capfd: Any) -> None:
    ready = ready_for(folder)
    before = ready.loaded
    (folder / "heads.safetensors").write_bytes(b"no tensors")
    ready.refresh()
    assert ready.loaded is before
    line = capfd.readouterr().err
    assert '"not-reloaded"' in line
    assert "cannot be read as safetensors" in line


def test_limits_that_the_new_model_breaks_leave_the_old_model(folder: Path) -> None:
    ready = ready_for(folder)
    ready.settings = settings_of(folder, max_tokens=40)
    model = load(folder)
    model.info = model.info.model_copy(update={"max_tokens": 20})
    model.save(folder)
    with pytest.raises(TercetError, match="reads at most 20 tokens"):
        ready.newer()


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tercet.serve.loading as loading

    newer = with_new_tasks(load(folder))
    reads = []

    def replaced_meanwhile(source: str, **options: Any) -> Model:
        model = load(source)
        if not reads:
            newer.save(folder)
        reads.append(source)
        return model

    monkeypatch.setattr(loading, "load", replaced_meanwhile)
    loaded = load_model(settings_of(folder))
    assert len(reads) == 2
    assert "mood" in loaded.model.tasks
    assert loaded.state == folder_state(str(folder))


def test_an_onnx_model_keeps_its_heads_when_its_folder_is_replaced(
    model: Model, tmp_path: Path
) -> None:
    pytest.importorskip("onnx")
    tasks = {name: task for name, task in model.info.tasks.items() if name != "tone"}
    network = Network(model.network.encoder, pooling="mean", tasks=tasks)
    info = model.info.model_copy(update={"tasks": tasks})
    folder = tmp_path / "onnx"
    export_onnx(folder, Parts(network, model.tokenizer, info), precision="fp32")
    loaded = load_model(settings_of(folder))
    before = load(folder).predictions("sentiment", TEXTS)
    shutil.rmtree(folder / "heads")
    assert np.array_equal(loaded.model.predictions("sentiment", TEXTS), before)


def test_keys_are_read_even_if_the_model_cannot_be(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("old", "utf-8")
    settings = settings_of(folder, keys=file)
    ready = Ready(settings, Keys(file=file, listed=None), load_model(settings))
    file.write_text("new", "utf-8")
    shutil.rmtree(folder)
    ready.refresh()
    assert not ready.keys.admit(b"Bearer old")
    assert ready.keys.admit(b"Bearer new")


@pytest.mark.parametrize(("queue", "batch"), [(8192, 8192), (2**19, 65_536)])
def test_a_batch_is_not_larger_than_the_queue_by_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch, queue: int, batch: int
) -> None:
    model = load(folder)
    # What a GPU takes at once.
    monkeypatch.setattr(type(model.engine), "batch_tokens", 65_536)
    settings = settings_of(folder, queue_tokens=queue)
    assert limits_for(model, settings).batch_tokens == batch
