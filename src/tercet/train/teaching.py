"""What teachers say of a task's rows: computed once, before training, and kept on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tercet.data.cache import Stored, cached, default_folder
from tercet.errors import TercetError
from tercet.infer.engine import Engine
from tercet.model import Model, load
from tercet.specs import Gear, TaskSpec, TeacherSpec
from tercet.train.head_loss import Targets
from tercet.train.listener import Listener

FORMAT = 1  # of the cache: raise it when the same teacher and texts give other outputs
VECTORS = "vectors"


class Teachers:
    """The models that teach in a run, each loaded once."""

    def __init__(self, *, device: torch.device, listener: Listener) -> None:
        self._device = device
        self._listener = listener
        self._models: dict[str, Model] = {}

    def targets(
        self, name: str, task: TaskSpec, texts: Sequence[list[str]], *, width: int
    ) -> Targets:
        """What the teachers of a task give for n rows, averaged, fp32.

        texts: n texts of each column
        width: of the student's vectors
        Probabilities [n, classes] at the task's temperature, grades [n, 1], or, where vectors are
        kept close to the teacher's, these side by side [n, columns * width].
        """
        spec = task.teacher
        assert spec is not None
        content = hash_texts(texts)
        found: list[Targets] = []
        for folder in spec.folder:
            model = self._load(folder, name, spec)
            if not task.predicts:
                _check_width(model, name, folder, width=width)
                found.append(self._vectors(model, folder, texts, content))
                continue
            taught = spec.task or task.like or name
            for gear in _gears(model, taught, name, task, folder):
                raw = self._outputs(model, folder, taught, gear, texts, content)
                found.append(_soft(model, taught, gear, raw, temperature=spec.temperature))
        # One alone stays where it is: mapped, not copied.
        return found[0] if len(found) == 1 else np.mean(found, axis=0, dtype=np.float32)

    def _load(self, folder: str, name: str, spec: TeacherSpec) -> Model:
        if folder not in self._models:
            try:
                self._models[folder] = load(folder, device=str(self._device))
            except TercetError as error:
                made = f" (recipe {spec.recipe} makes it)" if spec.recipe is not None else ""
                raise TercetError(f"The teacher of task `{name}`{made}: {error}") from error
        return self._models[folder]

    def _vectors(
        self, model: Model, folder: str, texts: Sequence[list[str]], content: str
    ) -> Targets:
        """float32 [n, columns * width], as pooled"""

        def make() -> Stored:
            sides = []
            for column in texts:
                with self._listener.working(f"vectors of {folder}") as progress:
                    pieces = model.pieces(column)
                    sides.append(_engine(model).vectors(pieces, progress=progress))
            return Stored({VECTORS: np.concatenate(sides, axis=1)}, None)

        return self._cached(model, [VECTORS, content], make).arrays[VECTORS]

    def _outputs(
        self,
        model: Model,
        folder: str,
        task: str,
        gear: Gear,
        texts: Sequence[list[str]],
        content: str,
    ) -> Targets:
        """float32 [n, outputs], what the teacher's head gives"""

        def make() -> Stored:
            with self._listener.working(f"{task} ({gear}) of {folder}") as progress:
                columns = [model.pieces(column) for column in texts[: _columns_of(gear)]]
                given = _engine(model).outputs(task, gear, columns, progress=progress)
            return Stored({"outputs": given}, None)

        return self._cached(model, [task, gear, content], make).arrays["outputs"]

    def _cached(self, model: Model, parts: list[str], make: Callable[[], Stored]) -> Stored:
        info = model.info
        reading = [model.tokenizer.fingerprint, info.max_tokens, info.lower_case, info.pooling]
        key = [FORMAT, hash_tensors(model.network), *reading, *parts]
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()
        return cached(default_folder().with_name("teachers"), name, make)


def hash_texts(columns: Sequence[Iterable[str]]) -> str:
    """The sha256 of texts, with their bounds."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(b"column")
        for text in column:
            encoded = text.encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def hash_tensors(network: nn.Module) -> str:
    """The sha256 of all weights, wherever they came from."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(_bytes(tensor))
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> NDArray[np.uint8]:
    flat: NDArray[np.uint8] = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return flat


def _engine(model: Model) -> Engine:
    bf16 = model.network.device.type == "cuda"
    engine = model.engine
    assert isinstance(engine, Engine)
    return replace(engine, bf16=bf16)


def _columns_of(gear: Gear) -> int:
    return 1 if gear == "single" else 2


def _check_width(model: Model, name: str, folder: str, *, width: int) -> None:
    if model.width != width:
        raise TercetError(
            f"Task `{name}` keeps vectors close to those of {folder}, which are {model.width} wide "
            f"and not {width} as the encoder's: take a teacher of the same width."
        )


def _gears(model: Model, taught: str, name: str, task: TaskSpec, folder: str) -> list[Gear]:
    """The gears of a teacher that teach, once it is sure that it can."""
    assert task.teacher is not None
    if taught not in model.tasks:
        has = ", ".join(model.tasks) or "none"
        raise TercetError(
            f"The teacher of task `{name}`, {folder}, has no task `{taught}` (its tasks: {has}); "
            "`teacher.task` names the one that teaches."
        )
    spec = model.tasks[taught]
    if (len(spec.labels or ()), spec.range) != (len(task.labels or ()), task.range):
        raise TercetError(
            f"The teacher of task `{name}`, {folder}, has other labels for `{taught}`: it needs "
            "as many classes, or the same range."
        )
    predicting = [gear for gear, one in spec.gears.items() if one.predicts]
    gears = task.teacher.gears or predicting[:1]
    for gear in gears:
        if gear not in predicting or (gear == "single") != ("single" in task.gears):
            raise TercetError(
                f"The teacher of task `{name}`, {folder}, cannot teach it in gear `{gear}`; it has "
                f"{' and '.join(predicting)}."
            )
    return gears


def _soft(model: Model, task: str, gear: Gear, outputs: Targets, *, temperature: float) -> Targets:
    """A head's outputs [n, outputs] to probabilities [n, classes] or grades [n, 1]."""
    classes = model.tasks[task].labels is not None
    with torch.inference_mode():
        raw = torch.from_numpy(np.array(outputs))
        given = model.network.predict(task, gear, raw / temperature if classes else raw)
        if given.ndim == 1:
            given = torch.stack([1.0 - given, given], dim=-1) if classes else given[:, None]
    soft: Targets = given.numpy()
    return soft
