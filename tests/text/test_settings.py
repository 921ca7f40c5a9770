"""What the settings say of a tokenizer beside tokenizer.json, against `transformers`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tercet.errors import TercetError
from tercet.text.tokenizer import Tokenizer

TEXTS = [
    "The film",
    "THE FILM naïve Ärger é",
    "漢字かな the film",
    "lowfat film [ENT]the <ctx> LOWFAT films [MASK]",
    " film",
    "film film",
]
FLAGS = {"lstrip": False, "rstrip": False, "normalized": True, "single_word": False}


@pytest.fixture
def folder(tiny_encoder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))


def settle(folder: Path, **changes: Any) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")


def ids(tokenizer: Tokenizer) -> list[list[int]]:
    return [tokenizer.encode([text], max_tokens=60).ids.tolist() for text in TEXTS]


def follows_transformers(folder: Path) -> bool:
    theirs = AutoTokenizer.from_pretrained(folder)(TEXTS)["input_ids"]
    return bool(ids(Tokenizer.load(folder)) == theirs)


@pytest.mark.parametrize(
    "changes",
    [{"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}],
)
def test_bert_reads_texts_as_its_settings_say(folder: Path, changes: dict[str, Any]) -> None:
    before = ids(Tokenizer.load(folder))
    settle(folder, **changes)
    after = Tokenizer.load(folder)
    assert follows_transformers(folder)
    assert ids(after) != before
    after.save(folder.with_name("saved"))
    assert ids(Tokenizer.load(folder.with_name("saved"), is_saved=True)) == ids(after)


def test_a_tokenizer_without_a_kind_ignores_them(folder: Path) -> None:
    before = ids(Tokenizer.load(folder))
    settle(folder, do_lower_case=False, tokenizer_class="PreTrainedTokenizerFast")
    assert follows_transformers(folder)
    assert ids(Tokenizer.load(folder)) == before


@pytest.mark.parametrize("kept", ["tokenizer.json", "vocab.txt"])
def test_added_tokens_of_the_settings_are_matched_whole(folder: Path, kept: str) -> None:
    before = Tokenizer.load(folder)
    other = {"tokenizer.json": "vocab.txt", "vocab.txt": "tokenizer.json"}[kept]
    (folder / other).unlink()
    free = before.vocabulary
    added = {"lowfat": {"special": False}, "[ENT]": {"special": True, "normalized": False}}
    tokens = {
        str(free + place): {"content": name, **FLAGS, **flags}
        for place, (name, flags) in enumerate(added.items())
    }
    settle(folder, added_tokens_decoder=tokens)
    assert follows_transformers(folder)
    after = Tokenizer.load(folder)
    assert {free, free + 1} <= set(ids(after)[3])
    assert after.vocabulary == free + 2


def test_added_tokens_of_old_folders_are_matched_whole(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    free = Tokenizer.load(folder).vocabulary
    added = {"<ctx>": free + 1, "lowfat": free}
    (folder / "added_tokens.json").write_text(json.dumps(added), "utf-8")
    settle(folder, additional_special_tokens=["<ctx>"])
    assert follows_transformers(folder)
    assert {free, free + 1} <= set(ids(Tokenizer.load(folder))[3])


def test_settings_of_what_tercet_saved_change_nothing(folder: Path) -> None:
    before = ids(Tokenizer.load(folder))
    settle(folder, do_lower_case=False)
    assert ids(Tokenizer.load(folder, is_saved=True)) == before


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ({"9999": {"content": "lowfat"}}, "give the added token 'lowfat' the id 9999"),
        ({"x": {"content": "lowfat"}}, "added tokens of .* cannot be read"),
        ({"9": "lowfat"}, "added tokens of .* cannot be read"),
        ([], "added tokens of .* cannot be read"),
    ],
)
def test_added_tokens_that_cannot_be_are_refused(folder: Path, added: Any, message: str) -> None:
    settle(folder, added_tokens_decoder=added)
    with pytest.raises(TercetError, match=message):
        Tokenizer.load(folder)
