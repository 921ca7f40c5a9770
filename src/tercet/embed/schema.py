"""Tables of vectors: id, text, other columns and vector, and the identity of the model."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tercet.data.stream import VECTOR
from tercet.model import Model
from tercet.specs import Floats, Long

FORMAT = 1
FORMAT_KEY, NAME_KEY, HASH_KEY = "tercet.format", "tercet.model.name", "tercet.model.hash"
LONG_KEY = "tercet.model.long"
"""How texts were read that are longer than the model reads at once."""
LAYERS_KEY = "tercet.model.layers"
"""How many layers the model was loaded with, where it was not all."""


class Identity(NamedTuple):
    """Stored with vectors, so that those of two models are never mixed.

    name: what `tercet.load` finds the model by
    hash: sha256 of its weights, tokenizer and pooling
    width: numbers that are kept of each vector
    long: how it read texts that are too long
    layers: how many `tercet.load` reads of it; None: all
    """

    name: str
    hash: str
    width: int
    long: Long
    layers: int | None = None

    @classmethod
    def of(cls, model: Model, *, width: int | None = None) -> Identity:
        """width: one of the model's widths; default: the full one"""
        model.check_width(width)
        kept = width or model.width
        return cls(model.source, _hash(model), kept, model.info.long, model.layers)


def _hash(model: Model) -> str:
    info = model.info
    digest = hashlib.sha256()
    settings = [info.pooling, info.max_tokens, info.lower_case, model.tokenizer.fingerprint]
    digest.update(json.dumps(settings).encode())
    for part in model.engine.encoder_bytes():
        digest.update(part)
    return digest.hexdigest()


def vectors_schema(columns: pa.Schema, identity: Identity) -> pa.Schema:
    """The schema of rows with these columns and their vectors."""
    vector = pa.field(VECTOR, pa.list_(pa.float32(), identity.width), nullable=False)
    metadata = {FORMAT_KEY: str(FORMAT), NAME_KEY: identity.name, HASH_KEY: identity.hash}
    metadata[LONG_KEY] = identity.long
    if identity.layers is not None:
        metadata[LAYERS_KEY] = str(identity.layers)
    return pa.schema([*columns, vector], metadata=metadata)


def vector_array(vectors: Floats) -> pa.FixedSizeListArray:
    """float32 [n, width] as a column of vectors."""
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def vectors_of(column: pa.FixedSizeListArray) -> Floats:
    """A column of vectors as float32 [n, width], not copied."""
    vectors: Floats = column.flatten().to_numpy().reshape(-1, column.type.list_size)
    return vectors


def aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns of a schema; missing columns are null."""
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
