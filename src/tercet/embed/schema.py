"""The schema of tables of vectors: id, text, other columns, vector, and which model made them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tercet.data.stream import ID, TEXT, VECTOR
from tercet.embed.identity import Identity
from tercet.errors import TercetError

FORMAT = 1
FORMAT_KEY, NAME_KEY, HASH_KEY = "tercet.format", "tercet.model.name", "tercet.model.hash"


def vectors_schema(columns: pa.Schema, identity: Identity) -> pa.Schema:
    """The schema of vectors of rows with these columns: id, text and others."""
    check_columns(columns)
    vector = pa.field(VECTOR, pa.list_(pa.float32(), identity.width), nullable=False)
    metadata = {FORMAT_KEY: str(FORMAT), NAME_KEY: identity.name, HASH_KEY: identity.hash}
    return pa.schema([*columns, vector], metadata=metadata)


def check_columns(columns: pa.Schema) -> None:
    """Raise unless the columns begin with id and text, both strings, and hold no vector."""
    for name in (ID, TEXT):
        if columns.names.count(name) != 1 or columns.field(name).type != pa.string():
            raise TercetError(f"An index needs one column `{name}` of strings.")
    if VECTOR in columns.names:
        raise TercetError(f"An index makes its own column `{VECTOR}`; rename yours.")


def vector_array(vectors: NDArray[np.float32]) -> pa.FixedSizeListArray:
    """float32 [n, width] as a column of vectors."""
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
