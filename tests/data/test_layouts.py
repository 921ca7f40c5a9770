"""Layouts by name: where files are looked for, and what a recipe's own keys change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.data.layouts import LAYOUTS, find_split, has_dev, resolve, split_files
from tercet.data.readers import column_names
from tercet.errors import ArgumentError, TercetError
from tercet.specs import DataSpec


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
