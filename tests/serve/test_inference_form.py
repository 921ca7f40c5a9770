from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from huggingface_hub import InferenceClient, constants

import tercet
from tercet.folders.model_card import ModelInfo
from tercet.model import Model

TEXTS = ["a film that is worth a look", "dull", "good fun", ""]


def test_embed_equals_the_model(server: Any, model: Model) -> None:
    result = server.post("/embed", {"inputs": TEXTS}).json()
    assert np.abs(np.array(result) - model.embed(TEXTS)).max() < 1e-6
    alone = server.post("/embed", {"inputs": TEXTS[0]}).json()
    if model.engine.machine()["device"] == "cpu":
        assert alone == result[:1]
    # A GPU chooses its kernels by the size of a batch.
    assert np.abs(np.array(alone) - np.array(result[:1])).max() < 1e-6


def test_the_hubs_own_client_works_unchanged(
    server: Any, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests keep off the network; this client asks nothing but the server.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    client = InferenceClient(model=f"{server.url}/embed")
    result = client.feature_extraction(TEXTS[0], normalize=True, truncate=True)
    assert np.abs(np.asarray(result) - model.embed(TEXTS[:1])).max() < 1e-6


def test_a_long_answer_is_as_exact_as_a_short_one(serve: Any, model: Model) -> None:
    texts = [f"film {number}" for number in range(100)]
    server = serve(inputs=100)
    wanted = model.embed(texts)
    result = server.post("/embed", {"inputs": texts}).json()
    assert np.abs(np.array(result) - wanted).max() < 1e-6
    result = server.post("/v1/embeddings", {"model": "small", "input": texts}).json()["data"]
    assert np.abs(np.array([entry["embedding"] for entry in result]) - wanted).max() < 1e-6


def test_embed_leaves_vectors_as_pooled_when_asked(server: Any, model: Model) -> None:
    result = np.array(server.post("/embed", {"inputs": TEXTS, "normalize": False}).json())
    assert np.allclose(result, model.engine.vectors(model.pieces(TEXTS)), atol=1e-6)


def test_similarity_gives_cosines(server: Any, model: Model) -> None:
    body = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}}
    result = server.post("/similarity", body).json()
    vectors = model.embed(TEXTS)
    assert np.allclose(result, vectors @ vectors[0], atol=1e-6)


def test_rerank_puts_the_nearest_first(server: Any, model: Model) -> None:
    body = {"query": TEXTS[1], "texts": TEXTS, "return_text": True}
    result = server.post("/rerank", body).json()
    scores = [rank["score"] for rank in result]
    assert scores == sorted(scores, reverse=True)
    assert [rank["text"] for rank in result] == [TEXTS[rank["index"]] for rank in result]
    grades = model.similarity([(TEXTS[1], text) for text in TEXTS], mode="cross") / 5
    assert np.allclose(sorted(grades, reverse=True), scores, atol=1e-5)
    raw = server.post("/rerank", body | {"raw_scores": True}).json()
    assert [rank["index"] for rank in raw] == [rank["index"] for rank in result]
    assert all(
        "text" not in rank for rank in server.post("/rerank", body | {"return_text": False}).json()
    )


def test_info_tells_tasks_modes_and_limits(server: Any, model: Model) -> None:
    result = server.get("/info").json()
    assert result["max_client_batch_size"] == 64
    assert result["max_input_length"] == 48
    assert result["version"] == tercet.__version__
    ours = result["tercet"]
    assert ours["tasks"]["paraphrase"]["modes"] == ["cross", "bi"]
    assert ours["tasks"]["sentiment"]["labels"] == model.tasks["sentiment"].labels
    assert ours["tasks"]["similarity"] == {
        "inputs": "pairs",
        "modes": ["cross", "bi"],
        "labels": None,
        "range": [1, 3],
        "multi_label": False,
        "thresholds": None,
        "examples": [],
    }
    assert (ours["rerank"], ours["index"], ours["width"]) == ("similarity", None, model.width)


def test_info_has_the_models_examples(serve_model: Any, model: Model) -> None:
    examples = {"tone": ["Warm regards."], "paraphrase": [["One.", "Two."]]}
    info = ModelInfo.model_validate({**model.info.model_dump(), "examples": examples})
    tasks = serve_model(Model(model.network, model.tokenizer, info)).get("/info").json()["tercet"]
    assert {name: task["examples"] for name, task in tasks["tasks"].items()} == {
        "sentiment": [], "paraphrase": [["One.", "Two."]], "similarity": [],
        "tone": ["Warm regards."], "turned": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/embed", {"inputs": TEXTS, "prompt_name": "query"}, "prompt_name"),
        ("/embed", {"inputs": TEXTS, "truncation_direction": "left"}, "truncation_direction"),
        ("/embed", {"inputs": TEXTS, "dimensions": 5}, "dimensions"),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, "inputs.sentences"),
        ("/rerank", {"query": "a", "texts": "b"}, "texts"),
    ],
)
def test_what_would_change_the_answer_is_not_ignored(
    server: Any, path: str, body: Any, field: str
) -> None:
    result = server.post(path, body)
    assert (result.status_code, result.json()["field"]) == (422, field)


def test_other_fields_of_that_form_are_let_through(server: Any) -> None:
    assert server.post("/embed", {"inputs": TEXTS, "new_field": 1}).status_code == 200
