"""What is stored comes back memory-mapped, whole, and is made again when it is damaged."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from tercet.data import cache
from tercet.data.cache import Stored, cached
from tercet.errors import TercetError

KEY = "0123456789abcdef" * 4


def stored() -> Stored:
    arrays = {"ids": np.arange(1000, dtype=np.int32), "none": np.zeros(0, np.float32)}
    return Stored(arrays, {"skipped": [[0, 2577, "label", "", "no label"]]})


class Making:
    """Counts how often something had to be made."""

    def __init__(self, what: Callable[[], Stored] = stored) -> None:
        self.what = what
        self.times = 0

    def __call__(self) -> Stored:
        self.times += 1
        return self.what()


def check(found: Stored) -> None:
    expected = stored()
    assert found.notes == expected.notes
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype


def test_made_once_and_mapped(tmp_path: Path) -> None:
    making = Making()
    for _ in range(3):
        found = cached(tmp_path / "new" / "folder", KEY, making)
        check(found)
        assert not found.arrays["ids"].flags.writeable
        assert isinstance(found.arrays["ids"].base, np.memmap)
    assert making.times == 1
    cached(tmp_path / "new" / "folder", KEY[::-1], making)
    assert making.times == 2


def truncate(entry: Path) -> None:
    content = (entry / "ids.npy").read_bytes()
    (entry / "ids.npy").write_bytes(content[:-4])


def flip(entry: Path) -> None:
    content = bytearray((entry / "ids.npy").read_bytes())
    content[-1] ^= 1
    (entry / "ids.npy").write_bytes(bytes(content))


def remove_array(entry: Path) -> None:
    (entry / "ids.npy").unlink()


def remove_manifest(entry: Path) -> None:
    (entry / cache.MANIFEST).unlink()


def change_manifest(entry: Path) -> None:
    path = entry / cache.MANIFEST
    path.write_text(path.read_text("utf-8").replace("2577", "2578"), "utf-8")


def empty_manifest(entry: Path) -> None:
    (entry / cache.MANIFEST).write_text("", "utf-8")


def other_manifest(entry: Path) -> None:
    (entry / "manifest").write_text(f"{cache._digest('[]')}\n[]\n", "utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        *(truncate, flip, remove_array, remove_manifest, change_manifest, empty_manifest),
        other_manifest,
    ],
)
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    making = Making()
    cached(tmp_path, KEY, making)
    damage(tmp_path / KEY)
    for _ in range(2):
        check(cached(tmp_path, KEY, making))
    assert making.times == 2
    assert [path.name for path in tmp_path.iterdir()] == [KEY]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> Stored:
        raise TercetError("bad row")

    with pytest.raises(TercetError, match="bad row"):
        cached(tmp_path, KEY, fail)
    with pytest.raises(ValueError, match="pickle"):
        cached(tmp_path, KEY, lambda: Stored({"ids": np.array([object()])}, None))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TercetError, match=r"cache cannot be written: .*TERCET_CACHE"):
        cached(tmp_path / "file", KEY, stored)


def build_at_once(folder: Path, barrier: Barrier, made: Synchronized[int]) -> None:
    def make() -> Stored:
        with made.get_lock():
            made.value += 1
        time.sleep(0.2)  # the others come meanwhile
        return stored()

    barrier.wait(timeout=30)
    check(cached(folder, KEY, make))


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("locks", [True, False])
def test_of_processes_that_want_the_same_one_makes_it(
    tmp_path: Path, damaged: bool, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if damaged:
        cached(tmp_path, KEY, stored)
        flip(tmp_path / KEY)
    if not locks:

        def no_locks(self: FileLock) -> None:
            raise NotImplementedError

        monkeypatch.setattr(FileLock, "acquire", no_locks)
    context = multiprocessing.get_context("fork")
    barrier, made = context.Barrier(4), context.Value("i", 0)
    workers = [
        context.Process(target=build_at_once, args=(tmp_path, barrier, made)) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    # Without locks all make it, and do not disturb each other.
    assert made.value == 1 if locks else made.value > 1
    assert [path.name for path in tmp_path.iterdir()] == [KEY]
    making = Making()
    check(cached(tmp_path, KEY, making))
    assert making.times == 0


def build_slowly(folder: Path, barrier: Any) -> None:
    """What a process with many neighbours does: time passes between reading and removing."""
    rng = random.Random(os.getpid())
    look = cache._open

    def look_slowly(folder: Path) -> Stored | None:
        time.sleep(rng.random() * 0.02)
        entry = look(folder)
        time.sleep(rng.random() * 0.02)
        return entry

    cache._open = look_slowly
    barrier.wait(timeout=30)
    check(cached(folder, KEY, stored))


def test_many_processes_repair_a_damaged_entry_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None takes away what another has just written."""

    def no_locks(self: FileLock) -> None:
        raise NotImplementedError

    monkeypatch.setattr(FileLock, "acquire", no_locks)
    context = multiprocessing.get_context("fork")
    for round_ in range(4):
        folder = tmp_path / str(round_)
        cached(folder, KEY, stored)
        flip(folder / KEY)
        barrier = context.Barrier(8)
        workers = [context.Process(target=build_slowly, args=(folder, barrier)) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(timeout=60)
        assert [worker.exitcode for worker in workers] == [0] * 8
        assert [path.name for path in folder.iterdir()] == [KEY]


def test_what_another_process_has_just_repaired_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(tmp_path, KEY, stored)
    shutil.copytree(tmp_path / KEY, tmp_path / "good")
    flip(tmp_path / KEY)
    good = (tmp_path / "good").stat().st_ino
    look = cache._open
    looks = []

    def look_and_repair(folder: Path) -> Stored | None:
        entry = look(folder)
        looks.append(folder)
        if len(looks) == 3:  # after the one without and the one with a lock
            shutil.rmtree(tmp_path / KEY)
            (tmp_path / "good").rename(tmp_path / KEY)
        return entry

    monkeypatch.setattr(cache, "_open", look_and_repair)
    check(cached(tmp_path, KEY, stored))
    assert (tmp_path / KEY).stat().st_ino == good
    assert [path.name for path in tmp_path.iterdir()] == [KEY]
