"""The one kind of error that users see as a sentence instead of a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager


class TercetError(Exception):
    """A mistake in a file, a recipe or an argument, described in one sentence.

    The sentence names what is at fault (file, line, key or value) and what would be right.

    >>> try:
    ...     model.embed(["A film.", None])
    ... except tercet.TercetError as error:
    ...     print(error)
    Expected sentences, but the text at position 1 is missing (None); fill it in or leave it out.
    """


class ArgumentError(TercetError):
    """A wrong argument.

    arguments: those that the sentence names in backticks; the command line writes its flags instead
    """

    def __init__(self, sentence: str, *arguments: str) -> None:
        super().__init__(sentence)
        self.arguments = arguments


class ReportedElsewhereError(TercetError):
    """Ends a process of a distributed run whose error another process reports."""


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """In errors inside, call things by other names: files that no user has heard of."""
    try:
        yield
    except TercetError as error:
        sentence = str(error)
        for name, shown in names.items():
            sentence = sentence.replace(name, shown)
        error.args = (sentence,)
        raise


def install_hint(extra: str) -> str:
    """How to install the packages of an extra: from a package index, or in a clone."""
    return f"pip install 'tercet[{extra}]', or in a clone: pip install '.[{extra}]'"


@contextmanager
def needing_torch() -> Iterator[None]:
    """Say what to install if an import inside fails because torch is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("torch", "torchjd"):
            raise
        raise TercetError(
            f"This needs torch, without which only ONNX folders work: {install_hint('torch')}."
        ) from error


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a mistyped word, or nothing."""
    others = [name for name in known if name != word]
    matches = difflib.get_close_matches(word, others, n=1, cutoff=0.6)
    return f" (did you mean `{matches[0]}`?)" if matches else ""


def shorten(text: str, width: int = 40) -> str:
    """A value as messages quote it."""
    return text if len(text) <= width else text[: width - 3] + "..."


def printable(text: str) -> str:
    """A text that a terminal shows and never obeys: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(ch if ch.isprintable() or ch in "\n\t" else ascii(ch)[1:-1] for ch in text)
