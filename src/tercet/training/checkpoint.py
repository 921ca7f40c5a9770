"""Checkpoints that survive a kill: replaced whole, and checked when read.

A checkpoint is a folder of safetensors and one JSON file, with a manifest of sha256 sums. It holds
no random state: randomness in a step depends only on the seed, the step and the rank.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tercet.errors import ArgumentError, TercetError
from tercet.files import parse_json, replace_folder, sha256_of, write_json

_MANIFEST = "manifest.json"
_STATE = "state.json"
_NETWORK = "network.safetensors"
_OPTIMISER = "optimiser.safetensors"
_SURGERY = "surgery.safetensors"
_WHOLE = frozenset({_STATE, _NETWORK, _OPTIMISER, _SURGERY})
_PREFIX = "step-"
_BEST = "best-"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far the run was, the weights, the optimiser's moments by name, and the state of gradient
    surgery."""

    state: dict[str, Any]
    network: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    surgery: dict[str, Tensor]


class KeepsWeights(Protocol):
    """What a loop stores weights with."""

    def save(self, step: int, checkpoint: Checkpoint) -> None: ...
    def save_best(self, step: int, state: Mapping[str, Any], network: nn.Module) -> None: ...
    def best(self, step: int) -> dict[str, Tensor]: ...


class Checkpoints:
    """The checkpoints of a run: the newest few, and the best by dev score."""

    def __init__(self, folder: Path, *, keep: int, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._keep = keep
        self._say = say

    def save(self, step: int, checkpoint: Checkpoint) -> None:
        """Write the checkpoint after `step` steps of the run, then delete the oldest, and damaged
        ones of later steps, which a resumed run has passed over."""
        files = {
            _NETWORK: checkpoint.network,
            _OPTIMISER: checkpoint.optimiser,
            _SURGERY: checkpoint.surgery,
        }
        _write(self._folder / f"{_PREFIX}{step:08d}", checkpoint.state, files)
        before = self._steps(until=step)
        for old in {*self._steps()} - {*before[-self._keep :]}:
            shutil.rmtree(old)

    def save_best(self, step: int, state: Mapping[str, Any], network: nn.Module) -> None:
        """Write the weights with the best score so far, then delete those before, but for those of
        checkpoints: a run that continues from one may not find better weights again."""
        target = self._folder / f"{_BEST}{step:08d}"
        _write(target, state, {_NETWORK: network.state_dict()})
        needed = {target.name, *map(_best_of, self._steps(until=step))}
        for old in self._folder.glob(f"{_BEST}*"):
            if old.name not in needed:
                shutil.rmtree(old)

    def newest(self) -> Checkpoint | None:
        """The newest intact checkpoint; damaged ones are reported and skipped."""
        for folder in reversed(self._steps()):
            fault = _fault(folder, _WHOLE)
            if fault is None:
                return _load(folder)
            self._say(f"checkpoint {folder.name} is damaged ({fault}); trying the one before it.")
        return None

    def best(self, step: int) -> dict[str, Tensor]:
        """The weights with the best score, from after `step` steps."""
        folder = self._folder / f"{_BEST}{step:08d}"
        if (fault := _fault(folder, {_NETWORK})) is not None:
            raise TercetError(f"{folder}: the best checkpoint is damaged ({fault}).")
        return load_file(folder / _NETWORK)

    def _steps(self, *, until: int | None = None) -> list[Path]:
        """The checkpoints in their order, up to one after so many steps."""
        found = sorted(self._folder.glob(f"{_PREFIX}*"))
        last = None if until is None else f"{_PREFIX}{until:08d}"
        return [folder for folder in found if last is None or folder.name <= last]


class NoCheckpoints:
    """In place of checkpoints, for trainings that nobody resumes and that keep their last
    weights."""

    def save(self, step: int, checkpoint: Checkpoint) -> None: ...
    def save_best(self, step: int, state: Mapping[str, Any], network: nn.Module) -> None: ...
    def best(self, step: int) -> dict[str, Tensor]:
        raise AssertionError("without checkpoints only the last weights are known")


def optimiser_tensors(network: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as `parameter/moment` tensors."""
    names: dict[Tensor, str] = {p: name for name, p in network.named_parameters()}
    return {
        f"{names[parameter]}/{moment}": value
        for parameter, moments in optimiser.state.items()
        for moment, value in moments.items()
    }


def restore_optimiser(
    network: nn.Module, optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]
) -> None:
    """Restore saved moments; parameters without any stay without."""
    parameters = dict(network.named_parameters())
    for key, value in tensors.items():
        name, _, moment = key.rpartition("/")
        parameter = parameters[name]
        optimiser.state[parameter][moment] = value.to(parameter.device)


def _write(
    target: Path, state: Mapping[str, Any], files: Mapping[str, Mapping[str, Tensor]]
) -> None:
    try:
        with replace_folder(target) as writing:
            for name, tensors in files.items():
                whole = {key: value.contiguous() for key, value in tensors.items()}
                save_file(whole, writing / name)
            write_json(writing / _STATE, state)
            sums = {file.name: sha256_of(file) for file in sorted(writing.iterdir())}
            write_json(writing / _MANIFEST, sums)
    except (OSError, SafetensorError) as error:
        raise ArgumentError(
            f"{target}: the checkpoint could not be written ({error}); "
            "make room on the disk and continue from the one before it with `resume`.",
            "resume",
        ) from error


def _fault(folder: Path, needed: Set[str]) -> str | None:
    """Why a checkpoint, which must have the needed files, is damaged; None if it is intact."""
    try:
        sums = parse_json((folder / _MANIFEST).read_text("utf-8"))
        if missing := needed - sums.keys():
            return f"{_MANIFEST} does not list {', '.join(sorted(missing))}"
        for name, expected in sums.items():
            if sha256_of(folder / name) != expected:
                return f"{name} does not match its sha256"
    except (OSError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _best_of(folder: Path) -> str | None:
    """The name of the best weights at a checkpoint; None if it is damaged."""
    try:
        state = parse_json((folder / _STATE).read_text("utf-8"))
        return f"{_BEST}{state['position']['best_step']:08d}"
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _load(folder: Path) -> Checkpoint:
    return Checkpoint(
        state=parse_json((folder / _STATE).read_text("utf-8")),
        network=load_file(folder / _NETWORK),
        optimiser=load_file(folder / _OPTIMISER),
        surgery=load_file(folder / _SURGERY),
    )
