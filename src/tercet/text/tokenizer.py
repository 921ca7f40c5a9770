"""Texts to word pieces, with `tokenizers`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from tercet.errors import TercetError
from tercet.files import reading
from tercet.text.definition import Definition, read_definition
from tercet.text.joining import Separator, flat_ids, group_size, separator_of
from tercet.text.sentences import sentence_ends, slices
from tercet.text.template import Template
from tercet.text.tokens import Pieces, Tokens

# The most for one call of the backend: memory does not grow with the corpus.
CHUNK_TEXTS = 8192
CHUNK_CHARACTERS = 2_000_000
STEP_CHARACTERS = 1 << 16
"""Longer texts are read in parts; a word that is longer is cut."""
PART_CHARACTERS = 4096
"""Parts have at least so many, up to the end of a word."""
MARKED = 3
"""Where windows are possible, texts longer than this part of the limit have their sentence ends
found: half of a pair may be cut."""
NO_TEXTS = Pieces.of_ids([], limit=0)
PARALLELISM = "TOKENIZERS_PARALLELISM"


class Tokenizer:
    """Word pieces of texts, and the template that makes tokens of them."""

    def __init__(self, definition: Definition, folder: Path) -> None:
        self._backend = definition.backend
        self._companions = definition.companions
        self._folder = folder
        ids = self._backend.get_vocab(with_added_tokens=True)
        role_ids = {role: ids[name] for role, name in definition.special.items()}
        self.mask_id: int | None = role_ids.get("mask")
        with reading(folder):
            self.template = Template.probe(self._backend)
        # A template may name ids that no piece has.
        self.vocabulary = max([*ids.values(), *self.template.special_ids], default=-1) + 1
        added = self._backend.get_added_tokens_decoder()
        self.special_ids = self.template.special_ids.union(
            role_ids.values(), (id_ for id_, token in added.items() if token.special)
        )
        self._separator: Separator | None = separator_of(self._backend)

    @classmethod
    def load(cls, folder: Path, *, is_saved: bool = False) -> Tokenizer:
        """Read tokenizer.json, or vocab.txt with tokenizer_config.json, of a folder.

        is_saved: whether `save` wrote it: then tokenizer.json says all, whatever the settings say,
            which are those of the encoder that it was made from
        """
        return cls(read_definition(folder, is_saved=is_saved), folder)

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of everything that decides the ids of a text."""
        definition = json.loads(self._backend.to_str())
        for key in ("version", "decoder", "truncation", "padding"):
            definition.pop(key, None)
        return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()

    def check_fits(self, vocabulary: int, *, token_types: int | None = None) -> None:
        """Raise if this tokenizer gives ids that an encoder with `vocabulary` ids does not have.

        token_types: those that the encoder knows; None: any
        """
        types = {slot.type for slot in self.template.single_slots + self.template.pair_slots}
        if token_types is not None and not types <= set(range(max(token_types, 2))):
            raise TercetError(
                f"The tokenizer of {self._folder} gives token types up to {max(types)}, but the "
                f"encoder has only {token_types}; use the tokenizer of the encoder."
            )
        if self.vocabulary > vocabulary:
            raise TercetError(
                f"The tokenizer of {self._folder} gives ids up to {self.vocabulary - 1}, but the "
                f"encoder has only {vocabulary}; use the tokenizer of the encoder."
            )

    def pieces(self, texts: Sequence[str], *, limit: int) -> Pieces:
        """Word pieces of n texts without special tokens, at most `limit` per text."""
        _check_texts(texts)
        chunks = _chunks(texts, characters=CHUNK_CHARACTERS, longest=STEP_CHARACTERS)
        parts = [self._chunk_pieces(chunk, limit=limit) for chunk in chunks]
        return Pieces.concat(parts or [NO_TEXTS])

    def whole_pieces(self, texts: Sequence[str], *, limit: int) -> Pieces:
        """All word pieces of n texts, with the ends of sentences: those that are longer than
        `limit`, or make pairs that are longer, can be read in windows."""
        return Pieces.concat([*self.whole_steps(texts, limit=limit, characters=CHUNK_CHARACTERS)])

    def whole_steps(
        self, texts: Sequence[str], *, limit: int, characters: int = STEP_CHARACTERS
    ) -> Iterator[Pieces]:
        """The same in steps: each reads about so many characters at most and gives the texts that
        it ends, if any, so that several readers can take turns."""
        _check_texts(texts)
        for chunk in _chunks(texts, characters=characters, longest=STEP_CHARACTERS):
            if len(chunk[0]) > STEP_CHARACTERS:
                yield from self._long_steps(chunk[0])
                continue
            pieces = self._chunk_pieces(chunk, limit=None)
            ends = np.zeros(len(pieces.ids), np.bool_)
            # Offsets take time and memory, so that only texts that may be cut are read for them.
            for place in np.flatnonzero(pieces.lengths > limit // MARKED):
                start, end = pieces.offsets[place : place + 2]
                ends[start:end] = self._with_ends(chunk[place])[1]
            yield replace(pieces, ends=ends)

    def first_steps(self, texts: Sequence[str], *, limit: int) -> Iterator[Pieces]:
        """The pieces of `pieces` in steps, but of a long text only as much is read as they need.

        The length before the cut of such a text is then a lower bound.
        """
        _check_texts(texts)
        for chunk in _chunks(texts, characters=STEP_CHARACTERS, longest=PART_CHARACTERS):
            if len(chunk[0]) <= PART_CHARACTERS:
                yield self._chunk_pieces(chunk, limit=limit)
                continue
            ids: list[int] = []
            for part in _parts(chunk[0]):
                ids += self._encode([part])[0].ids
                if len(ids) > limit:
                    break
                yield NO_TEXTS
            yield Pieces.of_ids([ids], limit=limit)

    def encode(self, texts: Sequence[str], *, max_tokens: int) -> Tokens:
        """Tokens of n texts, special ones included."""
        return self.template.single(self.pieces(texts, limit=max_tokens), max_tokens=max_tokens)

    def save(self, folder: Path) -> None:
        """Write tokenizer.json and the further files that `transformers` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._companions.items():
            (folder / name).write_bytes(content)
        (folder / "tokenizer.json").write_text(self._backend.to_str(pretty=True), "utf-8")

    def _chunk_pieces(self, chunk: list[str], *, limit: int | None) -> Pieces:
        """The first `limit` pieces of each text, or all; a long one, which is a chunk of its own,
        is read in parts."""
        if len(chunk[0]) > STEP_CHARACTERS:
            parts = [self._encode([part])[0].ids for part in _parts(chunk[0])]
            ids = np.concatenate([np.array(part, np.int32) for part in parts])
            found = ids, np.array([len(ids)])
        elif self._separator is None or len(chunk) == 1:
            found = flat_ids(self._encode(chunk))
        else:
            size = group_size(len(chunk))
            found = self._separator.ids_of(chunk, self._encode, size=size)
        return Pieces.of_flat(*found, limit=limit)

    def _long_steps(self, text: str) -> Iterator[Pieces]:
        """All pieces of a text with the ends of sentences, a part in each step."""
        found = []
        for part in _parts(text):
            found.append(self._with_ends(part))
            yield NO_TEXTS
        ids, ends = map(np.concatenate, zip(*found, strict=True))
        yield replace(Pieces.of_ids([ids], limit=len(ids)), ends=ends)

    def _with_ends(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The ids of all pieces of a text, and whether a sentence ends after each."""
        valid = _replace_surrogates(text)
        (encoding,) = self._backend.encode_batch([valid], add_special_tokens=False)
        return np.array(encoding.ids, np.int32), sentence_ends(valid, encoding)

    def _encode(self, texts: list[str]) -> list[Encoding]:
        try:
            return self._backend.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:  # half a surrogate pair, which is not valid Unicode
            valid = [_replace_surrogates(text) for text in texts]
            return self._backend.encode_batch_fast(valid, add_special_tokens=False)


def _parts(text: str) -> Iterator[str]:
    return slices(text, size=PART_CHARACTERS, most=STEP_CHARACTERS)


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise TercetError(f"Expected a list of strings, not the string {texts!r:.80}.")
    if set(map(type, texts)) <= {str}:
        return
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TercetError(f"Text {index} is {text!r:.80}, not a string.")


def _chunks(texts: Sequence[str], *, characters: int, longest: int) -> Iterator[list[str]]:
    """Texts of so many characters together; one of more than `longest` is a chunk of its own."""
    sizes = list(map(len, texts))
    fits = len(sizes) <= CHUNK_TEXTS and sum(sizes) <= characters
    if sizes and fits and max(sizes) <= longest:
        yield list(texts)
        return
    chunk: list[str] = []
    size = 0
    for text in texts:
        is_full = len(chunk) == CHUNK_TEXTS or size + len(text) > characters
        if chunk and (is_full or max(len(text), len(chunk[-1])) > longest):
            yield chunk
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield chunk


def _replace_surrogates(text: str) -> str:
    """Join surrogate pairs into their character; a lone half becomes the replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _after_fork_in_child() -> None:
    # The child has no thread pool; waiting for it would never end.
    os.environ[PARALLELISM] = "false"


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_after_fork_in_child)
