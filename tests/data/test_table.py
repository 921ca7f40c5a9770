"""A split as word pieces: the same tokens as from the texts, from memory or from the cache."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tercet.data import table as table_module
from tercet.data.examples import read_examples
from tercet.data.layouts import Split
from tercet.data.table import TaskTable, build_table, load_table
from tercet.errors import TercetError
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Tokens

MakeTask = Callable[..., TaskSpec]
LIMIT = 24
ROWS = np.array([5, 0, 17, 5])


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> Tokenizer:
    return Tokenizer.load(tiny_encoder)


def assert_same(found: Tokens, expected: Tokens) -> None:
    for field in ("ids", "types", "offsets"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    assert (found.longest, found.truncated) == (expected.longest, expected.truncated)


@pytest.mark.parametrize("max_tokens", [8, LIMIT])
@pytest.mark.parametrize("via_cache", [False, True])
def test_tokens_of_each_mode(
    make_task: MakeTask,
    sample_data: Path,
    tokenizer: Tokenizer,
    tmp_path: Path,
    encode_pairs: Callable[..., Tokens],
    via_cache: bool,
    max_tokens: int,
) -> None:
    task = make_task("paraphrase", layout="cs224n-quora")
    examples = read_examples(task, "train", sample_data)
    if via_cache:
        table = load_table(task, "train", sample_data, tokenizer, limit=LIMIT, cache_dir=tmp_path)
    else:
        table = build_table(examples, tokenizer, limit=LIMIT)
    first, second = ([texts[row] for row in ROWS] for texts in examples.texts)
    singles = [tokenizer.encode(texts, max_tokens=max_tokens) for texts in (first, second)]
    pairs = list(zip(first, second, strict=True))
    expected = {
        "single": singles[0],
        "bi": Tokens.concat(singles),
        "cross": encode_pairs(tokenizer, pairs, max_tokens=max_tokens),
    }
    for mode, tokens in expected.items():
        found = table.tokens(ROWS, mode=mode, template=tokenizer.template, max_tokens=max_tokens)
        assert_same(found, tokens)
    np.testing.assert_array_equal(table.labels, examples.labels)
    assert table.where(3) == f"{sample_data / 'quora-train.csv'} line 5"
    assert len(table) == len(examples) == 240


def test_a_large_table_is_tokenised_in_chunks(
    make_task: MakeTask,
    sample_data: Path,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    examples = read_examples(make_task("similarity", layout="cs224n-sts"), "train", sample_data)
    whole = build_table(examples, tokenizer, limit=LIMIT)
    monkeypatch.setattr(table_module, "CHUNK", 100)
    calls: list[tuple[int, int]] = []
    parts = build_table(
        examples, tokenizer, limit=LIMIT, progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(done, 480) for done in (100, 200, 240, 340, 440, 480)]
    for one, other in zip(whole.columns, parts.columns, strict=True):
        for field in ("ids", "offsets", "lengths"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


def test_cross_needs_two_columns(
    make_task: MakeTask, sample_data: Path, tokenizer: Tokenizer
) -> None:
    examples = read_examples(make_task("sentiment", layout="cs224n-sst"), "dev", sample_data)
    table = build_table(examples, tokenizer, limit=LIMIT)
    with pytest.raises(TercetError, match="two text columns"):
        table.tokens(ROWS, mode="cross", template=tokenizer.template, max_tokens=16)


class Cached:
    """Loads one split and tells whether the cache had it."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.built = False

    def load(
        self, make_task: MakeTask, data_dir: Path, *, limit: int = 16, **data: object
    ) -> TaskTable:
        self.built = False

        def progress(done: int, total: int) -> None:
            self.built = True

        task = make_task("paraphrase", **{"layout": "cs224n-quora", "on_bad_row": "skip", **data})
        return load_table(
            task,
            "dev",
            data_dir,
            self.tokenizer,
            limit=limit,
            cache_dir=self.folder,
            progress=progress,
        )


def test_the_cache_goes_by_content(
    make_task: MakeTask,
    tmp_path: Path,
    sample_data: Path,
    tokenizer: Tokenizer,
    tiny_mpnet: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(sample_data, here)
    with (here / "quora-dev.csv").open("a", encoding="utf-8") as file:
        file.write("99\tabc\tno label here\tnone at all\t\n")
    shutil.copytree(here, there / "cs224n")
    store = Cached(tmp_path / "cache", tokenizer)

    store.load(make_task, here)
    assert store.built
    elsewhere = store.load(make_task, there)
    assert not store.built
    (bad,) = elsewhere.skipped
    assert (bad.file, bad.line) == (str(there / "cs224n" / "quora-dev.csv"), 62)
    assert bad.reason == "no label in column `is_duplicate`"

    store.load(make_task, here, limit=17)
    assert store.built
    assert len(store.load(make_task, here, texts=["sentence2", "sentence1"])) == 60
    assert store.built
    store.tokenizer = Tokenizer.load(tiny_mpnet)
    store.load(make_task, here)
    assert store.built
    store.tokenizer = tokenizer
    store.load(make_task, here)
    assert not store.built
    with (here / "quora-dev.csv").open("a", encoding="utf-8") as file:
        file.write("100\tdef\tone more\tonce more\t1.0\n")
    assert len(store.load(make_task, here)) == 61
    assert store.built


def test_the_cache_tells_both_sides_of_a_share(
    make_task: MakeTask, tmp_path: Path, sample_data: Path, tokenizer: Tokenizer
) -> None:
    def rows(split: Split, share: float) -> list[int]:
        task = make_task("paraphrase", layout="cs224n-quora", dev=share)
        table = load_table(task, split, sample_data, tokenizer, limit=16, cache_dir=tmp_path)
        assert table.lines.tolist() == read_examples(task, split, sample_data).lines.tolist()
        return table.lines.tolist()

    once = [rows("train", 0.2), rows("dev", 0.2), rows("dev", 0.1)]
    assert [len(lines) for lines in once] == [192, 48, 24]
    assert not set(once[0]) & set(once[1])
    assert once == [rows("train", 0.2), rows("dev", 0.2), rows("dev", 0.1)]


def test_the_cache_tells_pairs_of_files_from_sentences_to_pair(
    make_task: MakeTask, tmp_path: Path, sample_data: Path, tokenizer: Tokenizer
) -> None:
    def columns(**pairs: object) -> int:
        task = make_task("taught", layout="cs224n-sts", **pairs)
        table = load_table(task, "train", sample_data, tokenizer, limit=16, cache_dir=tmp_path)
        return len(table.columns)

    assert [columns(), columns(pairs={"random": 3}), columns()] == [2, 1, 2]
