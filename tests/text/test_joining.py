"""Texts that are encoded joined have the ids that each has alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from tercet.text.joining import Separator, flat_ids, separator_of
from tercet.text.tokenizer import Tokenizer

WORDS = st.sampled_from(["the", "film", "Guitar", "?", "😀", "ÄÖ", "\u0301", "##ing", "[MASK]"])
TEXTS = st.lists(st.one_of(st.text(max_size=20), st.lists(WORDS).map(" ".join)), min_size=2)


@pytest.fixture(scope="module", params=["tiny_encoder", "tiny_mpnet"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    folder: Path = request.getfixturevalue(request.param)
    return Tokenizer.load(folder)


def separator(tokenizer: Tokenizer) -> Separator:
    found = separator_of(tokenizer._backend)
    assert found is not None
    return found


def check(tokenizer: Tokenizer, texts: list[str], *, size: int) -> None:
    joined = separator(tokenizer).ids_of(texts, tokenizer._encode, size=size)
    alone = flat_ids(tokenizer._encode(texts))
    for found, right in zip(joined, alone, strict=True):
        assert found.dtype == right.dtype
        assert np.array_equal(found, right)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS, size=st.integers(1, 5))
def test_joined_texts_have_the_ids_of_each(
    tokenizer: Tokenizer, texts: list[str], size: int
) -> None:
    check(tokenizer, texts, size=size)


def test_texts_may_contain_the_separator(tokenizer: Tokenizer) -> None:
    token = separator(tokenizer).token
    texts = ["one", f"{token} two", "three", token, "", f"four{token}", token[:2], token[2:]]
    for size in (1, 2, 3, 8):
        check(tokenizer, texts, size=size)


def test_many_texts_are_joined_in_pieces(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"the film {number}" for number in range(200)] + ["\ud800 half a pair"]
    calls: list[int] = []
    encode = tokenizer._encode
    monkeypatch.setattr(tokenizer, "_encode", lambda some: calls.append(len(some)) or encode(some))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    joined = tokenizer.pieces(texts, limit=3)
    assert calls == [5]  # of at most 50 texts each
    monkeypatch.setattr(tokenizer, "_separator", None)
    assert joined.is_equal(tokenizer.pieces(texts, limit=3))
    assert joined.lengths.tolist() == tokenizer.pieces(texts, limit=3).lengths.tolist()


def words(*special: AddedToken, **options: str) -> Backend:
    """A tokenizer of a few words with special tokens; options: of its unknown token."""
    names = ["[UNK]", "a", "b", "B", "c", "d", "e", "."]
    backend = Backend(models.WordLevel({name: id_ for id_, name in enumerate(names)}, "[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.add_special_tokens(list(special))
    return backend


def test_a_separator_is_a_special_token_that_nothing_else_gives() -> None:
    found = separator_of(words(AddedToken("[UNK]"), AddedToken("[SEP]")))
    assert found is not None
    assert found.token == "[SEP]"


@pytest.mark.parametrize(
    "special",
    [
        [],
        [AddedToken("[UNK]")],
        [AddedToken("[SEP]", lstrip=True)],
        [AddedToken("[SEP]", rstrip=True)],
        [AddedToken("[SEP]", normalized=True)],
        [AddedToken("sep")],
    ],
)
def test_without_a_safe_token_texts_are_encoded_one_by_one(special: list[AddedToken]) -> None:
    assert separator_of(words(*special)) is None


def test_a_tokenizer_that_treats_the_first_word_differently_has_no_separator() -> None:
    backend = words(AddedToken("[SEP]"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.model = models.WordLevel({"[UNK]": 0, "▁a": 1, "a": 2, "▁b": 3, "B": 4}, "[UNK]")
    assert separator_of(backend) is None
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    assert separator_of(backend) is not None
