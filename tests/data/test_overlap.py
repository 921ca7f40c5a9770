"""What training files tell of evaluation rows, against plain loops over all of them."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.data.components import Components
from tercet.data.folding import fold
from tercet.data.overlap import FileOverlap, find_overlap

HEADER = ("sentence1", "sentence2", "is_duplicate")


def write(path: Path, rows: list[tuple[str, ...]], header: tuple[str, ...] = HEADER) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def overlap(
    tmp_path: Path, train: list[tuple[str, ...]], rows: list[tuple[str, ...]]
) -> FileOverlap:
    files = write(tmp_path / "train.csv", train), write(tmp_path / "dev.csv", rows)
    return find_overlap([files[0]], [files[1]]).files[0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A man plays.", "a man plays"),
        ("Don't  go!", "do n't go"),
        ("-lrb- really -rrb-", "(really)"),
        ("Straße", "STRASSE"),
        ("über_all", "Über all"),
    ],
)
def test_case_spaces_and_punctuation_do_not_matter(first: str, second: str) -> None:
    assert fold(first) == fold(second)


def test_signs_alone_are_kept() -> None:
    assert fold("?!") != fold("...")
    assert fold("1 + 1") == fold("11") != fold("12")


def test_the_four_ways_to_have_seen_a_pair(tmp_path: Path) -> None:
    train = [("a b", "c d", "1"), ("c d", "e f", "1"), ("g", "h", "0"), ("x", "y", "0")]
    rows = [
        ("c d", "a b", "1"),  # exactly, in the other order
        ("A b.", "C d!", "1"),  # folded
        ("a b", "e f", "1"),  # implied
        ("e f", "A B", "0"),  # implied, against its label
        ("g", "x", "0"),  # both texts
        ("g", "new", "0"),
    ]
    found = overlap(tmp_path, train, rows)
    assert found.exact.lines == [2]
    assert found.folded.lines == [2, 3]
    assert found.texts is not None
    assert found.texts.lines == [2, 3, 4, 5, 6]
    assert found.implied is not None
    assert found.implied["1"].lines == [2, 3, 4]
    assert found.implied["0"].lines == [5]
    assert found.labels == {"0": 3, "1": 3}


def test_grades_are_not_duplicates(tmp_path: Path) -> None:
    train = [("a", "b", "1"), ("b", "c", "1.0"), ("c", "d", "4.5")]
    assert overlap(tmp_path, train, [("a", "c", "3.0")]).implied is None


def test_single_texts_are_found_in_rows_of_any_width(tmp_path: Path) -> None:
    single = write(tmp_path / "dev.csv", [("A b!",), ("c d",), ("z",)], ("sentence",))
    pairs = write(tmp_path / "train.csv", [("a b", "c d", "1")])
    (found,) = find_overlap([pairs], [single]).files
    assert (found.exact.lines, found.folded.lines) == ([3], [2, 3])
    assert found.texts is None
    assert found.implied is None


def test_rows_without_a_text_are_counted(tmp_path: Path) -> None:
    found = overlap(tmp_path, [("a", "b", "1"), ("", "c", "1")], [("a", "", "1"), ("a", "b", "1")])
    assert (found.rows, found.bad, found.exact.count) == (1, 1, 1)


PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=14)


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_components_are_what_repeated_joining_gives(pairs: list[tuple[int, int]]) -> None:
    groups = {node: {node} for pair in pairs for node in pair}
    for first, second in pairs:
        joined = groups[first] | groups[second]
        groups |= dict.fromkeys(joined, joined)
    sides = np.array(pairs, np.uint64).reshape(-1, 2).T
    found = Components(sides[0], sides[1])
    every = np.array(list(product(range(14), repeat=2)), np.uint64).T
    expected = [int(b) in groups.get(int(a), ()) for a, b in every.T]
    assert found.connect(every[0], every[1]).tolist() == expected


def test_the_real_files_imply_what_was_counted_by_hand(real_data: Path) -> None:
    course = real_data / "cs224n"
    train = [course / "quora-train.csv", course / "quora-positives.csv"]
    (found,) = find_overlap(train, [course / "quora-dev.csv"]).files
    assert found.exact.count == found.folded.count == 0
    assert found.implied is not None
    assert (found.implied["1.0"].count, found.labels["1.0"]) == (4256, 7585)
    assert (found.implied["0.0"].count, found.labels["0.0"]) == (4, 12627)
    (found,) = find_overlap(train[:1], [course / "quora-dev.csv"]).files
    assert found.implied is not None
    assert round(found.implied["1.0"].count / 7585, 2) == 0.26
    (found,) = find_overlap([course / "sts-train.csv"], [course / "sts-dev.csv"]).files
    assert found.folded.count == 18
    (found,) = find_overlap([course / "ids-sst-train.csv"], [course / "ids-sst-dev.csv"]).files
    assert found.folded.count == 3
