"""Texts to the word pieces that an encoder reads, and how many were too long for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from tercet.folders.model_card import ModelInfo
from tercet.text.long_inputs import LongInputs
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Pieces

Kind = Literal["texts", "pairs"]


class TextReader:
    """The half of a model that reads texts."""

    tokenizer: Tokenizer
    info: ModelInfo
    long_inputs: dict[Kind, LongInputs]
    """By kind, how many texts and pairs it has read, and how many were too long."""

    def pieces(self, texts: Sequence[str]) -> Pieces:
        """Word pieces of n texts, truncated to what the encoder reads, or whole, for windows.

        >>> model.pieces(["A quiet film."]).lengths
        array([4])
        """
        limit, texts = self.info.max_tokens, self._cased(texts)
        if self.info.long == "windows":
            return self.tokenizer.whole_pieces(texts, limit=limit)
        return self.tokenizer.pieces(texts, limit=limit)

    def piece_steps(self, texts: Sequence[str]) -> Iterator[Pieces]:
        """The same pieces in short steps, each of which gives the texts that it ends.

        Texts that are truncated are read no further than needed, and their lengths before the cut
        are lower bounds.

        >>> [len(pieces) for pieces in model.piece_steps(["A quiet film.", "Dull."])]
        [2]
        """
        tokenizer = self.tokenizer
        read = tokenizer.whole_steps if self.info.long == "windows" else tokenizer.first_steps
        yield from read(self._cased(texts), limit=self.info.max_tokens)

    def _cased(self, texts: Sequence[str]) -> Sequence[str]:
        return [text.lower() for text in texts] if self.info.lower_case else texts

    def count_inputs(self, kind: Kind, columns: Sequence[Pieces], *, joint: bool = False) -> None:
        """Count texts, or pairs that may be encoded jointly, into `long_inputs`.

        >>> model.count_inputs("texts", [model.pieces(["word " * 600])])
        >>> model.long_inputs["texts"].long
        1
        """
        reading: dict[str, Any] = {
            "template": self.tokenizer.template,
            "max_tokens": self.info.max_tokens,
        }
        self.add_count(kind, LongInputs.of(columns, joint=joint, **reading))

    def add_count(self, kind: Kind, found: LongInputs) -> None:
        """Add what was counted elsewhere, such as in an earlier run, to `long_inputs`.

        >>> model.add_count("texts", model.long_inputs["texts"])
        >>> model.long_inputs["texts"].long
        2
        """
        self.long_inputs[kind] = self.long_inputs.get(kind, LongInputs()) + found

    def describe_long(self) -> list[str]:
        """What was truncated or read in windows so far: a sentence for texts, one for pairs.

        >>> reader = tercet.load()
        >>> vectors = reader.embed(["A short text.", "word " * 600])
        >>> print(*reader.describe_long())
        1 of 2 texts was longer than 512 tokens and was truncated (15 % of its tokens dropped).
        """
        limit = self.info.max_tokens
        found = [each.sentence(kind, max_tokens=limit) for kind, each in self.long_inputs.items()]
        return [sentence for sentence in found if sentence is not None]
