"""Tensors between our names and Hugging Face's, by the table of an architecture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from tercet.errors import TercetError
from tercet.nn.architectures.record import Architecture


def to_hugging_face(state: Mapping[str, Tensor], architecture: Architecture) -> dict[str, Tensor]:
    """Our state dict under Hugging Face's names, copied; concatenated tensors are split."""
    theirs: dict[str, Tensor] = {}
    for name, tensor in state.items():
        names = _their_names(name, architecture)
        for part, values in zip(names, tensor.chunk(len(names)), strict=True):
            theirs[part] = values.detach().clone(memory_format=torch.contiguous_format)
    return theirs


def from_hugging_face(
    tensors: Mapping[str, Tensor],
    shapes: Mapping[str, Sequence[int]],
    *,
    architecture: Architecture,
    file: Path,
) -> dict[str, Tensor]:
    """Hugging Face's tensors under our names, float32, copied.

    tensors: by plain names, see `plain_names`
    shapes: those of our state dict, by our names
    """
    parts = {name: _their_names(name, architecture) for name in shapes}
    _refuse_unknown(tensors, {part for names in parts.values() for part in names}, file)
    state: dict[str, Tensor] = {}
    for name, names in parts.items():
        rows, *rest = shapes[name]
        shape = (rows // len(names), *rest)
        state[name] = torch.cat([_checked(tensors, part, shape, file).float() for part in names])
    return state


def hugging_face_names(names: Iterable[str], architecture: Architecture) -> set[str]:
    """Hugging Face's plain names of tensors with these names of ours."""
    return {part for name in names for part in _their_names(name, architecture)}


def plain_names(names: Iterable[str], *, architecture: Architecture, file: Path) -> dict[str, str]:
    """The encoder's tensors: plain name -> name in the file.

    Plain names have no prefix such as `bert.` and no old gamma and beta. Heads of pretraining or
    of a task, and buffers, are skipped.
    """
    plain: dict[str, str] = {}
    for name in names:
        simple = name.removeprefix(architecture.prefix)
        simple = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", simple)
        simple = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", simple)
        if simple.startswith(architecture.ignored):
            continue
        if simple in plain:
            raise TercetError(f"{file} holds both {plain[simple]!r} and {name!r}: one tensor twice")
        plain[simple] = name
    return plain


def _their_names(name: str, architecture: Architecture) -> tuple[str, ...]:
    stem, kind = name.rsplit(".", 1)
    layer = re.match(r"layers\.(\d+)\.", stem)
    number = layer.group(1) if layer else ""
    pattern = re.sub(r"^layers\.\d+\.", "layers.{}.", stem)
    return tuple(f"{their.format(number)}.{kind}" for their in architecture.tensors[pattern])


def _refuse_unknown(tensors: Mapping[str, Tensor], known: set[str], file: Path) -> None:
    unknown = sorted(tensors.keys() - known)
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        shape = list(tensors[unknown[0]].shape)
        raise TercetError(
            f"{file}: tensor {unknown[0]!r} {shape}{more} has no place in the encoder that"
            " config.json describes"
        )


def _checked(
    tensors: Mapping[str, Tensor], name: str, shape: tuple[int, ...], file: Path
) -> Tensor:
    if name not in tensors:
        raise TercetError(f"{file}: tensor {name!r} {list(shape)} is missing")
    tensor = tensors[name]
    if tuple(tensor.shape) != shape:
        raise TercetError(
            f"{file}: tensor {name!r} has shape {list(tensor.shape)};"
            f" config.json requires {list(shape)}"
        )
    if not tensor.is_floating_point():
        raise TercetError(
            f"{file}: tensor {name!r} is {str(tensor.dtype).removeprefix('torch.')};"
            " it should be float32, float16 or bfloat16"
        )
    return tensor
