"""Where the Ray engine's processes write parts: Parquet files, or fragments of a Lance dataset."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tercet.search.embed_files import Folder
from tercet.search.lance_store import lance, telling


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Each part a Parquet file of these columns in a folder."""

    folder: Folder
    schema: pa.Schema

    def write(self, rows: pa.Table) -> tuple[dict[str, str], None]:
        name = f"{uuid.uuid4().hex}.parquet"
        stream = pa.BufferOutputStream()
        pq.write_table(rows.select(self.schema.names).cast(self.schema), stream, compression="zstd")
        return {name: self.folder.write(name, stream.getvalue())}, None


@dataclass(frozen=True, slots=True)
class LanceSink:
    """Each part a fragment of a Lance dataset, which nobody sees until all are committed."""

    folder: str
    schema: pa.Schema

    def write(self, rows: pa.Table) -> tuple[dict[str, str], str]:
        with telling(self.folder):
            (fragment,) = lance().fragment.write_fragments(
                rows.cast(self.schema), self.folder, schema=self.schema, mode="overwrite"
            )
        data = Folder.at(self.folder) / "data"
        files = {file.path: data.sha256(file.path) or "" for file in fragment.files}
        return files, json.dumps(fragment.to_json())
