"""Index: texts and their vectors on disk, to search, add to, update and delete from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, cast

import pyarrow as pa

from tercet import weights
from tercet.data.stream import ID, TEXT, VECTOR
from tercet.data.text_table import Texts, TextSource, open_texts
from tercet.embed.schema import (
    HASH_KEY,
    LAYERS_KEY,
    LONG_KEY,
    NAME_KEY,
    Identity,
    vectors_schema,
)
from tercet.embed.staged import remove_work, stage, working
from tercet.errors import ArgumentError, TercetError
from tercet.inputs import sentences_of
from tercet.model import Model, find_local_folder, load
from tercet.progress import Phases, silent_phases
from tercet.search import ann, changes
from tercet.search.exact import InMemory
from tercet.search.hits import Hit, hits_of
from tercet.search.lance_store import (
    is_index,
    lance_errors,
    metadata_of,
    open_dataset,
    write_index,
    writing,
)
from tercet.search.rerank import TO_ORDER, Cross, rerank_pairs, reranked
from tercet.specs import Column, Floats, Long


class Index:
    """One version of an index; `refresh` opens the newest. Several threads may search.

    >>> texts = ["Prices rise again.", "A quiet film.", "The home team wins."]
    >>> index = tercet.Index.build("news.index", texts, model)
    >>> index
    Index('news.index', rows=3, model='tercet/small')
    """

    def __init__(self, folder: str, dataset: Any, model: Model | None = None) -> None:
        self.folder = folder
        self._dataset = dataset
        self._model: Model | None = None
        self._memory: InMemory | None = None
        self._lock = Lock()
        if model is not None:
            self.model = model

    @classmethod
    def open(cls, folder: str | Path, model: Model | None = None) -> Index:
        """The newest version of an index.

        model: the model that made it; default: loaded by its stored name when first needed, if it
            is on this machine or a name of `tercet weights`

        >>> tercet.Index.open("news.index").count()
        3
        """
        return cls(str(folder), open_dataset(str(folder)), model)

    @classmethod
    def build(
        cls,
        folder: str | Path,
        texts: Texts,
        model: Model,
        *,
        column: Column | None = None,
        id_column: Column | None = None,
        width: int | None = None,
        phases: Phases = silent_phases,
    ) -> Index:
        """Embed texts into an index; an existing index is replaced when the new one is ready.

        An interrupted build resumes when it is called again.

        texts: a file, sentences, or a table: a data frame, an Arrow table, a list of dicts
        column: the text of a file or table; default: detected, or the only column
        id_column: default: a column called `id`, or else the row's number from 1
        width: one of the model's widths, to which vectors are cut; default: the full one

        >>> films = [{"id": "a", "plot": "A dog finds its way home.", "year": 1994}]
        >>> tercet.Index.build("films.index", films, model, column="plot").columns
        ['year']
        """
        folder = Path(folder)
        check_target(folder)
        file = open_texts(texts, column, id_column)
        identity = Identity.of(model, width=width)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with working(folder, file) as work:
            with phases("embedding") as progress:
                staged = stage(file, model, identity, work, skip_empty=True, progress=progress)
            if not staged.rows:
                raise TercetError(f"{file.path}: no row has a text.")
            schema = vectors_schema(file.columns, identity)
            batches = (
                pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                for batch in staged.batches()
            )
            with writing(str(folder)):
                write_index(str(folder), batches, schema)
                index = cls(str(folder), open_dataset(str(folder)))
                index._model = model
                index._optimise(phases)
        return index

    def __repr__(self) -> str:
        return f"Index({self.folder!r}, rows={self.count()}, model={self.model_name!r})"

    @property
    def model_name(self) -> str:
        """What `tercet.load` finds the model by that made the vectors."""
        return metadata_of(self._dataset)[NAME_KEY]

    @property
    def model_hash(self) -> str:
        return metadata_of(self._dataset)[HASH_KEY]

    @property
    def long(self) -> Long:
        """How texts were read that are longer than the model reads at once."""
        # Before 0.2 they were always truncated.
        return cast(Long, metadata_of(self._dataset).get(LONG_KEY, "truncate"))

    @property
    def layers(self) -> int | None:
        """How many layers the model was loaded with; None: all."""
        layers = metadata_of(self._dataset).get(LAYERS_KEY)
        return None if layers is None else int(layers)

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self._dataset.schema.field(VECTOR).type.list_size)

    @property
    def version(self) -> int:
        return int(self._dataset.version)

    @property
    def columns(self) -> list[str]:
        """The columns other than id, text and vector."""
        return [name for name in self._dataset.schema.names if name not in (ID, TEXT, VECTOR)]

    @property
    def setting(self) -> ann.AnnSetting | None:
        """How the ANN index is searched; None if search is exact."""
        return ann.setting_of(self._dataset)

    @property
    def model(self) -> Model:
        """The model that made the vectors."""
        with self._lock:
            if self._model is None:
                source = self._model_source()
                self._model = self._checked(load(source, layers=self.layers, long=self.long))
            return self._model

    @model.setter
    def model(self, model: Model) -> None:
        self._model = self._checked(model)

    def count(self, where: str | None = None) -> int:
        """The number of rows, or of rows that a condition holds for.

        >>> index.count(), index.count("id > '1'")
        (3, 2)
        """
        with lance_errors(self.folder, where):
            return int(self._dataset.count_rows(where))

    def refresh(self) -> None:
        """Open the newest version.

        >>> index.refresh()
        """
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
        """The nearest rows of each query, the best first.

        where: a condition on columns, in SQL: `price > 3 and lang = 'en'`
        rerank: the number of nearest rows that the cross mode scores too; they are ordered by the
            sum of both scores

        >>> index.search("inflation", top=1)[0][0].text
        'Prices rise again.'
        """
        if rerank < 0:
            raise ArgumentError(f"`rerank` is {rerank}; it must be at least 0.", "rerank")
        texts = [queries] if isinstance(queries, str) else sentences_of(queries)
        for query in texts:
            if not query.strip():
                raise TercetError("A query is empty; give some words to search for.")
        cross = Cross(self.model, TO_ORDER) if rerank else None
        vectors = self.model.embed(texts, width=self.width)
        hits = self.nearest(vectors, top=max(top, rerank), where=where)
        if cross is not None:
            scores = cross.scores(rerank_pairs(texts, hits, rerank))
            hits = reranked(hits, scores.tolist(), rerank)
        return [ranked[:top] for ranked in hits]

    def nearest(
        self, vectors: Floats, *, top: int = 10, where: str | None = None
    ) -> list[list[Hit]]:
        """The nearest rows of each vector, float32 [n, width], the best first.

        >>> [hits[0].id for hits in index.nearest(model.embed(["inflation", "cinema"]), top=1)]
        ['1', '2']
        """
        if top < 1:
            raise ArgumentError(f"`top` is {top}; it must be at least 1.", "top")
        if vectors.ndim != 2 or vectors.shape[1] != self.width:
            raise TercetError(
                f"{self.folder}: has vectors of another width than the query's "
                f"{list(vectors.shape)}; search with the model {self.model_name}."
            )
        with lance_errors(self.folder, where):
            tables = self._find(vectors, top, where)
        return [hits_of(table) for table in tables]

    def add(
        self,
        texts: Texts,
        *,
        column: Column | None = None,
        id_column: Column | None = None,
        phases: Phases = silent_phases,
    ) -> int:
        """Add rows with new ids; arguments as in `build`. Returns their number.

        >>> index.add([{"id": "4", "text": "Rain in the north."}])
        1
        """
        return self._change(open_texts(texts, column, id_column), changes.add, phases)

    def update(
        self,
        texts: Texts,
        *,
        column: Column | None = None,
        id_column: Column | None = None,
        phases: Phases = silent_phases,
    ) -> int:
        """Replace rows by id, and add rows with new ids; arguments as in `build`. Returns their
        number.

        >>> index.update([{"id": "4", "text": "Snow in the north."}])
        1
        """
        return self._change(open_texts(texts, column, id_column), changes.update, phases)

    def delete(self, ids: Iterable[str], *, phases: Phases = silent_phases) -> int:
        """Delete rows by id. Returns the number of deleted rows.

        >>> index.delete(["4"]), index.count()
        (1, 3)
        """
        with writing(self.folder):
            self.refresh()
            with lance_errors(self.folder):
                deleted = changes.delete(self._dataset, list(ids))
            self.refresh()
            self._settle(phases)
        return deleted

    def optimise(self, phases: Phases = silent_phases) -> None:
        """Choose how rows are searched: exactly while they are few, else by an ANN index.

        How widely the ANN index is searched is chosen by measured recall on a sample of rows.

        >>> index.optimise()
        >>> index.setting is None  # so few rows are searched exactly
        True
        """
        with writing(self.folder):
            self.refresh()
            self._optimise(phases)

    def _optimise(self, phases: Phases) -> None:
        with lance_errors(self.folder):
            ann.optimise(self._dataset, phases)
        self.refresh()

    def _change(self, file: TextSource, change: changes.Change, phases: Phases) -> int:
        changes.check_fits(self.folder, self._dataset, file)
        identity = Identity.of(self.model, width=self.width)
        if identity.long != self.long:
            raise TercetError(
                f"{self.folder}: its texts were read with `long` {self.long}, and the model has "
                f"{identity.long}; load it with long={self.long!r}."
            )
        if change is changes.add:
            changes.check_new(self.folder, self._dataset, file)
        with working(self.folder, file) as work:
            with phases("embedding") as progress:
                staged = stage(file, self.model, identity, work, skip_empty=True, progress=progress)
            with writing(self.folder):
                # Others may have changed it meanwhile: ids and columns are checked again.
                self.refresh()
                self._checked(self.model)
                changes.check_fits(self.folder, self._dataset, file)
                if change is changes.add:
                    self._check_new_again(file, work)
                with lance_errors(self.folder):
                    changed = change(self._dataset, staged)
                self.refresh()
                self._settle(phases)
        return changed

    def _check_new_again(self, file: TextSource, work: Path) -> None:
        try:
            changes.check_new(self.folder, self._dataset, file)
        except TercetError:
            remove_work(work)  # another writer was faster, and nothing is left to resume
            raise

    def _settle(self, phases: Phases) -> None:
        with lance_errors(self.folder):
            ann.settle(self._dataset, phases)
        self.refresh()

    def _find(self, vectors: Floats, top: int, where: str | None) -> list[pa.Table]:
        """The nearest rows of each vector with a column `_score`, the best first."""
        setting = self.setting
        if setting is None and ann.fits_memory(self._dataset):
            with self._lock:
                if self._memory is None:
                    self._memory = InMemory.load(self._dataset)
                memory = self._memory
            return memory.nearest(vectors, top, where)
        return ann.nearest(self._dataset, vectors, top, where, setting)

    def _model_source(self) -> str | Path:
        """Where its model is found; an index may be a stranger's, so it causes no download."""
        name = self.model_name
        if find_local_folder(name) is not None or weights.registered(name) is not None:
            return name
        if (folder := weights.downloaded(name)) is None:
            raise ArgumentError(
                f"{self.folder}: its vectors were made by the model {name}, which is not on this "
                "machine; give that model as `model`.",
                "model",
            )
        return folder

    def _checked(self, model: Model) -> Model:
        identity = Identity.of(model)
        if identity.hash != self.model_hash:
            raise TercetError(
                f"{self.folder}: its vectors were made by the model {self.model_name} (hash "
                f"{self.model_hash[:12]}), and this is another (hash {identity.hash[:12]}); use "
                "that model, or build the index again with this one."
            )
        return model


def check_target(folder: Path) -> None:
    """Raise if the folder holds anything other than an index."""
    if folder.exists() and not folder.is_dir():
        raise TercetError(f"{folder}: is a file; give a folder for the index.")
    if is_index(str(folder)):
        open_dataset(str(folder))
    elif folder.is_dir() and any(folder.iterdir()):
        raise TercetError(
            f"{folder}: holds other files and is not an index, so it is not overwritten; give a "
            "new or an empty folder."
        )
