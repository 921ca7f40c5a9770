from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.errors import TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.evaluation import evaluate
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, ...]]:
    """How often the encoder was given each row of tokens."""
    seen: Counter[tuple[int, ...]] = Counter()
    vectors = Network.vectors

    def counting(self, tokens):
        ids, ends = tokens.ids.tolist(), tokens.offsets.tolist()
        for start, end in pairwise(ends[: tokens.used + 1]):
            seen[tuple(ids[start:end])] += 1
        return vectors(self, tokens)

    monkeypatch.setattr(Network, "vectors", counting)
    return seen


def test_vectors_and_predictions_are_those_of_the_model(headed) -> None:
    encoded_texts = EncodedTexts(headed)
    texts = ["a good film", "a dull film", "a good film", "A good FILM"]
    assert np.allclose(encoded_texts.embed(texts), headed.embed(texts), atol=1e-6)
    pairs = list(zip(texts, texts[::-1], strict=True))
    for task, mode in [("paraphrase", "cross"), ("paraphrase", "bi"), ("similarity", "cross")]:
        found = encoded_texts.predictions(task, mode, [texts, texts[::-1]])
        assert np.allclose(found, headed.predictions(task, pairs, mode), atol=1e-6)
    found = encoded_texts.predictions("sentiment", "single", [texts])
    assert np.allclose(found, headed.predictions("sentiment", texts), atol=1e-6)
    first, second = headed.embed(texts), headed.embed(texts[::-1])
    assert np.allclose(
        encoded_texts.cosines(texts, texts[::-1]), (first * second).sum(axis=1), atol=1e-6
    )


def test_a_text_is_encoded_once(headed, encoded) -> None:
    encoded_texts = EncodedTexts(headed)
    encoded_texts.embed(["one film", "two films", "one film"])
    encoded_texts.embed(["ONE film", "three films"])
    assert sorted(encoded.values()) == [1, 1, 1]
    encoded_texts.predictions("paraphrase", "cross", [["one film"], ["two films"]])
    encoded_texts.predictions("similarity", "cross", [["one film"], ["two films"]])
    encoded_texts.predictions("paraphrase", "bi", [["one film"], ["two films"]])
    assert sorted(encoded.values()) == [1, 1, 1, 1]


def test_no_text_and_no_pair_is_encoded_twice_across_suites(
    headed, encoded, suite_data: Path
) -> None:
    names, steps = [], []

    @contextmanager
    def phases(what):
        names.append(what)
        yield lambda done, total: steps.append((done, total))

    found = evaluate(headed, suite_data, phases=phases)
    assert list(found.suites) == ["tasks", "sts", "transfer", "robustness", "geometry"]
    assert set(encoded.values()) == {1}
    assert set(names) == {"sentences", "pairs"}
    assert all(done <= total for done, total in steps)


def test_the_document_says_what_was_missing_and_keeps_texts_to_itself(
    headed, suite_data: Path
) -> None:
    found = evaluate(headed, suite_data, suites=["sts", "tasks", "geometry"], name="mine")
    document = found.to_json()
    assert list(document["suites"]) == ["tasks", "sts", "geometry"]
    assert document["model"] == {
        "name": "mine",
        "encoder": "tiny",
        "recipe": None,
        "width": 32,
        "tasks": ["sentiment", "paraphrase", "similarity"],
    }
    missing = {(one["suite"], one["task"]): one["file"] for one in document["missing"]}
    assert missing["sts", "STS12"] == "STS/STS12-en-test/STS.input.MSRpar.txt"
    assert missing["sts", "all sets without leaked pairs"] == "sts-train.csv"
    assert ("sts", "STS-B") not in missing
    answers = {each.task: each for each in found.suites["tasks"].answers()}
    assert {name: len(each.texts[0]) for name, each in answers.items()} == {
        "sentiment": 40,
        "paraphrase": 40,
        "similarity": 40,
    }
    assert answers["sentiment"].texts[0][0] not in str(document)


def test_an_unknown_suite_is_refused_with_the_known_ones(headed, suite_data: Path) -> None:
    with pytest.raises(TercetError, match=r"Unknown suite `stss`.* tasks, sts, transfer"):
        evaluate(headed, suite_data, suites=["tasks", "stss"])


def test_heads_that_need_tokens_are_asked_once_a_row(tiny_encoder: Path, encoded) -> None:
    same = {"data": {"layout": "cs224n-quora"}, "labels": ["different", "paraphrase"]}
    blocks: dict[str, Any] = {
        "turned": {
            **same,
            "cross": {"head": {"kind": "dense-pair"}, "objective": {"kind": "cross-entropy"}},
        },
        "deep": {
            **same,
            "cross": {
                "head": {"kind": "layers", "layers": 1},
                "objective": {"kind": "cross-entropy"},
            },
        },
    }
    tasks = {name: TaskSpec.model_validate(block) for name, block in blocks.items()}
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=tasks)
    model = Model(network, Tokenizer.load(tiny_encoder), info)
    encoded_texts = EncodedTexts(model)
    columns = [["a film", "one dog", "a film"], ["a good film", "two dogs", "a good film"]]
    for task in tasks:
        expected = model.predictions(task, list(zip(*columns, strict=True)))
        encoded.clear()
        for _ in range(2):
            assert np.allclose(
                encoded_texts.predictions(task, "cross", columns), expected, atol=1e-6
            )
        assert set(encoded.values()) <= {1}
