"""Layouts by name: where files are looked for, and what a recipe's own keys change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.data.examples import read_examples
from tercet.data.folding import fold
from tercet.data.layouts import LAYOUTS, find_split, has_dev, resolve, split_files
from tercet.data.readers import column_names
from tercet.errors import ArgumentError, TercetError
from tercet.specs import DataSpec, TaskSpec


def test_the_course_folder_and_ours_both_work(tmp_path: Path) -> None:
    spec = DataSpec(layout="cs224n-quora")
    (tmp_path / "cs224n").mkdir()
    deep = tmp_path / "cs224n" / "quora-train.csv.xz"
    deep.touch()
    assert find_split(spec, "train", tmp_path) == [deep]
    flat = tmp_path / "quora-train.csv"
    flat.touch()
    assert find_split(spec, "train", tmp_path) == [flat]


def test_keys_of_the_recipe_stand_over_the_layout() -> None:
    spec = DataSpec(layout="cs224n-sst", train=["mine.csv"], label="stars", quoting=False)
    resolved = resolve(spec)
    assert resolved.train == ["mine.csv"]
    assert resolved.dev == ["ids-sst-dev.csv"]
    assert (resolved.texts, resolved.label) == (["sentence"], "stars")
    assert (resolved.quoting, resolved.header, resolved.delimiter) == (False, True, "tab")


def test_a_split_without_files_is_told() -> None:
    spec = DataSpec(layout="quora-positives")
    assert split_files(spec, "dev") == []
    with pytest.raises(TercetError, match="No dev files: layout `quora-positives` has none"):
        find_split(spec, "dev", Path())


def test_a_share_reads_dev_from_the_training_files(tmp_path: Path) -> None:
    spec = DataSpec(layout="cs224n-sst", dev=0.2)
    assert split_files(spec, "dev") == split_files(spec, "train") == ["ids-sst-train.csv"]
    assert has_dev(spec)
    assert resolve(spec).dev_share == 0.2
    assert not has_dev(DataSpec(train=["a.csv"], texts=[1]))


def test_a_missing_data_folder_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"`data` .*absent: no such folder; .*sts-dev\.csv"):
        find_split(DataSpec(layout="cs224n-sts"), "dev", tmp_path / "absent")


def test_a_mistyped_layout_is_told() -> None:
    with pytest.raises(TercetError, match="did you mean `cs224n-sst`"):
        resolve(DataSpec(layout="cs224-sst"))


def test_a_missing_file_names_both_folders(tmp_path: Path) -> None:
    with pytest.raises(TercetError) as caught:
        find_split(DataSpec(layout="cs224n-sts"), "dev", tmp_path)
    assert f"looked in {tmp_path} and {tmp_path / 'cs224n'}" in str(caught.value)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_fits_the_real_files(real_data: Path, name: str) -> None:
    layout = LAYOUTS[name]
    spec = DataSpec(layout=name)
    for split in ("train", "dev"):
        for path in find_split(spec, split, real_data) if split_files(spec, split) else []:
            names = column_names(path, layout.reading)
            for column in [*layout.texts, *([layout.label] if layout.label else [])]:
                assert column in names or int(column) <= len(names)


FIRST_LINES = [6, 10, 12, 14, 16, 18]


def paws(real_data: Path, **block: object) -> TaskSpec:
    head = {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}}
    whole = {"data": {"layout": "paws-split"}, "labels": ["0", "1"], "cross": head, **block}
    return TaskSpec.model_validate(whole)


def test_paws_is_split_by_sentences_the_same_for_every_task(real_data: Path) -> None:
    task = paws(real_data)
    train, dev = (read_examples(task, split, real_data) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (6_000, 2_000)
    sentences = [{fold(text) for column in part.texts for text in column} for part in (train, dev)]
    assert not sentences[0] & sentences[1]
    assert dev.labels is not None
    assert 0.40 < dev.labels.mean() < 0.48
    # These rows are fixed: what was trained on before must never be measured.
    assert (dev.lines[:6].tolist(), dev.lines.sum()) == (FIRST_LINES, 8_054_165)
    unlabelled = paws(real_data, cross=None, labels=None, bi={"objective": {"kind": "simcse"}})
    assert read_examples(unlabelled, "dev", real_data).lines.tolist() == dev.lines.tolist()


def test_a_layout_that_splits_its_rows_makes_no_pairs(real_data: Path) -> None:
    teacher = {"folder": "base", "weight": 1.0}
    data = {"layout": "paws-split", "pairs": {"random": 5}}
    with pytest.raises(TercetError, match="Layout `paws-split` splits dev rows off"):
        read_examples(paws(real_data, teacher=teacher, data=data), "train", real_data)
