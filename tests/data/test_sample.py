"""The sample: layout, balance, no leaks, the same bytes every time."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from tercet.data.sample import write_sample
from tercet.errors import TercetError

HEADERS = {
    "ids-sst": ["", "id", "sentence", "sentiment"],
    "quora": ["", "id", "sentence1", "sentence2", "is_duplicate"],
    "sts": ["", "id", "sentence1", "sentence2", "similarity"],
}


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))


@pytest.mark.parametrize("name", HEADERS)
def test_layout_is_that_of_cs224n(sample_data, name):
    for split, count in (("train", 240), ("dev", 60)):
        header, *rows = read(sample_data / f"{name}-{split}.csv")
        assert header == HEADERS[name]
        assert [row[0] for row in rows] == [str(index) for index in range(count)]
        assert all(re.fullmatch("[0-9a-f]{25}", row[1]) for row in rows)
        assert len({row[1] for row in rows}) == count
        for row in rows:
            assert len(row) == len(header)
            assert all(re.fullmatch(r"[A-Z].*[.?]", text) for text in row[2:-1])
            assert all("{" not in text and "  " not in text for text in row)


@pytest.mark.parametrize("name", HEADERS)
def test_no_row_of_dev_is_in_train(sample_data, name):
    train, dev = (read(sample_data / f"{name}-{split}.csv")[1:] for split in ("train", "dev"))
    keys = [frozenset(row[2:-1]) for row in train + dev]
    assert len(set(keys)) == len(keys)


def test_labels_are_in_range_and_balanced(sample_data):
    def labels(name: str) -> Counter[str]:
        return Counter(row[-1] for row in read(sample_data / f"{name}-train.csv")[1:])

    sentiment, paraphrase, similarity = labels("ids-sst"), labels("quora"), labels("sts")
    assert set(sentiment) == set("01234")
    assert min(sentiment.values()) > 30
    assert set(paraphrase) == {"0.0", "1.0"}
    assert min(paraphrase.values()) > 90
    assert {float(label) for label in similarity} >= {0.0, 1.0, 2.5, 4.0, 5.0}
    assert all(0 <= float(label) <= 5 for label in similarity)


def test_no_pair_is_one_sentence_twice(sample_data):
    for name in ("quora", "sts"):
        assert all(row[2] != row[3] for row in read(sample_data / f"{name}-train.csv")[1:])


def test_the_same_seed_gives_the_same_bytes(sample_data, tmp_path):
    write_sample(tmp_path / "again")
    write_sample(tmp_path / "other", seed=1)
    for path in sample_data.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
        assert (tmp_path / "other" / path.name).read_bytes() != path.read_bytes()


def test_the_number_of_rows_is_what_was_asked_for(tmp_path):
    write_sample(tmp_path, rows=1000)
    assert len(read(tmp_path / "quora-train.csv")) == 1001
    assert len(read(tmp_path / "quora-dev.csv")) == 251


@pytest.mark.parametrize("rows", [0, 20_000])
def test_too_few_or_too_many_rows_are_refused(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("tercet.data.sample.PATIENCE", 1)
    with pytest.raises(TercetError, match="rows"):
        write_sample(tmp_path, rows=rows)
