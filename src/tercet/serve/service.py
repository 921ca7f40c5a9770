"""What all forms ask: texts to word pieces, word pieces to vectors and to predictions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NoReturn, cast

import numpy as np

from tercet.errors import TercetError
from tercet.infer.batches import Rows, pair_lengths, single_lengths, special
from tercet.model import SHIPPED, Floats, Model, PairMode
from tercet.serve.batcher import Batcher
from tercet.serve.limits import Limits
from tercet.serve.refusal import RefusalError, shown
from tercet.serve.work import Reader, Work
from tercet.specs import Mode
from tercet.text.tokens import Pieces
from tercet.vectors import unit

AT_ONCE = 2000
"""Characters that are tokenised sooner than a thread is woken for them."""

Ids = Sequence[int]
IdRows = Sequence[Ids]


@dataclass(slots=True)
class Facts:
    """What a request turned out to cost, for its log line and its answer."""

    inputs: int = 0
    tokens: int = 0
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """How the inputs of one request are to be taken.

    field: what the request calls them, as `texts`
    truncate: cut inputs that are too long; refuse them otherwise
    """

    facts: Facts
    field: str
    truncate: bool


@dataclass(slots=True)
class Service:
    """A model behind its batcher."""

    model: Model
    limits: Limits
    batcher: Batcher
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="tokenizer")
    )

    @property
    def names(self) -> list[str]:
        """What clients may call the model, the usual name first."""
        # Release 0.1 called the model that ships `tercet`.
        return [self.model.name, *(["tercet"] if self.model.name == SHIPPED else [])]

    def check_count(self, count: int, name: str) -> None:
        """Refuse a request of too many inputs."""
        if count > self.limits.inputs:
            raise RefusalError(
                413,
                f"`{name}` has {count} inputs; a request may have {self.limits.inputs}.",
                field=name,
            )

    def check_width(self, width: int | None) -> None:
        """Refuse a width that the vectors were not trained for."""
        if width is not None and width not in self.model.widths:
            has = ", ".join(map(str, self.model.widths))
            raise RefusalError(
                422,
                f"`dimensions` is {width}; the vectors of this model have {has}.",
                field="dimensions",
            )

    def resolve_mode(self, task: str, mode: PairMode | None) -> Mode:
        """The mode that answers; refuses tasks and modes that the model lacks."""
        if task not in self.model.tasks:
            has = ", ".join(self.model.tasks) or "none, it can only embed"
            raise RefusalError(404, f"The model has no task {shown(task)}; its tasks are: {has}.")
        try:
            return self.model.resolve_mode(task, mode)
        except TercetError as error:
            raise RefusalError(422, str(error), field="mode") from error

    async def pieces(self, texts: Sequence[str]) -> Pieces:
        """Word pieces of texts; long ones in a thread, so that other requests go on."""
        if sum(map(len, texts)) <= AT_ONCE:
            return self.model.pieces(texts)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.model.pieces, texts)

    async def input_pieces(self, given: str | Sequence[str] | Ids | IdRows, name: str) -> Pieces:
        """Word pieces of one or of several texts, or those that the client has made itself."""
        if isinstance(given, str):
            return await self.pieces([given])
        if isinstance(given[0], int):
            return self._pieces_of_ids([cast(Ids, given)], name=name)
        self.check_count(len(given), name)
        if isinstance(given[0], str):
            return await self.pieces(cast(Sequence[str], given))
        return self._pieces_of_ids(cast(IdRows, given), name=name)

    def _pieces_of_ids(self, rows: IdRows, *, name: str) -> Pieces:
        vocabulary = self.model.tokenizer.vocabulary
        for number, row in enumerate(rows):
            for place, id_ in enumerate(row):
                if not 0 <= id_ < vocabulary:
                    where = f"{name}.{number}.{place}" if len(rows) > 1 else f"{name}.{place}"
                    raise RefusalError(
                        422,
                        f"`{where}` is {id_}; the model knows tokens from 0 to {vocabulary - 1}.",
                        field=where,
                    )
        return Pieces.of_ids(rows, limit=self.limits.tokens)

    async def vectors(
        self, pieces: Pieces, asked: Asked, *, width: int | None = None, normalize: bool = True
    ) -> Floats:
        """Vectors of texts, float32 [n, width], of length 1 unless told otherwise."""
        work = self._texts(pieces, asked, inputs=len(pieces))
        vectors = (await self.batcher.submit(work))[:, :width]
        return unit(vectors) if normalize else vectors

    async def predictions(
        self, task: str, mode: Mode, columns: Sequence[Pieces], asked: Asked
    ) -> Floats:
        """Probabilities [n, classes], or of class 1 [n], or grades [n]."""
        whole = not self.model.engine.reads_vectors(task, mode)
        reader = Reader(task, mode, whole=whole)
        if mode == "cross":
            work = self._pairs(*columns, asked=asked, reader=reader)
        elif mode == "bi":
            work = self._texts(Pieces.concat(columns), asked, inputs=len(columns[0]), reader=reader)
        else:
            work = self._texts(columns[0], asked, inputs=len(columns[0]), reader=reader)
        return await self.batcher.submit(work)

    def _texts(
        self, pieces: Pieces, asked: Asked, *, inputs: int, reader: Reader | None = None
    ) -> Work:
        template, limit = self.model.tokenizer.template, self.limits.tokens
        full = pieces.lengths + special(template.one)
        self._judge(full, asked, inputs=inputs)
        lengths = single_lengths(pieces, template=template, max_tokens=limit)
        asked.facts.tokens += int(lengths.sum())
        return Work(columns=[pieces], lengths=lengths, inputs=inputs, reader=reader)

    def _pairs(self, first: Pieces, second: Pieces, *, asked: Asked, reader: Reader) -> Work:
        template, limit = self.model.tokenizer.template, self.limits.tokens
        full = first.lengths + second.lengths + special(template.two)
        self._judge(full, asked, inputs=len(full))
        lengths = pair_lengths(first, second, template=template, max_tokens=limit)
        asked.facts.tokens += int(lengths.sum())
        return Work(columns=[first, second], lengths=lengths, inputs=len(full), reader=reader)

    def _judge(self, full: Rows, asked: Asked, *, inputs: int) -> None:
        """Count inputs and those that are too long, or refuse the first of these.

        full: tokens of each row before any cut [rows]; rows are inputs, or sides of them in turn
        """
        asked.facts.inputs += inputs
        long = np.flatnonzero(full > self.limits.tokens)
        if not len(long):
            return
        if not asked.truncate:
            self._refuse_long(int(long[0]), int(full[long[0]]), asked, inputs=inputs)
        asked.facts.truncated += len(np.unique(long % inputs))

    def _refuse_long(self, row: int, tokens: int, asked: Asked, *, inputs: int) -> NoReturn:
        place = f"{asked.field}.{row % inputs}"
        raise RefusalError(
            413,
            f"`{place}` has {tokens} tokens; an input may have {self.limits.tokens}: shorten it, "
            'or ask with "truncate": true.',
            field=place,
        )
