"""The ragged torch path: word pieces to vectors and to predictions, in the caller's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tercet.infer.base import BaseEngine, Buffer, Columns
from tercet.infer.batches import Rows, shares
from tercet.infer.workers import in_parallel
from tercet.network.network import Network
from tercet.nn.cosine import unit
from tercet.nn.device_tokens import DeviceTokens
from tercet.progress import Progress, silent
from tercet.specs import Floats, Mode
from tercet.text.tokens import Pieces, Tokens

# Tokens per batch: on CPUs larger ones exceed the cache, on a GPU smaller ones leave it idle.
CPU_BUDGET, LEAST = 768, 128
CUDA_BUDGET = 65_536
# About a batch of short texts.
CUDA_PART = 4096

MakeTokens = Callable[[Rows], Tokens]
Encode = Callable[[DeviceTokens], Tensor]
Copied = Callable[[], Floats]


@dataclass(frozen=True, slots=True)
class Engine(BaseEngine):
    """A torch network with what it needs to read word pieces.

    bf16: autocast; the weights keep their precision, as they must while they train
    half: the network in bf16, which encodes instead; see `half_network`
    """

    network: Network
    bf16: bool = False
    half: Network | None = None

    @property
    def width(self) -> int:
        return self.network.encoder.config.width

    @property
    def batch_tokens(self) -> int:
        return budget_of(self.network.device)

    @property
    def part_rows(self) -> int | None:
        # On a CPU both would share its cores.
        return CUDA_PART if self.network.device.type == "cuda" else None

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

    def _head(self, task: str, mode: Mode, vectors: Sequence[Floats]) -> Floats:
        head = self.network.head(task, mode)
        with inference(self.network, bf16=False):
            inputs = [torch.from_numpy(part).to(self.network.device) for part in vectors]
            outputs: Floats = head(*inputs).float().cpu().numpy()
        return outputs

    def _vectors(
        self, columns: Columns, rows: Rows, progress: Progress, *, side: str | None
    ) -> Floats:
        network = self.half or self.network
        vectors = network.vectors if side is None else partial(network.vectors, side=side)
        return self._run(vectors, columns, rows, self.width, progress)

    def unit_vectors(
        self,
        pieces: Pieces,
        rows: Rows | None = None,
        *,
        width: int | None = None,
        progress: Progress = silent,
    ) -> Floats:
        # A GPU scales them before they are copied; vectors of windows are averaged first.
        if self.network.device.type == "cpu" or self.windows([pieces], rows) is not None:
            return BaseEngine.unit_vectors(self, pieces, rows, width=width, progress=progress)
        network, kept = self.half or self.network, width or self.width
        chosen = np.arange(len(pieces)) if rows is None else rows
        return self._run(
            lambda tokens: unit(network.vectors(tokens)[:, :kept]),
            [pieces],
            chosen,
            kept,
            progress,
        )

    def _outputs(self, task: str, mode: Mode, columns: Columns, progress: Progress) -> Floats:
        network = self.half or self.network
        outputs, every = partial(network.outputs, task, mode), np.arange(len(columns[0]))
        return self._run(outputs, columns, every, self.output_width(task, mode), progress)

    def _run(
        self, encode: Encode, columns: Columns, rows: Rows, width: int, progress: Progress
    ) -> Floats:
        """What `encode` gives for the texts, or joined pairs, at `rows`: float32 [n, width]."""
        lengths = self._lengths(columns)[rows]

        def make_tokens(batch: Rows) -> Tokens:
            return self._tokens(columns, rows[batch])

        device = self.network.device
        threads = torch.get_num_threads() if device.type == "cpu" else 1
        row_batches = shares(lengths, least=LEAST, most=budget_of(device), threads=threads)
        results = np.empty((len(lengths), width), np.float32)
        done = 0
        with inference(self.network, bf16=self.bf16):
            if threads > 1 and len(row_batches) > 1:
                encoded = self._in_parallel(row_batches, make_tokens, encode, threads=threads)
            else:
                encoded = self._in_sequence(row_batches, make_tokens, encode)
            for batch, copied in encoded:
                results[batch] = copied()
                done += len(batch)
                progress(done, len(lengths))
        return results

    def _in_sequence(
        self, row_batches: Sequence[Rows], make_tokens: MakeTokens, encode: Encode
    ) -> Iterator[tuple[Rows, Copied]]:
        waiting: tuple[Rows, Copied] | None = None
        for rows in row_batches:
            # Launched before the last batch is read, so that a GPU is busy meanwhile.
            tokens = DeviceTokens.from_host(make_tokens(rows), self.network.device)
            following = rows, copying(encode(tokens))
            if waiting is not None:
                yield waiting
            waiting = following
        if waiting is not None:
            yield waiting

    def _in_parallel(
        self, row_batches: Sequence[Rows], make_tokens: MakeTokens, encode: Encode, *, threads: int
    ) -> Iterator[tuple[Rows, Copied]]:
        """One batch per core at a time: cores that share a batch wait for each other."""

        def work(rows: Rows) -> tuple[Rows, Copied]:
            tokens = DeviceTokens.from_host(make_tokens(rows), self.network.device)
            with computing(self.network.device, bf16=self.bf16):
                return rows, copying(encode(tokens))

        results = in_parallel(work, row_batches, threads=threads, initialise=_use_one_thread)
        # Threads that start later should use as many as this one, not what a worker set.
        torch.set_num_threads(threads)
        yield from results


def copying(result: Tensor) -> Copied:
    """Begin to copy a result to the host; what is returned waits for it and gives it as float32.

    Only this copy is awaited, not what was launched after it.
    """
    if result.device.type != "cuda":
        return lambda: result.float().cpu().numpy()
    host = torch.empty(result.shape, dtype=torch.float32, pin_memory=True)
    host.copy_(result.float(), non_blocking=True)
    # A thread that waits sleeps: the tokenizer has use for its core.
    done = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    done.record(torch.cuda.current_stream(result.device))

    def copied() -> Floats:
        done.synchronize()
        values: Floats = host.numpy()
        return values

    return copied


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
