from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from tercet.model import Model
from tercet.serve.keys import Keys

TEXTS = ["a film that is worth a look", "dull", "", "The plot is long. " * 30]


def client_of(server: Any, key: str = "any", retries: int = 0) -> openai.OpenAI:
    # The system's proxies are none of this test's business.
    web = httpx.Client(trust_env=False)
    return openai.OpenAI(
        base_url=f"{server.url}/v1", api_key=key, max_retries=retries, http_client=web
    )


@pytest.fixture(scope="module")
def client(server: Any) -> openai.OpenAI:
    return client_of(server)


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_the_official_client_gets_the_models_vectors(
    client: openai.OpenAI, model: Model, form: Any
) -> None:
    options = {} if form is None else {"encoding_format": form}
    result = client.embeddings.create(model="small", input=TEXTS, **options)
    found = [entry.embedding for entry in result.data]
    if form == "base64":
        assert all(isinstance(text, str) for text in found)
        found = [np.frombuffer(base64.b64decode(text), "<f4") for text in found]
    assert np.abs(np.array(found) - model.embed(TEXTS)).max() < 1e-6
    assert [entry.index for entry in result.data] == [0, 1, 2, 3]
    assert result.model == "small"


def test_usage_counts_tokens(client: openai.OpenAI, model: Model) -> None:
    result = client.embeddings.create(model="small", input=TEXTS)
    tokens = len(model.tokenizer.encode(TEXTS, max_tokens=48).ids)
    assert result.usage.prompt_tokens == result.usage.total_tokens == tokens


def test_token_ids_are_taken_as_word_pieces(client: openai.OpenAI, model: Model) -> None:
    ids = [model.pieces([text]).ids.tolist() for text in TEXTS[:2]]
    several = client.embeddings.create(model="small", input=ids)
    one = client.embeddings.create(model="small", input=ids[0])
    wanted = model.embed(TEXTS[:2])
    assert np.abs(np.array([entry.embedding for entry in several.data]) - wanted).max() < 1e-6
    assert np.abs(np.array(one.data[0].embedding) - wanted[0]).max() < 1e-6


def test_the_models_own_width_may_be_asked_for(client: openai.OpenAI, model: Model) -> None:
    result = client.embeddings.create(model="small", input="a", dimensions=model.width)
    assert len(result.data[0].embedding) == model.width


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [served.id for served in client.models.list()] == ["small"]


def test_errors_arrive_as_the_clients_own_classes(client: openai.OpenAI) -> None:
    create = client.embeddings.create
    with pytest.raises(openai.NotFoundError) as missing:
        create(model="another", input="a")
    assert (missing.value.param, missing.value.code) == ("model", "model_not_found")
    with pytest.raises(openai.UnprocessableEntityError) as narrow:
        create(model="small", input="a", dimensions=7)
    assert narrow.value.param == "dimensions"
    with pytest.raises(openai.UnprocessableEntityError) as unknown:
        create(model="small", input=[[1, 2], [3, 10**6]])
    assert unknown.value.param == "input.1.1"
    with pytest.raises(openai.APIStatusError) as many:
        create(model="small", input=["a"] * 65)
    assert (many.value.status_code, many.value.param) == (413, "input")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("small/nothing")


def test_a_wrong_key_is_an_authentication_error(serve: Any) -> None:
    server = serve(keys=Keys(file=None, listed="right, other"))
    with pytest.raises(openai.AuthenticationError):
        client_of(server, key="wrong").embeddings.create(model="small", input="a")
    assert client_of(server, key="other").embeddings.create(model="small", input="a").data


def test_a_full_queue_is_a_rate_limit_error(serve: Any) -> None:
    began, go = threading.Event(), threading.Event()

    def hold(parts: Any) -> Any:
        began.set()
        go.wait(60)
        raise RuntimeError

    server = serve(queue_inputs=64, encode_with=hold)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(server.post, "/v1/embeddings", {"model": "small", "input": "a"})
        began.wait(60)
        with pytest.raises(openai.RateLimitError) as busy:
            client_of(server).embeddings.create(model="small", input=["a"] * 64)
        assert int(busy.value.response.headers["retry-after"]) >= 1
        go.set()
        assert first.result().status_code == 500
