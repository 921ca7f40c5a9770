from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from torch import nn

from tercet.errors import TercetError
from tercet.specs import OptimiserSpec
from tercet.training import checkpoint as module
from tercet.training.checkpoint import Checkpoint, Checkpoints, optimiser_tensors, restore_optimiser
from tercet.training.parts import adamw

FILES = ["network.safetensors", "optimiser.safetensors", "surgery.safetensors", "state.json"]


class Said(list[str]):
    """Keeps what it receives."""

    def __call__(self, sentence: str) -> None:
        self.append(sentence)


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def checkpoints(folder: Path, said: Said) -> Checkpoints:
    return Checkpoints(folder, keep=2, say=said)


def make(step: int, *, best: int = 0) -> Checkpoint:
    generator = torch.Generator().manual_seed(step)

    def tensor(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return Checkpoint(
        state={
            "position": {"total": step, "best": 0.1 + step, "best_step": best},
            "journal": 12 * step,
        },
        network={"encoder.weight": tensor(3, 4).T, "heads.bias": tensor(2)},
        optimiser={"encoder.weight/exp_avg": tensor(4, 3), "encoder.weight/step": tensor()},
        surgery={"memory": tensor(2, 2)},
    )


def same(first: Checkpoint | None, second: Checkpoint) -> bool:
    assert first is not None
    groups = ("network", "optimiser", "surgery")
    return first.state == second.state and all(
        same_tensors(getattr(first, group), getattr(second, group)) for group in groups
    )


def same_tensors(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(first[k].equal(second[k]) for k in first)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved_is_loaded_bit_for_bit(checkpoints: Checkpoints, said: Said) -> None:
    checkpoints.save(1, make(1))
    assert same(checkpoints.newest(), make(1))
    assert said == []


def test_none_is_found_where_none_was_saved(checkpoints: Checkpoints, said: Said) -> None:
    assert checkpoints.newest() is None
    assert said == []


def test_only_the_newest_few_are_kept(checkpoints: Checkpoints, folder: Path) -> None:
    for step in (5, 90, 100, 1_000_000):
        checkpoints.save(step, make(step))
        assert same(checkpoints.newest(), make(step))
    assert names(folder) == ["step-00000100", "step-01000000"]


def test_a_step_saved_again_replaces_the_old_one(checkpoints: Checkpoints, folder: Path) -> None:
    checkpoints.save(1, make(1))
    checkpoints.save(1, make(2))
    assert same(checkpoints.newest(), make(2))
    assert names(folder) == ["step-00000001"]


def test_nothing_that_it_writes_is_pickled(checkpoints: Checkpoints, folder: Path) -> None:
    checkpoints.save(1, make(1))
    assert names(folder / "step-00000001") == sorted([*FILES, "manifest.json"])


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def spoil(content: bytes) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        file.write_bytes(content)

    return write


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "truncated": truncate,
    "empty": spoil(b""),
    "missing": Path.unlink,
    "flipped": flip,
    "garbage": spoil(b"\xff\x00garbage"),
    "list": spoil(b"[]"),
    "number": spoil(b"7"),
    "object": spoil(b"{}"),
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("file", [*FILES, "manifest.json"])
def test_damage_is_found_and_said_and_the_one_before_is_used(
    checkpoints: Checkpoints, folder: Path, said: Said, file: str, kind: str
) -> None:
    checkpoints.save(1, make(1))
    checkpoints.save(2, make(2))
    DAMAGE[kind](folder / "step-00000002" / file)
    assert same(checkpoints.newest(), make(1))
    assert len(said) == 1
    assert said[0].startswith("checkpoint step-00000002 is damaged (")
    assert said[0].endswith("; trying the one before it.")


def test_a_folder_that_lost_everything_is_passed_over(
    checkpoints: Checkpoints, folder: Path, said: Said
) -> None:
    checkpoints.save(1, make(1))
    (folder / "step-00000002").mkdir()
    assert same(checkpoints.newest(), make(1))
    assert len(said) == 1


def test_where_all_are_damaged_there_is_none(
    checkpoints: Checkpoints, folder: Path, said: Said
) -> None:
    for step in (1, 2):
        checkpoints.save(step, make(step))
        truncate(folder / f"step-{step:08d}" / "network.safetensors")
    assert checkpoints.newest() is None
    assert [sentence.split()[1] for sentence in said] == ["step-00000002", "step-00000001"]


def full_disk(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_in_rust(*_: Any, **__: Any) -> None:
    raise SafetensorError("Error while serializing: I/O error: No space left on device")


def half_written(tensors: dict[str, torch.Tensor], file: Path) -> None:
    Path(file).write_bytes(b"half")
    full_disk()


@pytest.mark.parametrize(
    ("where", "name", "fails"),
    [
        (module, "save_file", full_disk),
        (module, "save_file", full_disk_in_rust),
        (module, "save_file", half_written),
        (os, "fsync", full_disk),
        (Path, "write_bytes", full_disk),
        (Path, "rename", full_disk),
    ],
    ids=["save", "save-rust", "save-half", "sync", "json", "rename"],
)
@pytest.mark.parametrize("best", [False, True])
def test_a_full_disk_leaves_the_older_one_and_nothing_half_written(
    checkpoints: Checkpoints,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    name: str,
    fails: Callable[..., None],
    best: bool,
) -> None:
    network = nn.Linear(2, 2)
    checkpoints.save(1, make(1))
    checkpoints.save_best(1, {}, network)

    def save() -> None:
        if best:
            checkpoints.save_best(2, {}, network)
        else:
            checkpoints.save(2, make(2))

    with monkeypatch.context() as patch:
        patch.setattr(where, name, fails)
        with pytest.raises(TercetError, match=r"could not be written \(.*No space left") as caught:
            save()
    assert ("best-00000002" if best else "step-00000002") in str(caught.value)
    assert names(folder) == ["best-00000001", "step-00000001"]
    assert same(checkpoints.newest(), make(1))
    assert same_tensors(checkpoints.best(1), network.state_dict())
    checkpoints.save(2, make(2))
    assert same(checkpoints.newest(), make(2))


def test_what_a_kill_left_behind_is_never_read_and_soon_gone(
    checkpoints: Checkpoints, folder: Path, said: Said
) -> None:
    checkpoints.save(1, make(1))
    shutil.copytree(folder / "step-00000001", folder / ".step-00000007.abcd.tercet-tmp")
    assert same(checkpoints.newest(), make(1))
    assert said == []
    checkpoints.save(2, make(2))
    assert names(folder) == ["step-00000001", "step-00000002"]


def test_the_best_is_kept_beside_the_newest(checkpoints: Checkpoints, folder: Path) -> None:
    networks = {step: nn.Linear(2, 2) for step in range(1, 6)}
    for step, network in networks.items():
        checkpoints.save(step, make(step))
        if step in (1, 2):
            checkpoints.save_best(step, {"score": step / 10}, network)
    assert names(folder) == ["best-00000002", "step-00000004", "step-00000005"]
    assert same_tensors(checkpoints.best(2), networks[2].state_dict())
    assert json.loads((folder / "best-00000002" / "state.json").read_text()) == {"score": 0.2}
    assert same(checkpoints.newest(), make(5))


def test_the_best_of_a_checkpoint_is_kept_with_it(checkpoints: Checkpoints, folder: Path) -> None:
    for step, best in ((2, 1), (4, 3), (6, 5)):
        checkpoints.save_best(best, {}, nn.Linear(2, 2))
        checkpoints.save(step, make(step, best=best))
    assert checkpoints.best(3).keys() == checkpoints.best(5).keys()
    (folder / "step-00000006" / "state.json").write_text("[")
    checkpoints.save_best(7, {}, nn.Linear(2, 2))
    assert names(folder) == ["best-00000003", "best-00000007", "step-00000004", "step-00000006"]


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("file", ["network.safetensors", "manifest.json"])
def test_a_damaged_best_is_an_error(
    checkpoints: Checkpoints, folder: Path, file: str, kind: str
) -> None:
    checkpoints.save_best(3, {}, nn.Linear(2, 2))
    DAMAGE[kind](folder / "best-00000003" / file)
    with pytest.raises(TercetError, match="best-00000003: the best checkpoint is damaged"):
        checkpoints.best(3)


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.idle = nn.Linear(3, 2), nn.Linear(3, 2)


def step(network: Two, optimiser: torch.optim.Optimizer, seed: int, *, idle: bool = False) -> None:
    inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
    optimiser.zero_grad()
    loss = network.used(inputs).square().sum()
    torch.autograd.backward(loss + network.idle(inputs).square().sum() if idle else loss)
    optimiser.step()


def test_an_optimiser_goes_on_bit_for_bit(checkpoints: Checkpoints) -> None:
    """A parameter that has had no gradient yet has no moments, before and after."""
    spec = OptimiserSpec(lr=0.01, head_lr=None)
    network = Two()
    optimiser = adamw(network.named_parameters(), spec)
    for seed in range(3):
        step(network, optimiser, seed)
    moments = optimiser_tensors(network, optimiser)
    assert {name.split(".")[0] for name in moments} == {"used"}
    assert {name.rpartition("/")[2] for name in moments} == {"step", "exp_avg", "exp_avg_sq"}
    checkpoints.save(3, Checkpoint({}, network.state_dict(), moments, {}))

    stored = checkpoints.newest()
    assert stored is not None
    resumed = Two()
    resumed.load_state_dict(stored.network)
    again = adamw(resumed.named_parameters(), spec)
    restore_optimiser(resumed, again, stored.optimiser)
    assert same_tensors(optimiser_tensors(resumed, again), moments)
    for seed in range(3, 7):
        step(network, optimiser, seed, idle=seed > 4)
        step(resumed, again, seed, idle=seed > 4)
    assert same_tensors(resumed.state_dict(), network.state_dict())
    assert same_tensors(optimiser_tensors(resumed, again), optimiser_tensors(network, optimiser))
    assert torch.equal(again.state[resumed.idle.weight]["step"], torch.tensor(2.0))


def test_an_optimiser_that_has_not_stepped_is_kept_too(checkpoints: Checkpoints) -> None:
    network = Two()
    optimiser = adamw(network.named_parameters(), OptimiserSpec())
    tensors = optimiser_tensors(network, optimiser)
    checkpoints.save(0, Checkpoint({}, network.state_dict(), tensors, {}))
    stored = checkpoints.newest()
    assert stored is not None
    assert stored.optimiser == stored.surgery == {}
    restore_optimiser(network, optimiser, stored.optimiser)
    assert not optimiser.state
