"""The ragged torch path: word pieces to vectors and to predictions, in the caller's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from tercet.infer.base import BaseEngine, Buffer, Floats, Progress, distinct, join
from tercet.infer.batches import Rows, batches
from tercet.infer.workers import side_by_side
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import Mode, Scaling, Scalings
from tercet.text.template import Template
from tercet.text.tokens import Pieces, Tokens

__all__ = ["Engine", "Floats", "Progress", "budget_of", "distinct", "inference", "join"]

# Tokens a batch: on CPUs larger ones fall out of the cache, on a GPU smaller ones leave it idle.
CPU_BUDGET, LEAST = 768, 128
CUDA_BUDGET = 65_536
COMPARED = 8192


@dataclass(frozen=True, slots=True)
class Engine(BaseEngine):
    """A network with what it needs to read word pieces.

    bf16: autocast, over weights that stay as they are
    scalings: of each task, of each mode: what its head's outputs go through first
    """

    network: Network
    template: Template
    max_tokens: int
    bf16: bool = False
    scalings: Scalings = field(default_factory=dict)

    @property
    def width(self) -> int:
        return self.network.encoder.config.width

    @property
    def batch_tokens(self) -> int:
        return budget_of(self.network.device)

    def encoder_bytes(self) -> Iterator[Buffer]:
        for name, tensor in sorted(self.network.encoder.state_dict().items()):
            yield f"{name} {list(tensor.shape)}".encode()
            yield tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data

    def machine(self) -> dict[str, str | int | None]:
        device = self.network.device
        return {
            "device": device.type,
            "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
            "threads": torch.get_num_threads(),
        }

    def reads_vectors(self, task: str, mode: Mode) -> bool:
        return self.network.reads_vectors(task, mode)

    def output_width(self, task: str, mode: Mode) -> int:
        return self.network.objectives[task, mode].outputs

    def read(self, task: str, mode: Mode, known: Floats, columns: Sequence[Rows]) -> Floats:
        network = self.network
        head = network.head(task, mode)
        count = len(columns[0])
        results = np.empty((count, self.output_width(task, mode)), np.float32)
        with inference(network, bf16=False):
            for start in range(0, count, COMPARED):
                block = slice(start, start + COMPARED)
                given = [
                    torch.from_numpy(known[rows[block]]).to(network.device) for rows in columns
                ]
                results[block] = head(*given).float().cpu().numpy()
        return results

    def predict(self, task: str, mode: Mode, outputs: Floats) -> Floats:
        scaling = self.scalings.get(task, {}).get(mode, Scaling())
        with torch.inference_mode():
            raw = torch.from_numpy(outputs) / scaling.temperature + scaling.shift
            predicted: Floats = self.network.predict(task, mode, raw).numpy()
        return predicted

    def _vectors(self, columns: Sequence[Pieces], rows: Rows, progress: Progress | None) -> Floats:
        return self._run(
            self._lengths(columns)[rows],
            lambda batch: self._tokens(columns, rows[batch]),
            self.network.vectors,
            width=self.width,
            progress=progress,
        )

    def _outputs(
        self, task: str, mode: Mode, columns: Sequence[Pieces], progress: Progress | None
    ) -> Floats:
        return self._run(
            self._lengths(columns),
            lambda rows: self._tokens(columns, rows),
            lambda tokens: self.network.outputs(task, mode, tokens),
            width=self.output_width(task, mode),
            progress=progress,
        )

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
        threads = torch.get_num_threads() if device.type == "cpu" else 1
        budget = min(max(int(lengths.sum()) // threads, LEAST), budget_of(device))
        found = batches(lengths, budget=budget)
        results = np.empty((len(lengths), width), np.float32)
        done = 0
        with inference(self.network, bf16=self.bf16):
            if threads > 1 and len(found) > 1:
                encoded = self._side_by_side(found, make_tokens, call, threads=threads)
            else:
                encoded = self._one_after_another(found, make_tokens, call)
            for rows, given in encoded:
                results[rows] = given.float().cpu().numpy()
                done += len(rows)
                if progress is not None:
                    progress(done, len(lengths))
        return results

    def _one_after_another(
        self,
        found: Sequence[Rows],
        make_tokens: Callable[[Rows], Tokens],
        call: Callable[[DeviceTokens], Tensor],
    ) -> Iterator[tuple[Rows, Tensor]]:
        waiting: tuple[Rows, Tensor] | None = None
        for rows in found:
            # Made before the last batch is waited for, so that a GPU is busy meanwhile.
            tokens = make_tokens(rows)
            if waiting is not None:
                yield waiting
            waiting = rows, call(DeviceTokens.from_host(tokens, self.network.device))
        if waiting is not None:
            yield waiting

    def _side_by_side(
        self,
        found: Sequence[Rows],
        make_tokens: Callable[[Rows], Tokens],
        call: Callable[[DeviceTokens], Tensor],
        *,
        threads: int,
    ) -> Iterator[tuple[Rows, Tensor]]:
        """A batch for every core at a time: cores that share one wait for each other."""

        def encode(rows: Rows) -> tuple[Rows, Tensor]:
            tokens = DeviceTokens.from_host(make_tokens(rows), self.network.device)
            with computing(self.network.device, bf16=self.bf16):
                return rows, call(tokens)

        given = side_by_side(encode, found, threads=threads, begin=_work_alone)
        # Threads that begin later should have as many as this one, not what a worker asked for.
        torch.set_num_threads(threads)
        yield from given


def budget_of(device: torch.device) -> int:
    """Tokens a batch on this device."""
    return CUDA_BUDGET if device.type == "cuda" else CPU_BUDGET


@contextmanager
def inference(network: Network, *, bf16: bool) -> Iterator[None]:
    """No gradients and no dropout; every module's mode is restored at the end."""
    # Only a network in training has parts in training: asking them all would take a while.
    training = [part for part in network.modules() if part.training] if network.training else []
    if training:
        network.eval()
    try:
        with computing(network.device, bf16=bf16):
            yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def computing(device: torch.device, *, bf16: bool) -> Iterator[None]:
    """No gradients, and autocast where asked for, in this thread."""
    autocast = torch.autocast(device.type, dtype=torch.bfloat16) if bf16 else nullcontext()
    with torch.inference_mode(), autocast:
        yield


def _work_alone() -> None:
    torch.set_num_threads(1)
    # A thread that has asked keeps its number; else its first operator takes the latest one set.
    torch.get_num_threads()
