"""metrics.jsonl: the losses of every step and every score on dev.

It holds nothing that differs between two runs of the same recipe, so that a resumed run can be
compared with an uninterrupted one byte for byte.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

from torch import Tensor

from tercet.errors import ArgumentError, TercetError
from tercet.files import parse_json
from tercet.training.plan import Draw


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step; its tensors may still be on a GPU.

    losses: [tasks], norm: scalar, cosines: [tasks, tasks] or None
    """

    step: int
    stage: str
    draws: Sequence[Draw]
    losses: Tensor
    lr: float
    norm: Tensor
    cosines: Tensor | None

    def line(self) -> dict[str, Any]:
        tasks = [draw.task for draw in self.draws]
        losses = self.losses.tolist()
        line: dict[str, Any] = {
            "step": self.step,
            "stage": self.stage,
            "loss": dict(zip(tasks, losses, strict=True)),
            "lr": self.lr,
            "norm": self.norm.item(),
        }
        if self.cosines is not None:
            values = self.cosines.tolist()
            pairs = combinations(range(len(tasks)), 2)
            line["cosine"] = {f"{tasks[i]} ~ {tasks[j]}": values[i][j] for i, j in pairs}
        return line


def open_metrics(file: Path, *, length: int) -> BinaryIO:
    """The file to append to; only the first `length` bytes of an older one are kept."""
    stream = file.open("ab")
    # Truncating a shorter file would fill it up with zeros.
    stream.truncate(min(length, stream.tell()))
    stream.seek(0, os.SEEK_END)
    return stream


def read_metrics(file: Path, *, length: int | None = None) -> list[dict[str, Any]]:
    """The lines of the file, or of its first `length` bytes, which must be whole."""
    content = file.read_bytes()[:length] if file.is_file() else b""
    if length is not None and len(content) < length:
        raise _damaged(file, content.count(b"\n") + 1)
    lines = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            parsed = parse_json(line)
        except ValueError:
            raise _damaged(file, number) from None
        if not isinstance(parsed, dict) or not isinstance(parsed.get("step"), int):
            raise _damaged(file, number)
        lines.append(parsed)
    return lines


def _damaged(file: Path, line: int) -> TercetError:
    return TercetError(
        f"{file} line {line}: is damaged, and the run cannot resume without it; restore the file, "
        "or start a new run."
    )


class MetricsLog:
    """Writes metrics.jsonl; holds steps until `flush`, so that not every step waits for a GPU."""

    def __init__(self, stream: BinaryIO, *, describe: Callable[[Draw], str]) -> None:
        """`describe` says where the rows of a draw are in their files."""
        self._stream = stream
        self._held: list[StepRecord] = []
        self._describe = describe

    def step(self, record: StepRecord) -> None:
        self._held.append(record)

    def flush(self) -> tuple[list[dict[str, Any]], int]:
        """Write the held steps; their lines, and how many rows they trained on.

        A loss or gradient that is not finite is an error that names task, step and batch.
        """
        records, self._held = self._held, []
        lines = []
        for record in records:
            line = record.line()
            self._check_finite(record, line)
            lines.append(line)
            self._append(line)
        self._stream.flush()
        return lines, sum(len(draw.rows) for record in records for draw in record.draws)

    def scores(
        self, *, step: int, stage: str, dev: Mapping[str, Any], score: float, dev_loss: float
    ) -> None:
        line = {"step": step, "stage": stage, "dev": dev, "score": score, "dev_loss": dev_loss}
        self._append(line)
        self._stream.flush()

    def sync(self) -> int:
        """Sync all lines to disk; the length of the file so far."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        return self._stream.tell()

    def _append(self, line: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(line).encode() + b"\n")

    def _check_finite(self, record: StepRecord, line: Mapping[str, Any]) -> None:
        for draw in record.draws:
            if not math.isfinite(loss := line["loss"][draw.task]):
                raise self._not_finite(record, [draw], "loss", loss)
        if not math.isfinite(line["norm"]):
            # The step has ruined the weights, although its losses do not show it yet.
            raise self._not_finite(record, record.draws, "gradient", line["norm"])

    def _not_finite(
        self, record: StepRecord, draws: Sequence[Draw], what: str, value: float
    ) -> ArgumentError:
        tasks = " and ".join(f"`{draw.task}`" for draw in draws)
        batches = " and ".join(map(self._describe, draws))
        return ArgumentError(
            f"the {what} of task {tasks} became {value} at step {record.step} of stage "
            f"`{record.stage}`, on {batches}; the last good checkpoint is kept: correct these rows "
            "and continue with `resume` and `changed_data`, or start a new run with a lower "
            "learning rate.",
            "resume",
            "changed_data",
        )
