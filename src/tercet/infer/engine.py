"""The ragged torch path: word pieces to vectors and to predictions, in the caller's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from tercet.infer.base import BaseEngine, Buffer
from tercet.infer.batches import Rows, batches
from tercet.infer.workers import in_parallel
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.progress import Progress
from tercet.specs import Floats, Mode, Scalings, TaskSpec
from tercet.text.template import Template
from tercet.text.tokens import Pieces, Tokens

# Tokens per batch: on CPUs larger ones exceed the cache, on a GPU smaller ones leave it idle.
CPU_BUDGET, LEAST = 768, 128
CUDA_BUDGET = 65_536


@dataclass(frozen=True, slots=True)
class Engine(BaseEngine):
    """A torch network with what it needs to read word pieces.

    bf16: autocast; the weights keep their precision
    scalings: by task and mode, how a head's outputs are calibrated
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

    @property
    def tasks(self) -> Mapping[str, TaskSpec]:
        return self.network.tasks

    def _head(self, task: str, mode: Mode, vectors: Sequence[Floats]) -> Floats:
        head = self.network.head(task, mode)
        with inference(self.network, bf16=False):
            inputs = [torch.from_numpy(part).to(self.network.device) for part in vectors]
            outputs: Floats = head(*inputs).float().cpu().numpy()
        return outputs

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
        """The results of `call` for every row, float32 [n, width], batched by `lengths` [n]."""
        device = self.network.device
        threads = torch.get_num_threads() if device.type == "cpu" else 1
        budget = min(max(int(lengths.sum()) // threads, LEAST), budget_of(device))
        row_batches = batches(lengths, budget=budget)
        results = np.empty((len(lengths), width), np.float32)
        done = 0
        with inference(self.network, bf16=self.bf16):
            if threads > 1 and len(row_batches) > 1:
                encoded = self._in_parallel(row_batches, make_tokens, call, threads=threads)
            else:
                encoded = self._in_sequence(row_batches, make_tokens, call)
            for rows, result in encoded:
                results[rows] = result.float().cpu().numpy()
                done += len(rows)
                if progress is not None:
                    progress(done, len(lengths))
        return results

    def _in_sequence(
        self,
        row_batches: Sequence[Rows],
        make_tokens: Callable[[Rows], Tokens],
        call: Callable[[DeviceTokens], Tensor],
    ) -> Iterator[tuple[Rows, Tensor]]:
        waiting: tuple[Rows, Tensor] | None = None
        for rows in row_batches:
            # Made before waiting for the last batch, so that a GPU is busy meanwhile.
            tokens = make_tokens(rows)
            if waiting is not None:
                yield waiting
            waiting = rows, call(DeviceTokens.from_host(tokens, self.network.device))
        if waiting is not None:
            yield waiting

    def _in_parallel(
        self,
        row_batches: Sequence[Rows],
        make_tokens: Callable[[Rows], Tokens],
        call: Callable[[DeviceTokens], Tensor],
        *,
        threads: int,
    ) -> Iterator[tuple[Rows, Tensor]]:
        """One batch per core at a time: cores that share a batch wait for each other."""

        def encode(rows: Rows) -> tuple[Rows, Tensor]:
            tokens = DeviceTokens.from_host(make_tokens(rows), self.network.device)
            with computing(self.network.device, bf16=self.bf16):
                return rows, call(tokens)

        results = in_parallel(encode, row_batches, threads=threads, initialise=_use_one_thread)
        # Threads that start later should use as many as this one, not what a worker set.
        torch.set_num_threads(threads)
        yield from results


def budget_of(device: torch.device) -> int:
    """Tokens per batch on this device."""
    return CUDA_BUDGET if device.type == "cuda" else CPU_BUDGET


@contextmanager
def inference(network: Network, *, bf16: bool) -> Iterator[None]:
    """No gradients and no dropout; every module's mode is restored at the end."""
    # Only a network in training has parts in training; checking all of them takes time.
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
    """No gradients, and autocast for bf16, in this thread."""
    autocast = torch.autocast(device.type, dtype=torch.bfloat16) if bf16 else nullcontext()
    with torch.inference_mode(), autocast:
        yield


def _use_one_thread() -> None:
    torch.set_num_threads(1)
    # A thread that has read its number keeps it; else its first operator takes the latest one set.
    torch.get_num_threads()
