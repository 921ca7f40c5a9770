"""A network in ONNX Runtime: the encoder and its heads, on the CPU, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError, install_hint
from tercet.files import reading
from tercet.specs import Mode, TaskSpec

MODEL_FILE = "model.onnx"
HEADS_FOLDER = "heads"
MISSING = f"needs ONNX Runtime: {install_hint('onnx')}."
# On a CPU the fused addition and norm take four times as long as the two separately.
SLOW = ["SkipLayerNormFusion", "BiasGeluFusion"]

Floats = NDArray[np.float32]


class OnnxNetwork:
    """The graphs of a folder; a head is opened when it is first used."""

    def __init__(self, folder: Path, *, tasks: Mapping[str, TaskSpec]) -> None:
        self.folder = folder
        self.tasks = tasks
        self._encoder = _open(self.file)
        self._heads: dict[tuple[str, Mode], Any] = {}
        self._inputs = {value.name for value in self._encoder.get_inputs()}
        self._check_encoder()
        for name, mode in exported_heads(tasks):
            if not (path := head_file(folder, name, mode)).is_file():
                raise TercetError(f"{path}: is missing from this model folder.")

    @property
    def file(self) -> Path:
        """The encoder's graph."""
        return self.folder / MODEL_FILE

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self._encoder.get_outputs()[0].shape[-1])

    @property
    def max_tokens(self) -> int:
        """Tokens of the longest row that the encoder can take."""
        return self._property("max_tokens")

    @property
    def vocabulary(self) -> int:
        """Ids that the encoder knows."""
        return self._property("vocabulary")

    def vectors(
        self, ids: NDArray[np.int64], types: NDArray[np.int64], mask: NDArray[np.int64]
    ) -> Floats:
        """Padded ids, types and mask, each [rows, length] -> vectors [rows, width].

        mask: 1 for tokens, 0 for the padding after them
        """
        feeds = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
        if "lengths" in self._inputs:  # as graphs were written before 0.2
            feeds = {"ids": ids, "types": types, "lengths": mask.sum(axis=1)}
        feeds = {name: values for name, values in feeds.items() if name in self._inputs}
        with reading(self.file):
            vectors: Floats = self._encoder.run(["vectors"], feeds)[0]
        return vectors

    def head(self, task: str, mode: Mode, *vectors: Floats) -> Floats:
        """The outputs of a head for the vectors that it reads, each [n, width] -> [n, outputs]."""
        session = self._open_head(task, mode)
        with reading(head_file(self.folder, task, mode)):
            return _run_head(session, vectors)

    def open_heads(self) -> None:
        """Open every head that predicts."""
        for task, mode in exported_heads(self.tasks):
            self._open_head(task, mode)

    def _open_head(self, task: str, mode: Mode) -> Any:
        if (task, mode) not in self._heads:
            path = head_file(self.folder, task, mode)
            session = _open(path)
            with reading(path):
                self._check_head(path, session, outputs=self.tasks[task].outputs(mode))
            self._heads[task, mode] = session
        return self._heads[task, mode]

    def _check_encoder(self) -> None:
        """Raise if the graph does not give vectors: of three rows of one token each."""
        ones = np.ones((3, 1), np.int64)
        vectors = self.vectors(ones, 0 * ones, ones)
        shape = getattr(vectors, "shape", None)
        if shape is None or shape[:1] != (3,) or len(shape) != 2 or vectors.dtype != np.float32:
            raise TercetError(f"{self.file}: gives {shape}; it should give a vector for each row.")
        if not np.isfinite(vectors).all():
            raise TercetError(f"{self.file}: gives vectors that are not finite.")

    def _check_head(self, path: Path, session: Any, *, outputs: int) -> None:
        """Raise if a graph is not that of a head: another's could give outputs of another shape."""
        vectors = np.full((3, self.width), self.width**-0.5, np.float32)
        found = _run_head(session, [vectors] * len(session.get_inputs()))
        if getattr(found, "shape", None) != (3, outputs) or found.dtype != np.float32:
            raise TercetError(
                f"{path}: gives outputs of shape {getattr(found, 'shape', None)} for three rows; "
                f"it should be (3, {outputs})."
            )
        if not np.isfinite(found).all():
            raise TercetError(f"{path}: gives outputs that are not finite.")

    def _property(self, name: str) -> int:
        properties = self._encoder.get_modelmeta().custom_metadata_map
        try:
            return int(properties[name])
        except (KeyError, ValueError) as error:
            raise TercetError(
                f"{self.file}: lacks the property `{name}`; export it again."
            ) from error


def _run_head(session: Any, vectors: Sequence[Floats]) -> Floats:
    names = [value.name for value in session.get_inputs()]
    outputs: Floats = session.run(None, dict(zip(names, vectors, strict=True)))[0]
    return outputs


def exported_heads(tasks: Mapping[str, TaskSpec]) -> list[tuple[str, Mode]]:
    """Task and mode of every head that predicts."""
    return [
        (name, mode)
        for name, task in tasks.items()
        if task.answers
        for mode in task.predicting_modes
    ]


def head_file(folder: Path, task: str, mode: Mode) -> Path:
    return folder / HEADS_FOLDER / f"{task}.{mode}.onnx"


def _open(path: Path) -> Any:
    """A session on one thread; several may run in it at once."""
    try:
        import onnxruntime as ort
        from onnxruntime.capi import onnxruntime_pybind11_state as state
    except ImportError as error:
        raise TercetError(f"{path.parent}: {MISSING}") from error
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    with reading(path):  # a name in it that is not UTF-8 is not among the errors below
        try:
            return ort.InferenceSession(
                path,
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=SLOW,
                enable_fallback=0,  # it would print to stdout and try the same again
            )
        except state.NoSuchFile as error:
            raise TercetError(f"{path}: is missing from this model folder.") from error
        except (
            *(state.Fail, state.InvalidGraph, state.InvalidProtobuf, state.InvalidArgument),
            *(state.NotImplemented, state.RuntimeException),
        ) as error:
            reason = " ".join(str(error).split())[:200]
            raise TercetError(f"{path}: cannot be read as an ONNX model: {reason}") from error
