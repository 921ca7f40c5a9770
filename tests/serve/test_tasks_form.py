from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

TEXTS = [
    "a film that is worth a look",
    "dull",
    "",
    "The plot is long, and the cast is lost in it: an hour too much. " * 5,
    "dull",
    "good 😀 fun",
]
PAIRS = [[TEXTS[0], TEXTS[1]], [TEXTS[3], TEXTS[5]], ["same", "same"], ["", TEXTS[0]]]


def test_sentiment_equals_the_model(server: Any, model: Model) -> None:
    result = server.post("/sentiment", {"texts": TEXTS}).json()
    assert (result["task"], result["mode"], result["truncated"]) == ("sentiment", "single", 1)
    for found, wanted in zip(result["results"], model.sentiment(TEXTS), strict=True):
        assert (found["label"], found["name"]) == (wanted.label, wanted.name)
        assert np.allclose(found["probabilities"], wanted.probabilities, atol=1e-6)


def test_one_text_needs_no_list(server: Any) -> None:
    one = server.post("/sentiment", {"texts": TEXTS[0]}).json()
    assert one == server.post("/sentiment", {"texts": TEXTS[:1]}).json()


@pytest.mark.parametrize("mode", ["cross", "bi"])
def test_pairs_equal_the_model_in_both_modes(server: Any, model: Model, mode: Any) -> None:
    for path, ask in [("/paraphrase", model.paraphrase), ("/similarity/pairs", model.similarity)]:
        result = server.post(path, {"pairs": PAIRS, "mode": mode}).json()
        assert result["mode"] == mode
        assert np.allclose(result["results"], ask(PAIRS, mode=mode), atol=1e-5)


def test_the_most_exact_mode_answers_when_none_is_asked_for(server: Any) -> None:
    assert server.post("/paraphrase", {"pairs": PAIRS}).json()["mode"] == "cross"


@pytest.mark.parametrize("task", ["sentiment", "tone", "paraphrase", "turned"])
def test_predict_answers_any_task_with_classes(server: Any, model: Model, task: str) -> None:
    inputs: Any = TEXTS if model.resolve_mode(task) == "single" else PAIRS
    result = server.post(f"/predict/{task}", {"inputs": inputs}).json()
    for found, wanted in zip(result["results"], model.predict(task, inputs), strict=True):
        assert (found["label"], found["name"]) == (wanted.label, wanted.name)
        assert np.allclose(found["probabilities"], wanted.probabilities, atol=1e-6)


def test_predict_gives_grades_on_the_tasks_own_range(server: Any, model: Model) -> None:
    result = server.post("/predict/similarity", {"inputs": PAIRS, "mode": "bi"}).json()
    wanted = model.predict("similarity", PAIRS, "bi")
    assert np.allclose(result["results"], wanted, atol=1e-5)


def test_a_long_request_keeps_its_order(server: Any, model: Model) -> None:
    texts = [" ".join(["film"] * (1 + number * 7 % 40)) for number in range(64)]
    result = server.post("/sentiment", {"texts": texts}).json()
    wanted = [found.probabilities for found in model.sentiment(texts)]
    assert np.allclose([r["probabilities"] for r in result["results"]], wanted, atol=1e-6)


@pytest.mark.parametrize("mode", ["cross", "bi"])
def test_many_pairs_keep_their_order(server: Any, model: Model, mode: Any) -> None:
    texts = [" ".join(["film"] * (1 + number * 7 % 30)) for number in range(64)]
    pairs = [[text, f"{text} {number}"] for number, text in enumerate(reversed(texts))]
    result = server.post("/predict/similarity", {"inputs": pairs, "mode": mode}).json()
    assert np.allclose(result["results"], model.predict("similarity", pairs, mode), atol=1e-5)


@pytest.mark.parametrize(
    ("path", "body", "field", "words"),
    [
        ("/sentiment", {"texts": ["a", 3]}, "texts.1", "is 3"),
        ("/sentiment", {}, "texts", "missing"),
        ("/sentiment", {"texts": []}, "texts", "at least 1"),
        ("/sentiment", {"texts": "a", "mode": "cross"}, "mode", "cross"),
        ("/paraphrase", {"pairs": [["a", "b"], ["a"]]}, "pairs.1.1", "missing"),
        ("/paraphrase", {"pairs": [["a", "b", "c"]]}, "pairs.0", "2 items"),
        ("/paraphrase", {"pairs": [["a", "b"]], "mode": "both"}, "mode", "both"),
        ("/predict/turned", {"inputs": [["a", "b"]], "mode": "bi"}, "mode", "no mode `bi`"),
        ("/predict/tone", {"inputs": [["a", "b"]]}, "inputs.0", "reads texts"),
        ("/predict/turned", {"inputs": ["a"]}, "inputs.0", "reads pairs"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(
    server: Any, path: str, body: Any, field: str, words: str
) -> None:
    result = server.post(path, body)
    assert result.status_code == 422
    assert result.json()["field"] == field
    assert words in result.json()["error"]
    assert result.json()["error_type"] == "Validation"


def test_a_task_that_the_model_lacks_is_not_found(server: Any) -> None:
    result = server.post("/predict/irony", {"inputs": ["a"]})
    assert result.status_code == 404
    assert "sentiment" in result.json()["error"]


def test_long_inputs_are_refused_where_that_is_asked(server: Any) -> None:
    long = "film " * 60
    result = server.post("/sentiment", {"texts": ["a", long], "truncate": False})
    assert (result.status_code, result.json()["field"]) == (413, "texts.1")
    assert "62 tokens" in result.json()["error"]
    pairs = {"pairs": [["a", "b"], ["film " * 25, "film " * 25]], "truncate": False}
    assert server.post("/paraphrase", pairs | {"mode": "cross"}).json()["field"] == "pairs.1"
    assert server.post("/paraphrase", pairs | {"mode": "bi"}).status_code == 200
    pairs["pairs"].append(["b", long])
    assert server.post("/paraphrase", pairs | {"mode": "bi"}).json()["field"] == "pairs.2"


TAGS: dict[str, Any] = {
    "data": {"layout": "cs224n-sst"},
    "labels": ["film", "music", "rain"],
    "multi_label": True,
    "single": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
}
NLI: dict[str, Any] = {
    "data": {"layout": "cs224n-quora"},
    "labels": ["entailment", "neutral", "contradiction"],
    "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
    "bi": {
        "head": {"kind": "features", "features": ["u", "v", "absdiff"]},
        "objective": {"kind": "cross-entropy"},
    },
}


@pytest.fixture
def several(tiny_encoder: Path) -> Model:
    """A model of tasks with several labels per text, and with three classes of pairs."""
    blocks = {"tags": TAGS, "sentiment": TAGS, "nli": NLI}
    tasks = {name: TaskSpec.model_validate(block) for name, block in blocks.items()}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
        for parameter in network.heads.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=48, tasks=tasks)
    model = Model(network, Tokenizer.load(tiny_encoder), info)
    middle = model.predictions("tags", TEXTS).mean(axis=0).tolist()
    model.info = info.model_copy(update={"thresholds": {"tags": {"single": middle}}})
    return model


def test_predict_answers_sets_of_labels_by_their_thresholds(several: Model, serve_model) -> None:
    server = serve_model(several)
    result = server.post("/predict/tags", {"inputs": TEXTS}).json()
    wanted = several.predict("tags", TEXTS)
    for found, row in zip(result["results"], wanted, strict=True):
        assert (found["labels"], found["names"]) == (row.labels, row.names)
        assert np.allclose(found["probabilities"], row.probabilities, atol=1e-6)
    assert len({tuple(row.labels) for row in wanted}) > 1
    assert server.get("/info").json()["tercet"]["tasks"]["tags"]["multi_label"] is True
    refused = server.post("/sentiment", {"texts": TEXTS})
    assert (refused.status_code, refused.json()["error_type"]) == (404, "NotFound")
    assert "several labels per text: use /predict" in refused.json()["error"]
    schemas = server.get("/openapi.json").json()["components"]["schemas"]
    assert set(schemas["Labels"]["properties"]) == {"labels", "names", "probabilities"}


@pytest.mark.parametrize("mode", ["cross", "bi"])
def test_predict_answers_three_classes_of_pairs(several: Model, serve_model, mode: Any) -> None:
    server = serve_model(several)
    result = server.post("/predict/nli", {"inputs": PAIRS, "mode": mode}).json()
    for found, wanted in zip(result["results"], several.predict("nli", PAIRS, mode), strict=True):
        assert (found["label"], found["name"]) == (wanted.label, wanted.name)
        assert np.allclose(found["probabilities"], wanted.probabilities, atol=1e-6)
