"""Reading config.json of a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from tercet.errors import TercetError
from tercet.files import read_json_object
from tercet.nn.architectures.record import ARCHITECTURES, EncoderConfig

CONFIG_FILE = "config.json"


def read_config(folder: Path) -> EncoderConfig:
    """The encoder that `config.json` of a Hugging Face folder describes."""
    path = folder / CONFIG_FILE
    source = read_json_object(path)
    model_type = source.get("model_type")
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
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
