"""A model from a folder, a run, a name or a hub id."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tercet.errors import ArgumentError, TercetError, needing_torch
from tercet.files import reading
from tercet.folders.finding import find_folder
from tercet.folders.model_folder import (
    Parts,
    is_model_folder,
    load_model_folder,
    untrained_depth,
)
from tercet.folders.onnx_folder import is_onnx_folder, load_onnx_folder
from tercet.folders.seen_file import read_seen
from tercet.infer.base import Precision
from tercet.model.model import Model
from tercet.specs import Long

# Torch is imported where it is needed: a model of ONNX graphs runs without it.
if TYPE_CHECKING:
    import torch


def load(
    source: str | Path | None = None,
    *,
    device: str | None = None,
    precision: Precision | None = None,
    long: Long | None = None,
    layers: int | None = None,
) -> Model:
    """Load a model.

    source: a model folder, an ONNX folder, a run folder, a plain Hugging Face or
        sentence-transformers folder, a name of `tercet weights`, or a model hub id; default:
        `tercet/small`, the model that comes with the package
    device: `cpu`, `cuda`, `cuda:1`; default: a GPU if there is one
    precision: in which the encoder computes, `fp32` or `bf16`; default: the environment variable
        TERCET_PRECISION, else bf16 on GPUs that have it. On Intel CPUs with AMX, too, bf16 is
        several times as fast
    long: what to do with texts longer than the model reads at once: `truncate` them, or read all of
        them in overlapping `windows` whose vectors and outputs are averaged; default: as the model
        was made
    layers: how many of its first layers to load and use, for a model that was trained for several
        `depths`: fewer layers are faster and less accurate; default: all

    >>> model = tercet.load()
    >>> model
    Model(encoder='all-minilm-l6-v2', width=384, tasks=sentiment, paraphrase, similarity)
    """
    if long not in (None, *get_args(Long)):
        raise ArgumentError(f"`long` is {long!r}; it is truncate or windows.", "long")
    if precision not in (None, *get_args(Precision)):
        raise ArgumentError(f"`precision` is {precision!r}; it is fp32 or bf16.", "precision")
    model = _load(source, device=device, precision=precision, layers=layers)
    if long is not None:
        model.info = model.info.model_copy(update={"long": long})
    return model


def _load(
    source: str | Path | None,
    *,
    device: str | None,
    precision: Precision | None,
    layers: int | None,
) -> Model:
    folder, origin = find_folder(source)
    if is_onnx_folder(folder):
        if layers is not None:
            raise ArgumentError(
                f"{folder}: ONNX graphs have the layers that they were exported with; leave out "
                "`layers`.",
                "layers",
            )
        if device not in (None, "cpu"):
            raise TercetError(f"{folder}: ONNX graphs run on the CPU, not on {device!r}.")
        if precision is not None:
            raise ArgumentError(
                f"{folder}: ONNX graphs have the precision that they were exported with; leave out "
                "`precision`.",
                "precision",
            )
        with reading(folder):
            return Model(*load_onnx_folder(folder), source=origin, sketch=read_seen(folder))
    with needing_torch():
        from tercet.infer.half import usual_precision

        chosen = _device(device)
        precision = precision or usual_precision(chosen)
    with reading(folder):
        if is_model_folder(folder):
            parts = load_model_folder(folder, layers=layers)
        else:
            parts = _foreign(folder, origin)
            if layers not in (None, full := parts.network.encoder.config.layers):
                raise untrained_depth(folder, layers, [full])
        sketch = read_seen(folder)
    return Model(
        parts.network.to(chosen),
        parts.tokenizer,
        parts.info,
        source=origin,
        sketch=sketch,
        precision=precision,
        layers=layers,
    )


def _foreign(folder: Path, source: str) -> Parts:
    from tercet.folders.foreign_folder import is_foreign_folder, load_foreign_folder

    if not is_foreign_folder(folder):
        raise TercetError(
            f"{folder}: is not a model: it has no tercet.json, modules.json or config.json."
        )
    name = Path(source).name if Path(source).is_absolute() else source
    return load_foreign_folder(folder, name=name)


def _device(name: str | None) -> torch.device:
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise TercetError(f"Device {name!r} cannot be used here: {reason}") from error
    return device
