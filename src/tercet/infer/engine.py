"""The ragged torch path: word pieces to vectors and to predictions, in the caller's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.infer.batches import Rows, batches, pair_lengths, single_lengths
from tercet.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import Gear
from tercet.text.template import Template
from tercet.text.tokens import Pieces, Tokens

Floats = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Told how many rows are done, and how many there are."""

# Tokens a batch: on CPUs larger ones fall out of the cache, on a GPU smaller ones leave it idle.
CPU_BUDGET = 2048
CUDA_BUDGET = 65_536
COMPARED = 8192


@dataclass(frozen=True, slots=True)
class Engine:
    """A network with what it needs to read word pieces.

    bf16: autocast, over weights that stay as they are
    temperatures: of each task, of each gear: what its head's outputs are divided by
    """

    network: Network
    template: Template
    max_tokens: int
    bf16: bool = False
    temperatures: Mapping[str, Mapping[Gear, float]] = field(default_factory=dict)

    def vectors(
        self, pieces: Pieces, rows: Rows | None = None, *, progress: Progress | None = None
    ) -> Floats:
        """The vector of every text, or of the texts at `rows`, as pooled: float32 [n, width]."""
        chosen = np.arange(len(pieces)) if rows is None else rows
        return self._run(
            self._lengths([pieces])[chosen],
            lambda batch: self._tokens([pieces], chosen[batch]),
            self.network.vectors,
            width=self.network.encoder.config.width,
            progress=progress,
        )

    def joint_vectors(
        self, first: Pieces, second: Pieces, *, progress: Progress | None = None
    ) -> Floats:
        """The vector of every pair, encoded jointly, as pooled: float32 [n, width]."""
        columns = [first, second]
        return self._run(
            self._lengths(columns),
            lambda rows: self._tokens(columns, rows),
            self.network.vectors,
            width=self.network.encoder.config.width,
            progress=progress,
        )

    def outputs(
        self,
        task: str,
        gear: Gear,
        columns: Sequence[Pieces],
        *,
        progress: Progress | None = None,
    ) -> Floats:
        """What the head of a task gives for every row, float32 [n, outputs].

        columns: the texts (single), or the first and the second texts (bi, cross)
        """
        if gear == "bi":
            first, second = columns
            texts = join(first, second)
            # A text that stands in several pairs is encoded once.
            kept, places = distinct(texts)
            known = self.vectors(texts, kept, progress=progress)
            sides = [places[: len(first)], places[len(first) :]]
            return self.read(task, "bi", known, sides)
        return self._run(
            self._lengths(columns),
            lambda rows: self._tokens(columns, rows),
            lambda tokens: self.network.outputs(task, gear, tokens),
            width=self.network.objectives[task, gear].outputs,
            progress=progress,
        )

    def read(self, task: str, gear: Gear, known: Floats, columns: Sequence[Rows]) -> Floats:
        """What a head gives for stored vectors, float32 [n, outputs].

        known: vectors of texts, or of pairs encoded jointly (cross), as pooled: float32 [m, width]
        columns: rows of `known`, int64 [n] each: two for gear `bi`, else one
        """
        network = self.network
        head = network.head(task, gear)
        count = len(columns[0])
        results = np.empty((count, network.objectives[task, gear].outputs), np.float32)
        with inference(network, bf16=False):
            for start in range(0, count, COMPARED):
                block = slice(start, start + COMPARED)
                given = [
                    torch.from_numpy(known[rows[block]]).to(network.device) for rows in columns
                ]
                results[block] = head(*given).float().cpu().numpy()
        return results

    def predictions(
        self,
        task: str,
        gear: Gear,
        columns: Sequence[Pieces],
        *,
        progress: Progress | None = None,
    ) -> Floats:
        """Probabilities [n, classes] or [n], or grades [n], of every row of a task."""
        return self.predict(task, gear, self.outputs(task, gear, columns, progress=progress))

    def predict(self, task: str, gear: Gear, outputs: Floats) -> Floats:
        """A head's outputs [n, outputs] to probabilities [n, classes] or [n], or to grades [n]."""
        temperature = self.temperatures.get(task, {}).get(gear, 1.0)
        with torch.inference_mode():
            raw = torch.from_numpy(outputs) / temperature
            predicted: Floats = self.network.predict(task, gear, raw).numpy()
        return predicted

    def _lengths(self, columns: Sequence[Pieces]) -> Rows:
        if len(columns) == 1:
            return single_lengths(columns[0], template=self.template, max_tokens=self.max_tokens)
        first, second = columns
        return pair_lengths(first, second, template=self.template, max_tokens=self.max_tokens)

    def _tokens(self, columns: Sequence[Pieces], rows: Rows) -> Tokens:
        if len(columns) == 1:
            return self.template.single(columns[0], rows, max_tokens=self.max_tokens)
        first, second = columns
        return self.template.pair(first, second, rows, max_tokens=self.max_tokens)

    def _run(
        self,
        lengths: Rows,
        make_tokens: Callable[[Rows], Tokens],
        call: Callable[[DeviceTokens], Tensor],
        *,
        width: int,
        progress: Progress | None,
    ) -> Floats:
        """What `call` gives for every row, float32 [n, width], batched by `lengths` [n]."""
        device = self.network.device
        results = np.empty((len(lengths), width), np.float32)
        done = 0

        def collect(rows: Rows, given: Tensor) -> None:
            nonlocal done
            results[rows] = given.float().cpu().numpy()
            done += len(rows)
            if progress is not None:
                progress(done, len(lengths))

        with inference(self.network, bf16=self.bf16):
            waiting: tuple[Rows, Tensor] | None = None
            for rows in batches(lengths, budget=budget_of(device)):
                # Made before the last batch is waited for, so that a GPU is busy meanwhile.
                tokens = make_tokens(rows)
                if waiting is not None:
                    collect(*waiting)
                waiting = rows, call(DeviceTokens.from_host(tokens, device))
            if waiting is not None:
                collect(*waiting)
        return results


def budget_of(device: torch.device) -> int:
    """Tokens a batch on this device."""
    return CUDA_BUDGET if device.type == "cuda" else CPU_BUDGET


def join(first: Pieces, second: Pieces) -> Pieces:
    """The texts of both, one after the other."""
    return Pieces(
        ids=np.concatenate([first.ids, second.ids]),
        offsets=np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]]),
        lengths=np.concatenate([first.lengths, second.lengths]),
    )


def distinct(texts: Pieces) -> tuple[Rows, Rows]:
    """One row of every distinct text [m], and for each text its place among them [n]."""
    places = np.empty(len(texts), np.int64)
    seen: dict[bytes, int] = {}
    kept: list[int] = []
    bounds = texts.offsets.tolist()
    for row in range(len(texts)):
        key = texts.ids[bounds[row] : bounds[row + 1]].tobytes()
        place = seen.setdefault(key, len(kept))
        if place == len(kept):
            kept.append(row)
        places[row] = place
    return np.array(kept, np.int64), places


@contextmanager
def inference(network: Network, *, bf16: bool) -> Iterator[None]:
    """No gradients and no dropout; every module's mode is restored at the end."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with (
            torch.inference_mode(),
            torch.autocast(network.device.type, dtype=torch.bfloat16, enabled=bf16),
        ):
            yield
    finally:
        for module, training in modes:
            module.training = training
