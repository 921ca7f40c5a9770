from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.errors import TercetError

TEXTS = ["A film that is worth a look", "dull", "", "An hour too long, and then some! " * 9]
OLD = "sentence_transformers.models."


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")


@pytest.fixture
def folder(tiny_encoder: Path, tmp_path: Path) -> Path:
    """A tiny encoder in the old sentence-transformers form."""
    folder = tmp_path / "old"
    shutil.copytree(tiny_encoder, folder)
    describe(folder, ["Transformer", "Pooling", "Normalize"])
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32})
    return folder


def describe(folder: Path, kinds: list[str], prefix: str = OLD) -> None:
    paths = ["", *(f"{place}_{kind}" for place, kind in enumerate(kinds[1:], start=1))]
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": prefix + kind}
        for place, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write(folder / "modules.json", modules)


def theirs(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize("key", ["cls_token", "mean_tokens", "max_tokens"])
def test_pooling_and_longest_text_are_honoured(folder: Path, key: str) -> None:
    settings = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": False}
    write(folder / "1_Pooling" / "config.json", {**settings, f"pooling_mode_{key}": True})
    write(folder / "sentence_bert_config.json", {"max_seq_length": 11, "do_lower_case": False})
    model = tercet.load(folder, device="cpu")
    assert model.info.max_tokens == 11
    assert np.abs(model.embed(TEXTS) - theirs(folder).encode(TEXTS)).max() < 1e-5


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sentence_roberta_config.json", {"max_seq_length": 11}),
        ("sentence_xlm-roberta_config.json", {"max_seq_length": 11, "do_lower_case": False}),
        ("sentence_bert_config.json", {"processor_kwargs": {"model_max_length": 11}}),
        (
            "sentence_bert_config.json",
            {"max_seq_length": 30, "tokenizer_args": {"model_max_length": 11}},
        ),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"max_length": 11}}}),
        (
            "sentence_bert_config.json",
            {"max_seq_length": 30, "processing_kwargs": {"common": {"max_length": 11}}},
        ),
    ],
)
def test_the_longest_text_is_found_wherever_it_is_named(
    folder: Path, name: str, settings: dict[str, Any]
) -> None:
    write(folder / name, settings)
    model = tercet.load(folder, device="cpu")
    assert model.info.max_tokens == 11
    assert np.abs(model.embed(TEXTS) - theirs(folder).encode(TEXTS)).max() < 1e-5


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_the_newest_form_is_read(folder: Path, pooling: str, tmp_path: Path) -> None:
    write(
        folder / "1_Pooling" / "config.json", {"embedding_dimension": 32, "pooling_mode": pooling}
    )
    write(folder / "sentence_bert_config.json", {"max_seq_length": 11})
    reference = theirs(folder)
    reference.save(str(tmp_path / "new"))
    modules = (tmp_path / "new" / "modules.json").read_text("utf-8")
    assert OLD not in modules  # so it is another form
    model = tercet.load(tmp_path / "new", device="cpu")
    assert np.abs(model.embed(TEXTS) - reference.encode(TEXTS)).max() < 1e-5


def test_lower_case_is_honoured(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["normalizer"]["lowercase"] = False
    write(folder / "tokenizer.json", tokenizer)
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    write(folder / "tokenizer_config.json", settings | {"do_lower_case": False})
    shouted = [text.upper() for text in TEXTS]
    observed = tercet.load(folder, device="cpu").embed(shouted)
    write(folder / "sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": True})
    lowered = tercet.load(folder, device="cpu")
    assert (lowered.embed(shouted) == lowered.embed(TEXTS)).all()
    assert np.abs(lowered.embed(shouted) - observed).max() > 1e-3
    lowered.save(folder.with_name("again"))
    again = tercet.load(folder.with_name("again"), device="cpu")
    assert (again.embed(shouted) == lowered.embed(shouted)).all()


def test_a_plain_folder_pools_as_sentence_transformers_would(tiny_mpnet: Path) -> None:
    ours = tercet.load(tiny_mpnet, device="cpu").embed(TEXTS)
    expected = theirs(tiny_mpnet).encode(TEXTS, normalize_embeddings=True)
    assert np.abs(ours - expected).max() < 1e-5


def test_an_encoder_in_a_folder_of_its_own_is_found(folder: Path) -> None:
    expected = tercet.load(folder, device="cpu").embed(TEXTS)
    inner = folder / "0_Transformer"
    inner.mkdir()
    for path in [path for path in folder.iterdir() if path.is_file()]:
        if path.name != "modules.json":
            path.rename(inner / path.name)
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    modules[0]["path"] = "0_Transformer"
    write(folder / "modules.json", modules)
    assert (tercet.load(folder, device="cpu").embed(TEXTS) == expected).all()


@pytest.mark.parametrize(
    ("kinds", "prefix", "message"),
    [
        (["Transformer", "Pooling", "Dense"], OLD, "sentence_transformers.models.Dense"),
        (["Transformer", "Pooling", "Normalize"], "evil.code.", "evil.code.Transformer"),
        (["Transformer", "Normalize"], OLD, "its modules are Transformer, Normalize"),
        (["Pooling", "Transformer"], OLD, "its modules are Pooling, Transformer"),
    ],
)
def test_unknown_modules_are_named(folder: Path, kinds, prefix, message: str) -> None:
    describe(folder, kinds, prefix)
    with pytest.raises(TercetError, match=message):
        tercet.load(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("modules.json", {}, "should hold a list of modules"),
        ("modules.json", [{"type": OLD + "Transformer", "path": "../x"}], "its modules are"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "has pooling lasttoken"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "has pooling cls, mean"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
            "has pooling cls, max",
        ),
        ("sentence_bert_config.json", [], "holds a JSON list; it should be an object"),
        (
            "sentence_bert_config.json",
            {"tokenizer_args": {"do_lower_case": False}},
            "gives the tokenizer `do_lower_case`",
        ),
        ("tokenizer_config.json", {"truncation_side": "left"}, "truncation_side is 'left'"),
        (
            "config_sentence_transformers.json",
            {"prompts": {"query": "query: "}, "default_prompt_name": "query"},
            "puts the prompt `query` before",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused(folder: Path, name, content, message: str) -> None:
    write(folder / name, content)
    with pytest.raises(TercetError, match=message):
        tercet.load(folder)


def test_a_module_may_not_lie_outside(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    modules[1]["path"] = "../elsewhere"
    write(folder / "modules.json", modules)
    with pytest.raises(TercetError, match="should be a folder inside this one"):
        tercet.load(folder)


@pytest.mark.parametrize("limit", ["Infinity", "NaN", "1e400", "-3", "true", '"x"', "[]", "1e30"])
def test_a_limit_that_is_not_one_is_the_encoders_own(folder: Path, limit: str) -> None:
    text = f'{{"max_seq_length": {limit}}}'
    (folder / "sentence_bert_config.json").write_text(text, "utf-8")
    assert tercet.load(folder, device="cpu").info.max_tokens == 64
