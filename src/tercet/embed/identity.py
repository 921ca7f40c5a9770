"""Which model made a vector: its name, and a hash of all that decides what it gives."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from tercet.model import Model


class Identity(NamedTuple):
    """What is stored beside vectors, so that those of two models are never mixed.

    name: what the model was called when the vectors were made
    hash: sha256 of its weights, tokenizer and pooling
    """

    name: str
    hash: str
    width: int


def identify(model: Model, name: str | None = None) -> Identity:
    """The identity of a model; `name` is what it was loaded by, a folder or a hub id."""
    chosen = model.info.encoder if name is None else name
    if Path(chosen).is_dir():
        chosen = str(Path(chosen).resolve())
    return Identity(chosen, _hash(model), model.width)


def _hash(model: Model) -> str:
    info = model.info
    digest = hashlib.sha256()
    settings = [info.pooling, info.max_tokens, info.lower_case, model.tokenizer.fingerprint]
    digest.update(json.dumps(settings).encode())
    for part in model.engine.encoder_bytes():
        digest.update(part)
    return digest.hexdigest()
