"""Reading config.json of a Hugging Face folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from tercet.errors import TercetError
from tercet.nn.architectures.record import ARCHITECTURES, EncoderConfig

CONFIG_FILE = "config.json"


def read_config(folder: Path) -> EncoderConfig:
    """The encoder that `config.json` of a Hugging Face folder describes."""
    path = folder / CONFIG_FILE
    source = read_json(path)
    model_type = source.get("model_type")
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise TercetError(f"{path}: model_type is {model_type!r}; it should be one of {known}")
    architecture = ARCHITECTURES[model_type]
    for key, right in architecture.required.items():
        if source.get(key, right) not in (right, None):
            raise TercetError(f"{path}: {key} is {source[key]!r}; only {right!r} is supported")
    keys = architecture.config.config_keys()
    values = {name: source[key] for name, key in keys.items() if key in source}
    try:
        config = architecture.config.model_validate({**values, "source": source})
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
            f" it should be above {architecture.first_position}"
        )
    return config


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that must hold one object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TercetError(f"{path} does not exist; an encoder folder needs it") from None
    except OSError as error:
        raise TercetError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TercetError(f"{path} is not a text file in UTF-8; it should be JSON") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise TercetError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise TercetError(f"{path} holds a JSON {type(content).__name__}; it should be an object")
    return cast("dict[str, Any]", content)
