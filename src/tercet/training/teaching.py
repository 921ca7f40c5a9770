"""The targets of teachers: computed once, before training, and cached on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from tercet import weights
from tercet.data.cache import Stored, cached, hash_texts
from tercet.errors import TercetError
from tercet.files import cache_folder
from tercet.infer.engine import Engine
from tercet.model import Model, load
from tercet.nn.fingerprint import fingerprint
from tercet.specs import Mode, TaskSpec, TeacherSpec
from tercet.training.head_loss import Targets
from tercet.training.listener import Listener

FORMAT = 1  # of the cache: raise it when the same teacher and texts give different outputs

Texts = Sequence[list[str]]
"""n texts per column."""


@dataclass(frozen=True, slots=True)
class _Teacher:
    """A teacher, and the cache key of its outputs: everything that decides them."""

    folder: str
    model: Model
    key: list[str]

    @classmethod
    def load(cls, folder: str, *, device: torch.device) -> _Teacher:
        model = load(folder, device=str(device))
        info, network = model.info, model.network
        weights.check_known(folder, fingerprint=fingerprint(network.encoder))
        reading = f"{model.tokenizer.fingerprint} {info.max_tokens} {info.lower_case}"
        reading += "" if info.long == "truncate" else f" {info.long}"
        key = [reading, info.pooling, repr(network.encoder.config), hash_tensors(network)]
        return cls(folder, model, key)

    @property
    def engine(self) -> Engine:
        engine = self.model.engine
        assert isinstance(engine, Engine)  # a model with a torch network has it
        return replace(engine, bf16=self.model.network.device.type == "cuda")

    def vectors(self, texts: Texts, *, content: str, listener: Listener) -> Targets:
        """Pooled vectors, those of all columns side by side, float32 [n, columns * width]."""

        def make() -> Stored:
            sides = []
            for column in texts:
                with listener.working(f"vectors of {self.folder}") as progress:
                    pieces = self.model.pieces(column)
                    sides.append(self.engine.vectors(pieces, progress=progress))
            return Stored({"given": np.concatenate(sides, axis=1)}, None)

        return self._cached(["vectors", content], make)

    def outputs(
        self, task: str, mode: Mode, texts: Texts, *, content: str, listener: Listener
    ) -> Targets:
        """The outputs of a head, float32 [n, outputs]."""

        def make() -> Stored:
            with listener.working(f"{task} ({mode}) of {self.folder}") as progress:
                columns = [self.model.pieces(column) for column in texts]
                outputs = self.engine.outputs(task, mode, columns, progress=progress)
            return Stored({"given": outputs}, None)

        head = self.model.tasks[task].modes[mode].model_dump_json()
        return self._cached([task, mode, head, content], make)

    def _cached(self, parts: list[str], make: Callable[[], Stored]) -> Targets:
        key = json.dumps([FORMAT, *self.key, *parts]).encode()
        folder = cache_folder("teachers")
        return cached(folder, hashlib.sha256(key).hexdigest(), make).arrays["given"]


class Teachers:
    """The teachers of a run, each loaded once."""

    def __init__(self, *, device: torch.device, listener: Listener) -> None:
        self._device = device
        self._listener = listener
        self._loaded: dict[str, _Teacher] = {}

    def targets(self, name: str, task: TaskSpec, texts: Texts, *, width: int) -> Targets:
        """The targets of a task for n rows, averaged over its teachers, fp32.

        width: of the student's vectors
        Probabilities [n, classes] at the task's temperature, grades [n, 1], or, where vectors are
        compared, those of all columns side by side [n, columns * width].
        """
        spec = task.teacher
        assert spec is not None
        content = hash_texts(texts)
        targets: list[Targets] = []
        for folder in spec.folder:
            teacher = self._load(folder, name, spec)
            if not task.predicts:
                _check_width(teacher, name, width=width)
                targets.append(teacher.vectors(texts, content=content, listener=self._listener))
                continue
            taught = spec.task or task.like or name
            for mode in _modes(teacher, taught, name, task):
                raw = teacher.outputs(taught, mode, texts, content=content, listener=self._listener)
                targets.append(_soft(teacher.model, taught, mode, raw, spec.temperature))
        # A single one stays memory-mapped.
        return targets[0] if len(targets) == 1 else np.mean(targets, axis=0, dtype=np.float32)

    def _load(self, folder: str, name: str, spec: TeacherSpec) -> _Teacher:
        if folder not in self._loaded:
            try:
                self._loaded[folder] = _Teacher.load(folder, device=self._device)
            except TercetError as error:
                source = f" (made by recipe {spec.recipe})" if spec.recipe is not None else ""
                raise TercetError(f"The teacher of task `{name}`{source}: {error}") from error
        return self._loaded[folder]


def hash_tensors(network: nn.Module) -> str:
    """The sha256 of all weights."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(_bytes(tensor))
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def _check_width(teacher: _Teacher, name: str, *, width: int) -> None:
    if teacher.model.width != width:
        raise TercetError(
            f"Task `{name}` learns the vectors of {teacher.folder}, which are "
            f"{teacher.model.width} wide, but the encoder's are {width}: use one of that width."
        )


def _modes(teacher: _Teacher, taught: str, name: str, task: TaskSpec) -> list[Mode]:
    """The modes of a teacher that teach a task; an error if it cannot."""
    assert task.teacher is not None
    model, folder = teacher.model, teacher.folder
    if taught not in model.tasks:
        has = ", ".join(model.tasks) or "none"
        raise TercetError(
            f"The teacher of task `{name}`, {folder}, has no task `{taught}` (its tasks: {has}); "
            "`teacher.task` names the one that teaches."
        )
    spec = model.tasks[taught]
    if spec.label_space != task.label_space:
        raise TercetError(
            f"The teacher of task `{name}`, {folder}, has other labels for `{taught}`: it needs "
            "as many classes, one or several per row, or the same range."
        )
    predicting = [mode for mode, taught_by in spec.modes.items() if taught_by.predicts]
    modes = task.teacher.modes or predicting[:1]
    for mode in modes:
        if mode not in predicting or (mode == "single") != ("single" in task.modes):
            raise TercetError(
                f"The teacher of task `{name}`, {folder}, cannot teach it in mode `{mode}`; it has "
                f"{' and '.join(predicting)}."
            )
    return modes


def _soft(model: Model, task: str, mode: Mode, outputs: Targets, temperature: float) -> Targets:
    """A head's outputs [n, outputs] to probabilities [n, classes] or grades [n, 1]."""
    classes = model.tasks[task].labels is not None
    scaled = outputs / np.float32(temperature) if classes else outputs
    predicted = model.tasks[task].predict(mode, scaled)
    if predicted.ndim == 1:
        return np.stack([1.0 - predicted, predicted], 1) if classes else predicted[:, None]
    return predicted
