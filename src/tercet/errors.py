"""The one kind of error that users see as a sentence instead of a traceback."""


class TercetError(Exception):
    """A mistake in a file, a recipe or an argument, described in one sentence.

    The sentence names what is at fault (file, line, key or value) and what would be right.
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
