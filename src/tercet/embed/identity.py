"""Which model made a vector: its name, and a hash of everything its vectors depend on."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from tercet.model import Model


class Identity(NamedTuple):
    """Stored with vectors, so that those of two models are never mixed.

    name: what `tercet.load` finds the model by
    hash: sha256 of its weights, tokenizer and pooling
    """

    name: str
    hash: str
    width: int

    @classmethod
    def of(cls, model: Model) -> Identity:
        return cls(model.source, _hash(model), model.width)


def _hash(model: Model) -> str:
    info = model.info
    digest = hashlib.sha256()
    settings = [info.pooling, info.max_tokens, info.lower_case, model.tokenizer.fingerprint]
    digest.update(json.dumps(settings).encode())
    for part in model.engine.encoder_bytes():
        digest.update(part)
    return digest.hexdigest()
