"""Index: texts with their vectors on disk, to be searched, added to, updated and deleted from."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tercet.data.stream import ID, TEXT, VECTOR, TextFile
from tercet.embed.identity import identify
from tercet.embed.schema import HASH_KEY, NAME_KEY, vectors_schema
from tercet.embed.staged import stage, work_folder
from tercet.errors import TercetError
from tercet.model import Model, load
from tercet.search import ann, changes
from tercet.search.exact import InMemory
from tercet.search.lance_store import is_index, metadata_of, open_dataset, telling, write_index
from tercet.search.rerank import TO_ORDER, Cross

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that was found.

    score: the cosine of its vector and the query's
    cross: what the cross mode says of query and text, where it was asked
    columns: the row's other columns
    """

    id: str
    text: str
    score: float
    cross: float | None
    columns: dict[str, Any]


class Index:
    """One version of an index; `refresh` takes the newest. Threads may search at once."""

    def __init__(self, folder: str, dataset: Any, model: Model | None = None) -> None:
        self.folder = folder
        self._dataset = dataset
        self._model: Model | None = None
        self._memory: InMemory | None = None
        self._lock = Lock()
        if model is not None:
            self._model = self._checked(model)

    @classmethod
    def open(cls, folder: str | Path, model: Model | None = None) -> Index:
        """The newest version of an index.

        model: the one that made it; loaded by its stored name when it is first needed, if left out
        """
        return cls(str(folder), open_dataset(str(folder)), model)

    @classmethod
    def build(
        cls,
        folder: str | Path,
        file: TextFile,
        model: Model,
        *,
        name: str | None = None,
        progress: ann.Progress | None = None,
    ) -> Index:
        """Embed a file into an index; one that stands there is replaced when all is ready.

        name: what the model was loaded by, so that searching can load it again
        An interrupted build goes on where it was when it is called again.
        """
        folder = Path(folder)
        check_target(folder)
        identity = identify(model, name)
        work = work_folder(folder)
        told = ann.phase(progress, "embedding")
        staged = stage(file, model, identity, work, skip_empty=True, progress=told)
        if not staged.rows:
            raise TercetError(f"{file.path}: no row has a text.")
        schema = vectors_schema(file.columns, identity)
        batches = (
            pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in staged.batches()
        )
        write_index(str(folder), batches, schema)
        index = cls(str(folder), open_dataset(str(folder)))
        index._model = model
        index.optimise(progress)
        shutil.rmtree(work, ignore_errors=True)
        return index

    def __repr__(self) -> str:
        return f"Index({self.folder!r}, rows={self.count()}, model={self.model_name!r})"

    @property
    def model_name(self) -> str:
        return metadata_of(self._dataset)[NAME_KEY]

    @property
    def model_hash(self) -> str:
        return metadata_of(self._dataset)[HASH_KEY]

    @property
    def version(self) -> int:
        return int(self._dataset.version)

    @property
    def columns(self) -> list[str]:
        """The other columns than id, text and vector."""
        return [name for name in self._dataset.schema.names if name not in (ID, TEXT, VECTOR)]

    @property
    def setting(self) -> ann.Setting | None:
        """How the ANN index is searched; None where search is exact."""
        return ann.setting_of(self._dataset)

    @property
    def model(self) -> Model:
        """The model that made the vectors."""
        with self._lock:
            if self._model is None:
                self._model = self._checked(load(self.model_name))
            return self._model

    def count(self, where: str | None = None) -> int:
        """Rows of the index, or those that a condition holds for."""
        with telling(self.folder):
            return int(self._dataset.count_rows(where))

    def refresh(self) -> None:
        """Take the newest version."""
        dataset = open_dataset(self.folder)
        with self._lock:
            self._dataset, self._memory = dataset, None

    def search(
        self,
        queries: str | Sequence[str],
        *,
        top: int = 10,
        where: str | None = None,
        rerank: int = 0,
    ) -> list[list[Hit]]:
        """The nearest rows of each query, the best first; one query is a list of one.

        where: a condition on columns, in SQL: `price > 3 and lang = 'en'`
        rerank: so many of the nearest are judged by the cross mode too, and ordered by both modes
        """
        asked = [queries] if isinstance(queries, str) else list(queries)
        for query in asked:
            if not query.strip():
                raise TercetError("A query is empty; give some words to search for.")
        cross = Cross(self.model, TO_ORDER) if rerank else None
        found = self.nearest(self.model.embed(asked), top=max(top, rerank), where=where)
        if cross is not None:
            found = _reranked(cross, asked, found, rerank)
        return [hits[:top] for hits in found]

    def nearest(
        self, vectors: Floats, *, top: int = 10, where: str | None = None
    ) -> list[list[Hit]]:
        """The nearest rows of each vector of the model's, float32 [n, width]."""
        if top < 1:
            raise TercetError(f"`top` is {top}; it should be at least 1.")
        if (
            vectors.ndim != 2
            or vectors.shape[1] != self._dataset.schema.field(VECTOR).type.list_size
        ):
            raise TercetError(
                f"{self.folder}: holds vectors of another width than the query's "
                f"{list(vectors.shape)}; search with the model {self.model_name}."
            )
        with telling(self.folder):
            tables = self._find(vectors, top, where)
        return [_hits(table) for table in tables]

    def add(self, file: TextFile, *, progress: ann.Progress | None = None) -> int:
        """Add rows whose ids are new; how many."""
        return self._change(file, changes.add, progress)

    def update(self, file: TextFile, *, progress: ann.Progress | None = None) -> int:
        """Replace rows by their ids, and add those whose ids are new; how many."""
        return self._change(file, changes.update, progress)

    def delete(self, ids: Iterable[str], *, progress: ann.Progress | None = None) -> int:
        """Delete rows by their ids; how many there were."""
        with telling(self.folder):
            deleted = changes.delete(self._dataset, list(ids))
        self.refresh()
        self._settle(progress)
        return deleted

    def optimise(self, progress: ann.Progress | None = None) -> None:
        """Choose how the rows are searched: exactly while few, else by an ANN index.

        The ANN index is searched as widely as a sample of rows needs to be found again.
        """
        with telling(self.folder):
            ann.optimise(self._dataset, progress)
        self.refresh()

    def _change(self, file: TextFile, change: changes.Change, progress: ann.Progress | None) -> int:
        changes.check_fits(self.folder, self._dataset, file)
        identity = identify(self.model)
        work = work_folder(self.folder)
        told = ann.phase(progress, "embedding")
        if change is changes.add:
            changes.check_new(self.folder, self._dataset, file)
        staged = stage(file, self.model, identity, work, skip_empty=True, progress=told)
        with telling(self.folder):
            changed = change(self._dataset, staged)
        shutil.rmtree(work, ignore_errors=True)
        self.refresh()
        self._settle(progress)
        return changed

    def _settle(self, progress: ann.Progress | None) -> None:
        with telling(self.folder):
            ann.settle(self._dataset, progress)
        self.refresh()

    def _find(self, vectors: Floats, top: int, where: str | None) -> list[pa.Table]:
        """For each vector, its nearest rows with a column `_score`, the best first."""
        setting = self.setting
        if setting is None and ann.fits_memory(self._dataset):
            with self._lock:
                if self._memory is None:
                    self._memory = InMemory.load(self._dataset)
                memory = self._memory
            return memory.nearest(vectors, top, where)
        return ann.nearest(self._dataset, vectors, top, where, setting)

    def _checked(self, model: Model) -> Model:
        identity = identify(model)
        if identity.hash != self.model_hash:
            raise TercetError(
                f"{self.folder}: its vectors were made by the model {self.model_name} (hash "
                f"{self.model_hash[:12]}), and this is another (hash {identity.hash[:12]}); give "
                "that model, or build the index again with this one."
            )
        return model


def check_target(folder: Path) -> None:
    """Raise where an index would be written over something else."""
    if folder.exists() and not folder.is_dir():
        raise TercetError(f"{folder}: is a file; give a folder for the index.")
    if is_index(str(folder)):
        open_dataset(str(folder))
    elif folder.is_dir() and any(folder.iterdir()):
        raise TercetError(
            f"{folder}: holds other files and is no index, so it is not written over; give a new "
            "or an empty folder."
        )


def _hits(table: pa.Table) -> list[Hit]:
    rows = table.to_pylist()
    return [Hit(row.pop(ID), row.pop(TEXT), round(row.pop("_score"), 6), None, row) for row in rows]


def _reranked(
    cross: Cross, queries: Sequence[str], found: Sequence[Sequence[Hit]], count: int
) -> list[list[Hit]]:
    """The first `count` hits of each query by the sum of both modes' scores, then the others."""
    pairs = [
        (query, hit.text)
        for query, hits in zip(queries, found, strict=True)
        for hit in hits[:count]
    ]
    scores = iter(cross.scores(pairs).tolist())
    ordered = []
    for hits in found:
        judged = [
            Hit(hit.id, hit.text, hit.score, round(next(scores), 6), hit.columns)
            for hit in hits[:count]
        ]
        judged.sort(key=lambda hit: -(hit.score + (hit.cross or 0.0)))
        ordered.append([*judged, *hits[count:]])
    return ordered
