"""Long inputs over HTTP: in windows they get the model's answers, and every answer says so."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

from tercet.model import Model

LONG = "the film is good . the plot is long , and the cast is lost in it . " * 8
TEXTS = ["a film", LONG, "", f"dull . {LONG}"]
PAIRS = [[TEXTS[0], TEXTS[1]], [TEXTS[1], TEXTS[3]], ["same", "same"]]


@pytest.fixture(scope="module")
def whole(model: Model) -> Model:
    other = copy(model)
    other.info = model.info.model_copy(update={"long": "windows"})
    return other


@pytest.fixture
def windows(serve_model: Any, whole: Model) -> Any:
    return serve_model(whole, long_inputs="windows")


def test_answers_are_those_of_the_model(windows: Any, whole: Model) -> None:
    answer = windows.post("/embed", {"inputs": TEXTS})
    assert answer.headers["x-tercet-windowed"] == "2"
    assert "x-tercet-truncated" not in answer.headers
    assert np.abs(np.array(answer.json()) - whole.embed(TEXTS)).max() < 1e-5
    for task in ("sentiment", "tone"):
        result = windows.post(f"/predict/{task}", {"inputs": TEXTS}).json()
        assert (result["windowed"], result["truncated"]) == (2, 0)
        found = [row["probabilities"] for row in result["results"]]
        assert np.abs(np.array(found) - whole.predictions(task, TEXTS)).max() < 1e-5
    for mode in ("cross", "bi"):
        result = windows.post("/paraphrase", {"pairs": PAIRS, "mode": mode}).json()
        assert result["windowed"] == 2
        assert np.allclose(result["results"], whole.paraphrase(PAIRS, mode=mode), atol=1e-5)
    turned = windows.post("/predict/turned", {"inputs": PAIRS}).json()["results"]
    found = [row["probabilities"] for row in turned]
    assert np.abs(np.array(found) - whole.predictions("turned", PAIRS)).max() < 1e-5


def test_windows_of_one_text_are_encoded_in_several_batches(serve_model: Any, whole: Model) -> None:
    server = serve_model(whole, long_inputs="windows", batch_tokens=48)
    body = {"input": TEXTS, "model": whole.name}
    answer = server.post("/v1/embeddings", body)
    assert answer.headers["x-tercet-windowed"] == "2"
    found = [row["embedding"] for row in answer.json()["data"]]
    assert np.abs(np.array(found) - whole.embed(TEXTS)).max() < 1e-5
    # All tokens that are read are counted, those that windows share twice.
    assert answer.json()["usage"]["total_tokens"] > 200


def test_a_request_may_truncate_or_refuse(windows: Any, model: Model) -> None:
    answer = windows.post("/embed", {"inputs": TEXTS, "truncate": True})
    assert answer.headers["x-tercet-truncated"] == "2"
    assert np.abs(np.array(answer.json()) - model.embed(TEXTS)).max() < 1e-5
    assert windows.post("/embed", {"inputs": TEXTS, "truncate": False}).status_code == 413


def test_a_truncating_server_says_how_many(server: Any) -> None:
    answer = server.post("/embed", {"inputs": TEXTS})
    assert answer.headers["x-tercet-truncated"] == "2"
    assert "x-tercet-windowed" not in answer.headers
    assert "x-tercet-truncated" not in server.post("/embed", {"inputs": ["a film"]}).headers


def test_token_ids_have_windows_too(windows: Any, whole: Model) -> None:
    ids = [[5 + place % 40 for place in range(200)], [7, 8]]
    answer = windows.post("/embed", {"inputs": ids})
    assert answer.status_code == 200
    assert answer.headers["x-tercet-windowed"] == "1"
    short = windows.post("/embed", {"inputs": ids[1]}).json()
    assert np.abs(np.array(answer.json()[1]) - np.array(short[0])).max() < 1e-6


def test_what_is_longer_than_the_queue_is_refused(windows: Any) -> None:
    answer = windows.post("/embed", {"inputs": ["a film . " * 9000]})
    assert answer.status_code == 413
    assert "the queue holds" in answer.json()["error"]
