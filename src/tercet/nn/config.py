"""Reading config.json of a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from tercet.errors import TercetError
from tercet.files import read_json_object
from tercet.nn.architectures.record import ARCHITECTURES, EncoderConfig

CONFIG_FILE = "config.json"
ADAPTER_FILE = "adapter_config.json"


def read_config(folder: Path) -> EncoderConfig:
    """The encoder that `config.json` of a Hugging Face folder describes."""
    path = folder / CONFIG_FILE
    _refuse_adapter(folder)
    source = read_json_object(path)
    model_type = source.get("model_type")
    known_type = isinstance(model_type, str) and model_type in ARCHITECTURES
    _refuse_code(path, source.get("auto_map"), is_known=known_type)
    if not isinstance(model_type, str) or not known_type:
        known = ", ".join(ARCHITECTURES)
        raise TercetError(f"{path}: model_type is {model_type!r}; it should be one of {known}")
    architecture = ARCHITECTURES[model_type]
    for key, right in architecture.required:
        if source.get(key, right) not in (right, None):
            raise TercetError(f"{path}: {key} is {source[key]!r}; only {right!r} is supported")
    keys = architecture.config.config_keys()
    values = {name: source[key] for name, key in keys.items() if key in source}
    absent = architecture.config.absent
    try:
        config = architecture.config.model_validate({**absent, **values, "source": source})
    except ValidationError as error:
        mistake = architecture.config.mistake(error, names=keys)
        raise TercetError(f"{path}: {mistake}") from None
    if config.width % config.heads:
        raise TercetError(
            f"{path}: {keys['width']} {config.width} is not a multiple of {keys['heads']}"
            f" {config.heads}"
        )
    if config.max_tokens < 1:
        raise TercetError(
            f"{path}: {keys['positions']} is {config.positions};"
            f" it should be above {config.first_position}"
        )
    return config


def _refuse_adapter(folder: Path) -> None:
    """Raise if a folder holds what was trained beside an encoder, and not the encoder."""
    path = folder / ADAPTER_FILE
    if not path.is_file() or any(folder.glob("model*.safetensors")):
        return
    base = read_json_object(path).get("base_model_name_or_path")
    raise TercetError(
        f"{folder} holds an adapter of {base!r} and no encoder: merge both with peft's"
        " merge_and_unload(), and save the result with save_pretrained(folder)"
    )


def _refuse_code(path: Path, auto_map: object, *, is_known: bool) -> None:
    """Raise if an encoder is computed by code of its own, whatever its model_type says."""
    if isinstance(auto_map, dict) and ("AutoModel" in auto_map or (auto_map and not is_known)):
        raise TercetError(
            f"{path}: auto_map names code that this encoder needs, and no code of a folder is ever"
            f" run; use an encoder of one of the types {', '.join(ARCHITECTURES)}"
        )
