"""Lance datasets as indexes: their schema and metadata, their commits, their errors in a sentence.

Every change is one commit, so that a reader sees the old version or the new one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tercet.embed.schema import FORMAT, FORMAT_KEY, HASH_KEY
from tercet.errors import TercetError

ANN_KEY = "tercet.ann"


def lance() -> Any:
    """The module `lance`, which is an extra."""
    # Lance warns on stderr of what is no fault, such as that a dataset is new.
    os.environ.setdefault("LANCE_LOG", "error")
    try:
        import lance
    except ImportError as error:
        raise TercetError(
            "An index needs Lance, which is not installed: pip install 'tercet[search]'."
        ) from error
    return lance


def write_index(folder: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Commit rows as the new and only content of an index."""
    reader = pa.RecordBatchReader.from_batches(schema, iter(batches))
    with telling(folder):
        lance().write_dataset(reader, folder, mode="overwrite")


def commit_fragments(folder: str, fragments: Sequence[Any], schema: pa.Schema) -> None:
    """Commit fragments that lie in the folder already as the new and only content of an index."""
    with telling(folder):
        operation = lance().LanceOperation.Overwrite(schema, list(fragments))
        lance().LanceDataset.commit(folder, operation)


def open_dataset(folder: str, version: int | None = None) -> Any:
    """The dataset of an index, after a look whether it is one."""
    if "://" not in folder and not (Path(folder) / "_versions").is_dir():
        raise TercetError(f"{folder}: is no index; make one with: tercet index FILE --out FOLDER")
    with telling(folder):
        dataset = lance().dataset(folder, version=version)
        metadata = metadata_of(dataset)
    found = metadata.get(FORMAT_KEY)
    if found is None or HASH_KEY not in metadata:
        raise TercetError(f"{folder}: is a Lance dataset, but no index that Tercet made.")
    if not found.isdecimal() or int(found) > FORMAT:
        raise TercetError(
            f"{folder}: has format {found}, and this release of Tercet reads up to {FORMAT}; "
            "upgrade Tercet."
        )
    return dataset


def is_index(folder: str) -> bool:
    """Whether a folder holds a Lance dataset."""
    return (Path(folder) / "_versions").is_dir()


def metadata_of(dataset: Any) -> dict[str, str]:
    stored: Mapping[bytes, bytes] = dataset.schema.metadata or {}
    return {key.decode(): value.decode() for key, value in stored.items()}


@contextmanager
def telling(folder: str) -> Iterator[None]:
    """What Lance complains of, in one sentence that names the index."""
    try:
        yield
    except TercetError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise TercetError(f"{folder}: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    told = str(error)
    if "No space left on device" in told or "File too large" in told:
        return "the disk is full; free some space and run the same command again"
    if "Not found" in told or "No such file" in told:
        missing = re.search(r"[\w/.-]+\.(?:lance|idx|manifest|arrow)", told)
        what = f" ({missing[0]})" if missing else ""
        return f"a file of this index is missing{what}; restore it or build the index again"
    # Lance names the lines of its own source, which say nothing to its users.
    told = re.sub(r",? ?/?[\w/.-]+\.rs:\d+:\d+", "", told).strip(" ,.")
    return " ".join(told.split())[:300]
