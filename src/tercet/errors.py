"""The one kind of error that users see as a sentence instead of a traceback."""


class TercetError(Exception):
    """A mistake in a file, a recipe or an argument, told in one sentence.

    The sentence names what is at fault (file, line, key or value) and what would be right.
    """


class ArgumentError(TercetError):
    """A wrong argument. Its sentence names arguments in backticks, such as `out`.

    The command line replaces these names by its flags.
    """


class ReportedElsewhereError(TercetError):
    """Ends a process of a distributed run whose error another process reports."""
