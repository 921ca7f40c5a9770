"""A sketch knows its rows and what they imply, is small, and rarely takes others for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tercet.data.overlap import find_overlap
from tercet.data.sketch import Arrays, HashSet, Sketch, SketchBuilder, hash_row
from tercet.errors import TercetError
from tercet.folders.seen_file import SEEN_FILE, read_seen


def built(rows: list[tuple[str, ...]], duplicates: list[tuple[str, str]] | None = None) -> Sketch:
    builder = SketchBuilder()
    if rows:
        builder.add_rows(list(zip(*rows, strict=True)))
    if duplicates:
        builder.add_duplicates(*zip(*duplicates, strict=True))
    return builder.finish()


def test_rows_are_found_folded_and_in_either_order() -> None:
    sketch = built([("A man plays.", "Someone sings"), ("x", "y")])
    asked = [("someone  sings!", "a MAN plays"), ("x", "Someone sings"), ("y", "x")]
    assert sketch.seen(list(zip(*asked, strict=True))).tolist() == [True, False, True]
    assert sketch.seen([["x"]]).tolist() == [False]
    assert sketch.rows == 2


def test_pairs_that_duplicates_connect_are_implied() -> None:
    chain = [("a", "b"), ("b", "c"), ("d", "e"), ("f", "g"), ("g", "h")]
    sketch = built([("a", "b")], chain)
    asked = [("a", "C!"), ("c", "b"), ("a", "f"), ("h", "f"), ("d", "e"), ("a", "z"), ("y", "z")]
    found = sketch.implied(*zip(*asked, strict=True))
    # d and e are only a pair of two: it is a row, and implies no other.
    assert found.tolist() == [True, True, False, True, False, False, False]


def test_it_reads_back_the_same_and_joins_with_another() -> None:
    one = built([("a",), ("b",)], [("a", "b"), ("b", "c")])
    two = built([("d",)])
    joined = Sketch.from_arrays((one + two).to_arrays())
    assert joined.seen([["a", "b", "c", "d", "e"]]).tolist() == [True, True, False, True, False]
    assert joined.implied(["a", "a"], ["c", "d"]).tolist() == [True, False]
    assert joined.rows == 3


def test_nothing_is_in_an_empty_one() -> None:
    sketch = built([])
    assert sketch.seen([["a"]]).tolist() == [False]
    assert sketch.implied(["a"], ["a"]).tolist() == [False]


def test_hashes_are_the_same_everywhere() -> None:
    assert hash_row(["A cat.", "the dog"]) == hash_row(["The Dog", "a cat"])
    assert hash_row(["a cat"]) == 6895184878838640045


@pytest.mark.parametrize("rows", [1_000, 1_100_000])
def test_a_million_rows_are_small_and_false_alarms_rare(rows: int) -> None:
    generator = np.random.default_rng(3)
    inside = generator.integers(0, 2**64, rows, np.uint64)
    others = generator.integers(0, 2**64, 400_000, np.uint64)
    members, _ = HashSet.of(inside)
    assert (members.places(inside) >= 0).all()
    assert (members.places(others) >= 0).mean() <= 0.001
    assert members.counts.nbytes + members.lows.nbytes <= max(4_000_000 * rows / 1_100_000, 8_000)


def test_it_agrees_with_the_files_themselves(real_data) -> None:
    """Quora's dev rows, by the sketch of the training files and by reading them."""
    from tercet.data.readers import read_rows

    course, builder = real_data / "cs224n", SketchBuilder()
    columns = ["sentence1", "sentence2", "is_duplicate"]

    def read(name: str) -> list[tuple[str, ...]]:
        return [row.values for row in read_rows(course / name, columns) if all(row.values)]

    train = ["quora-train.csv.xz", "quora-positives.csv.xz"]
    for rows in map(read, train):
        builder.add_rows([[row[0] for row in rows], [row[1] for row in rows]])
        same = [row for row in rows if float(row[2]) == 1.0]
        builder.add_duplicates([row[0] for row in same], [row[1] for row in same])
    sketch = builder.finish()
    dev = read("quora-dev.csv")
    first, second = [row[0] for row in dev], [row[1] for row in dev]
    positive = np.array([float(row[2]) == 1.0 for row in dev])
    assert sketch.seen([first, second]).mean() <= 0.001
    implied = sketch.implied(first, second)
    (exact,) = find_overlap([course / n for n in train], [course / "quora-dev.csv"]).files
    assert exact.implied is not None
    assert implied[positive].sum() == pytest.approx(exact.implied["1.0"].count, abs=12)
    assert implied[~positive].sum() <= 0.001 * len(dev)
    assert sum(array.nbytes for array in sketch.to_arrays().values()) < 1_000_000


def damaged(arrays: Arrays, change: str) -> Arrays:
    name = "0.rows.counts"
    if change == "types":
        return arrays | {name: arrays[name].astype(np.int64)}  # type: ignore[dict-item]
    if change == "shape":
        return arrays | {name: arrays[name][None]}
    if change == "claims":
        return arrays | {name: np.full(2**12, 2**16 - 1, np.uint16)}
    if change == "buckets":
        return arrays | {name: np.append(arrays[name], np.uint16([0, 0]))}
    if change == "no buckets":
        return arrays | {name: arrays[name][:0], "0.rows.lows": arrays["0.rows.lows"][:0]}
    return {} if change == "nothing" else {**arrays, "more": arrays[name]}


@pytest.mark.parametrize(
    "change", ["types", "shape", "claims", "buckets", "no buckets", "nothing", "more"]
)
def test_arrays_that_do_not_fit_together_are_refused(tmp_path: Path, change: str) -> None:
    """Before any memory is taken for what they claim: 2^28 rows in a file of 8 KB here."""
    arrays = built([("a",), ("b",)], [("a", "b"), ("b", "c")]).to_arrays()
    save_file(damaged(arrays, change), tmp_path / SEEN_FILE)
    with pytest.raises(TercetError, match=r"seen\.safetensors: cannot be read as a sketch"):
        read_seen(tmp_path)
