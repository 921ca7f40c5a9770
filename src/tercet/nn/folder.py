"""Encoders in Hugging Face folders: config.json and safetensors, never a pickle."""

from __future__ import annotations

import math
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tercet.errors import TercetError
from tercet.files import read_json_object, refuse_pointer, replace_file, write_json
from tercet.nn.architectures.record import EncoderConfig
from tercet.nn.config import CONFIG_FILE, read_config
from tercet.nn.encoder import Encoder
from tercet.nn.names import (
    from_hugging_face,
    hugging_face_names,
    plain_names,
    to_hugging_face,
)

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
FAR_MORE = 16


def load_encoder(
    folder: Path,
    *,
    dropout: float | None = None,
    attention_dropout: float | None = None,
    layers: int | None = None,
) -> Encoder:
    """Load an encoder as float32, in training mode; None takes a rate from config.json.

    layers: how many of its first layers are read; default: all
    """
    if not folder.is_dir():
        raise TercetError(f"{folder} is not a folder; an encoder is loaded from a folder")
    rates = {"dropout": dropout, "attention_dropout": attention_dropout}
    config = read_config(folder).replace(**{k: v for k, v in rates.items() if v is not None})
    file, stored = _open_weights(folder)
    names = plain_names(stored, architecture=config.architecture, file=file)
    config = config.replace(pooler=any(name.startswith("pooler.") for name in names))
    _check_sizes(config, [stored[theirs].shape for theirs in names.values()], file)
    with torch.device("meta"), Unfilled():
        encoder = Encoder(config)
    if layers is not None:
        kept = encoder.first(layers)
        left_out = encoder.state_dict().keys() - kept.state_dict().keys()
        unread = hugging_face_names(left_out, config.architecture)
        names = {name: theirs for name, theirs in names.items() if name not in unread}
        encoder = kept
    state = from_hugging_face(
        _read({name: stored[theirs] for name, theirs in names.items()}),
        {name: parameter.shape for name, parameter in encoder.state_dict().items()},
        architecture=config.architecture,
        file=file,
    )
    check_finite(state, file)
    encoder.load_state_dict(state, assign=True)
    return encoder


def _check_sizes(config: EncoderConfig, shapes: Sequence[Sequence[int]], file: Path) -> None:
    """Raise if config.json describes far more than the file holds, before anything of that size is
    made; what differs by less is named tensor by tensor later."""
    keys = config.config_keys()
    numbers = sum(map(math.prod, shapes))
    sizes = {name: getattr(config, name) * config.width for name in ("vocabulary", "positions")}
    sizes |= {name: getattr(config, name) for name in ("width", "feed_forward")}
    for name, size in {**sizes, "relative_buckets": config.relative_buckets}.items():
        if size > FAR_MORE * numbers:
            raise _too_large(file, keys.get(name, name), getattr(config, name))
    if config.layers > len(shapes):
        raise _too_large(file, keys["layers"], config.layers)


def _too_large(file: Path, key: str, value: int) -> TercetError:
    return TercetError(
        f"{file.with_name(CONFIG_FILE)}: {key} is {value}, which is more than {file.name} holds"
    )


def check_finite(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Raise if a number is infinite or not a number."""
    for name, tensor in tensors.items():
        # A sum is quick, and finite if all numbers are, unless it overflows.
        if tensor.sum().isfinite() or tensor.isfinite().all():
            continue
        raise TercetError(f"{file}: tensor {name!r} holds a number that is not finite")


class Unfilled(TorchFunctionMode):
    """New weights are not initialised: they come from a file.

    Initialising weights without memory would import torch's compiler, which takes seconds.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        options = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__:
            return options["tensor"] if "tensor" in options else args[0]
        return func(*args, **options)


def save_encoder(
    encoder: Encoder, folder: Path, *, types: Mapping[str, torch.dtype] | None = None
) -> None:
    """Write config.json and model.safetensors under the names that `transformers` reads.

    types: of tensors to store in another type than the encoder's, by these names
    Each file is replaced whole.
    """
    config = encoder.config
    tensors = as_types(to_hugging_face(encoder.state_dict(), config.architecture), types or {})
    fields = {key: value for key, value in config.to_json().items() if key != "dtype"}
    dtype = str(encoder.embeddings.words.weight.dtype).removeprefix("torch.")
    fields = dict(sorted({**fields, "torch_dtype": dtype}.items()))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TercetError(f"{folder} cannot be made: {error.strerror}") from None
    try:
        with replace_file(folder / WEIGHTS_FILE) as writing:
            save_tensors(tensors, writing)
        write_json(folder / CONFIG_FILE, fields)
    except (SafetensorError, OSError) as error:
        raise TercetError(f"{folder} cannot be written: {error}") from None


def as_types(tensors: Mapping[str, Tensor], types: Mapping[str, torch.dtype]) -> dict[str, Tensor]:
    """The tensors, those of some names in other types."""
    return {name: tensor.to(types.get(name, tensor.dtype)) for name, tensor in tensors.items()}


def save_tensors(tensors: dict[str, Tensor], file: Path) -> None:
    """Write a safetensors file with the usual permissions.

    The library itself makes it readable for its owner only, and a server that runs as another user
    could not load the model.
    """
    file.touch()
    mode = stat.S_IMODE(file.stat().st_mode)
    save_file(tensors, file, metadata={"format": "pt"})
    file.chmod(mode)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A tensor of a file that may not have been read."""

    path: Path
    name: str
    shape: Sequence[int]


def _open_weights(folder: Path) -> tuple[Path, dict[str, _Stored]]:
    """The file that lists the tensors, and the tensors by their names in it."""
    whole, index = folder / WEIGHTS_FILE, folder / INDEX_FILE
    if whole.exists():
        return whole, _stored_in(whole)
    if index.exists():
        return index, _stored_in_shards(index)
    if (folder / "pytorch_model.bin").exists():
        raise TercetError(
            f"{folder} has only pytorch_model.bin, a pickle, which is never opened here:"
            " if you trust it, convert it with transformers'"
            " AutoModel.from_pretrained(folder).save_pretrained(folder)"
        )
    raise TercetError(f"{folder} has no {WEIGHTS_FILE}; an encoder folder needs it")


def _stored_in_shards(index: Path) -> dict[str, _Stored]:
    places = read_json_object(index).get("weight_map")
    if not isinstance(places, dict):
        raise TercetError(f"{index}: weight_map is {places!r}; it should be an object")
    for name, shard in places.items():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise TercetError(
                f"{index}: weight_map.{name} is {shard!r}; it should be a file of this folder"
            )
    tensors: dict[str, _Stored] = {}
    for shard in sorted(set(places.values())):
        tensors.update(_stored_in(index.with_name(shard)))
    return tensors


def _stored_in(path: Path) -> dict[str, _Stored]:
    with _opened(path) as file:
        names = file.keys()
        return {name: _Stored(path, name, file.get_slice(name).get_shape()) for name in names}


def _read(stored: Mapping[str, _Stored]) -> dict[str, Tensor]:
    """The tensors by the same names; each file is opened once."""
    tensors: dict[str, Tensor] = {}
    for path in sorted({each.path for each in stored.values()}):
        with _opened(path) as file:
            own = {name: each.name for name, each in stored.items() if each.path == path}
            tensors |= {name: file.get_tensor(theirs) for name, theirs in own.items()}
    return tensors


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise TercetError(f"{path} does not exist; {INDEX_FILE} names it") from None
    except (SafetensorError, OSError, ValueError) as error:
        if isinstance(error, SafetensorError):
            refuse_pointer(path)
        raise TercetError(f"{path} is not a whole safetensors file: {error}") from None
