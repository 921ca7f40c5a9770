"""What all endpoints use: texts to word pieces, to vectors and to predictions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from tercet.cores import give_way
from tercet.errors import TercetError
from tercet.infer.batches import Rows, token_counts
from tercet.model import SHIPPED, Floats, Model, PairMode
from tercet.serve.batcher import Batcher
from tercet.serve.jobs import EncodingRequest, HeadRef
from tercet.serve.refusal import RefusalError, shown, too_many
from tercet.serve.settings import Limits, LongPolicy
from tercet.specs import Mode
from tercet.text.template import special_count
from tercet.text.tokens import Pieces
from tercet.vectors import unit

if TYPE_CHECKING:
    from tercet.search.index import Index

FEW_CHARACTERS = 2000
"""Texts of this length are tokenised faster than a thread starts."""
TOKENIZERS = 2
"""Threads that tokenise, beside the one for requests that take several turns."""
TURN_SECONDS = 0.02
"""Seconds that one request is tokenised before it is another's turn; a step may end later."""

Ids = Sequence[int]
IdRows = Sequence[Ids]


@dataclass(slots=True)
class RequestCounts:
    """The size of a request, for its log line and its answer."""

    inputs: int = 0
    tokens: int = 0
    truncated: int = 0
    windowed: int = 0


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How the inputs of one request are treated.

    field: their name in the request, such as `texts`
    long: what is done with inputs that are too long
    client: who asks; clients share the encoder evenly
    """

    counts: RequestCounts
    field: str
    long: LongPolicy
    client: str


@dataclass(slots=True)
class Service:
    """A model behind its batcher, and the index that it searches."""

    model: Model
    limits: Limits
    batcher: Batcher
    index: Index | None = None
    reader: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="reader")
    )
    """Where long bodies are parsed, one after the other, so that other requests proceed."""
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(TOKENIZERS, thread_name_prefix="tokenizer")
    )
    _long_thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(
            1, thread_name_prefix="long-texts", initializer=give_way
        )
    )
    """Where requests are tokenised after their first turn, so that short ones need not wait."""

    @property
    def names(self) -> list[str]:
        """What clients may call the model, the usual name first."""
        # Release 0.1 called the model that ships `tercet`.
        return [self.model.name, *(["tercet"] if self.model.name == SHIPPED else [])]

    def check_count(self, count: int, name: str) -> None:
        """Refuse a request with too many inputs."""
        if count > self.limits.inputs:
            raise too_many(name, count, self.limits.inputs)

    def check_width(self, width: int | None) -> None:
        """Refuse a width that the model does not offer."""
        if width is not None and width not in self.model.widths:
            has = ", ".join(map(str, self.model.widths))
            raise RefusalError(
                422,
                f"`dimensions` is {width}; the widths of this model are {has}.",
                field="dimensions",
            )

    def resolve_mode(self, task: str, mode: PairMode | None) -> Mode:
        """The mode to use; refuses tasks and modes that the model lacks."""
        if task not in self.model.tasks:
            has = ", ".join(self.model.tasks) or "none, it only embeds"
            raise RefusalError(404, f"The model has no task {shown(task)}; its tasks are: {has}.")
        try:
            return self.model.resolve_mode(task, mode)
        except TercetError as error:
            raise RefusalError(422, str(error), field="mode") from error

    async def pieces(self, texts: Sequence[str]) -> Pieces:
        """Word pieces of texts; many in threads and in turns, so that other requests proceed."""
        if sum(map(len, texts)) <= FEW_CHARACTERS:
            return Pieces.concat([*self.model.piece_steps(texts)])
        loop = asyncio.get_running_loop()
        steps = self.model.piece_steps(texts)
        parts, ended = await loop.run_in_executor(self._threads, _turn, steps)
        while not ended:
            more, ended = await loop.run_in_executor(self._long_thread, _turn, steps)
            parts += more
        return Pieces.concat(parts)

    async def input_pieces(self, inputs: str | Sequence[str] | Ids | IdRows, name: str) -> Pieces:
        """Word pieces of one or several texts, or of token ids from the client."""
        if isinstance(inputs, str):
            return await self.pieces([inputs])
        if isinstance(inputs[0], int):
            return await self._id_pieces([cast(Ids, inputs)], name=name)
        self.check_count(len(inputs), name)
        if isinstance(inputs[0], str):
            return await self.pieces(cast(Sequence[str], inputs))
        return await self._id_pieces(cast(IdRows, inputs), name=name)

    async def _id_pieces(self, rows: IdRows, *, name: str) -> Pieces:
        read = partial(self._pieces_of_ids, rows, name=name)
        if sum(map(len, rows)) <= FEW_CHARACTERS:
            return read()
        return await asyncio.get_running_loop().run_in_executor(self.reader, read)

    def _pieces_of_ids(self, rows: IdRows, *, name: str) -> Pieces:
        vocabulary = self.model.tokenizer.vocabulary
        for number, row in enumerate(rows):
            if min(row) < 0 or max(row) >= vocabulary:
                place = next(i for i, id_ in enumerate(row) if not 0 <= id_ < vocabulary)
                where = f"{name}.{number}.{place}" if len(rows) > 1 else f"{name}.{place}"
                raise RefusalError(
                    422,
                    f"`{where}` is {shown(row[place])}; token ids are from 0 to {vocabulary - 1}.",
                    field=where,
                )
        if self.model.info.long == "truncate":
            return Pieces.of_ids(rows, limit=self.limits.tokens)
        whole = Pieces.of_ids(rows, limit=max(map(len, rows)))
        # Where sentences end is not known.
        return replace(whole, ends=np.zeros(len(whole.ids), np.bool_))

    async def vectors(
        self,
        pieces: Pieces,
        options: InputOptions,
        *,
        width: int | None = None,
        normalize: bool = True,
    ) -> Floats:
        """Vectors of texts, float32 [n, width], of length 1 unless `normalize` is false."""
        request = self._request([pieces], options, inputs=len(pieces))
        vectors = (await self.batcher.submit(request))[:, :width]
        return unit(vectors) if normalize else vectors

    async def predictions(
        self, task: str, mode: Mode, columns: Sequence[Pieces], options: InputOptions
    ) -> Floats:
        """Probabilities [n, classes], or of class 1 [n], or grades [n]."""
        needs_tokens = not self.model.engine.reads_vectors(task, mode)
        side = self.model.engine.side_of(task)
        head = HeadRef(task, mode, needs_tokens=needs_tokens, side=side)
        sides = (
            [Pieces.concat(columns)] if mode == "bi" else columns[: 1 if mode == "single" else 2]
        )
        request = self._request(sides, options, inputs=len(columns[0]), head=head)
        return await self.batcher.submit(request)

    def _request(
        self,
        columns: Sequence[Pieces],
        options: InputOptions,
        *,
        inputs: int,
        head: HeadRef | None = None,
    ) -> EncodingRequest:
        """One column of texts, or two of pairs that are encoded jointly."""
        template = self.model.tokenizer.template
        slots = template.pair_slots if len(columns) == 2 else template.single_slots
        full = np.sum([column.lengths for column in columns], axis=0) + special_count(slots)
        self._check_lengths(full, options, inputs=inputs)
        windows = self.model.engine.windows(columns) if options.long == "windows" else None
        if windows is not None:
            columns = windows.columns
        elif any(column.ends is not None for column in columns):
            columns = [replace(column, ends=None) for column in columns]
        lengths = token_counts(columns, template=template, max_tokens=self.limits.tokens)
        options.counts.tokens += int(lengths.sum())
        return EncodingRequest(
            self.model.engine, columns, lengths, inputs, head, options.client, windows
        )

    def _check_lengths(self, full: Rows, options: InputOptions, *, inputs: int) -> None:
        """Count inputs and those that are too long, or refuse the first of these.

        full: tokens of each row before any cut [rows]; in pairs all first texts, then all second
        """
        options.counts.inputs += inputs
        long = np.flatnonzero(full > self.limits.tokens)
        if len(long) and options.long == "refuse":
            place = f"{options.field}.{long[0] % inputs}"
            raise RefusalError(
                413,
                f"`{place}` has {full[long[0]]} tokens; an input may have {self.limits.tokens}: "
                'shorten it, or set "truncate": true.',
                field=place,
            )
        count = len(np.unique(long % inputs))
        if options.long == "windows":
            options.counts.windowed += count
        else:
            options.counts.truncated += count


def _turn(steps: Iterator[Pieces]) -> tuple[list[Pieces], bool]:
    """What the steps of one turn give, and whether they were the last."""
    end = time.monotonic() + TURN_SECONDS
    parts = []
    for part in steps:
        parts.append(part)
        if time.monotonic() > end:
            return parts, False
    return parts, True
