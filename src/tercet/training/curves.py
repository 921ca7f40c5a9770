"""TensorBoard curves of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tercet.errors import ArgumentError, install_hint
from tercet.folders.model_card import Metrics
from tercet.training.listener import Listener


class Curves:
    """A listener that writes curves and passes everything on to another."""

    def __init__(self, folder: Path, listener: Listener) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ArgumentError(
                f"`tensorboard` needs a further package: {install_hint('tensorboard')}.",
                "tensorboard",
            ) from error
        self._writer: Any = SummaryWriter(folder)
        self._listener = listener
        self.say = listener.say
        self.working = listener.working
        self.begin_stage = listener.begin_stage
        self.interrupted = listener.interrupted

    def steps(self, lines: list[dict[str, Any]], *, rows: int) -> None:
        for line in lines:
            curves = {f"loss/{task}": loss for task, loss in line["loss"].items()}
            curves |= {f"cosine/{pair}": value for pair, value in line.get("cosine", {}).items()}
            curves |= {"lr": line["lr"], "norm": line["norm"]}
            for name, value in curves.items():
                self._writer.add_scalar(name, value, line["step"])
        self._listener.steps(lines, rows=rows)

    def scores(self, *, step: int, dev: Metrics, score: float, best: bool) -> None:
        self._writer.add_scalar("dev/score", score, step)
        for task, modes in dev.items():
            for mode, metrics in modes.items():
                for metric, value in metrics.items():
                    if value is not None:
                        self._writer.add_scalar(f"dev/{task}-{mode}-{metric}", value, step)
        self._listener.scores(step=step, dev=dev, score=score, best=best)

    def end_stage(self) -> None:
        self._writer.flush()
        self._listener.end_stage()
