"""The schema of tables of vectors: id, text, other columns, vector, and which model made them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tercet.data.stream import VECTOR
from tercet.embed.identity import Identity

FORMAT = 1
FORMAT_KEY, NAME_KEY, HASH_KEY = "tercet.format", "tercet.model.name", "tercet.model.hash"


def vectors_schema(columns: pa.Schema, identity: Identity) -> pa.Schema:
    """The schema of rows with these columns and their vectors."""
    vector = pa.field(VECTOR, pa.list_(pa.float32(), identity.width), nullable=False)
    metadata = {FORMAT_KEY: str(FORMAT), NAME_KEY: identity.name, HASH_KEY: identity.hash}
    return pa.schema([*columns, vector], metadata=metadata)


def vector_array(vectors: NDArray[np.float32]) -> pa.FixedSizeListArray:
    """float32 [n, width] as a column of vectors."""
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
