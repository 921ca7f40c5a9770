"""The `tercet` command: imports and runs a command, and reports an error in one sentence."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from tercet import __version__
from tercet.cores import spin_briefly
from tercet.errors import (
    ArgumentError,
    ReportedElsewhereError,
    TercetError,
    needing_torch,
    printable,
    shorten,
)

# The summaries are here, so that `tercet --help` imports no command.
COMMANDS = {
    "fit": "Train one model on your own labelled files; no recipe needed.",
    "train": "Train a recipe and write a run folder.",
    "evaluate": "Score models on suites.",
    "predict": "Predict one task for sentences, pairs or a file.",
    "embed": "Embed the texts of a file, on this machine or on a Ray cluster.",
    "mine": "Find the closest pairs of a file, or groups of duplicates.",
    "index": "Build an index of texts to search, or change one by id.",
    "search": "Find the nearest texts of an index.",
    "serve": "Serve a model over HTTP, with a web page to try it.",
    "export": "Write a model in the format of another library.",
    "recipes": "List the recipes, show one, or copy one to a file.",
    "reproduce": "Run the reports' experiments and compare the results with the published ones.",
    "weights": "Fetch the weights of an encoder, or list the known ones.",
    "data": "Check data files before training on them.",
    "bench": "Measure how fast this machine embeds, or run a benchmark of the repository.",
}
ERROR, INTERRUPTED = 2, 130


class Deferred(TyperCommand):
    """A command whose module is imported when it runs, not when it is listed."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return load_command(str(self.name)).make_context(info_name, args, parent, **extra)


class LazyGroup(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(Deferred(name=name, help=summary, callback=None))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ArgumentError as error:
            raise TercetError(_with_flags(error, str(ctx.invoked_subcommand))) from error


def load_command(name: str) -> Any:
    """`tercet/cli/NAME.py` holds a function of that name, or a `typer.Typer` of subcommands."""
    command = getattr(import_module(f"tercet.cli.{name}"), name)
    if not isinstance(command, typer.Typer):
        function, command = command, typer.Typer(add_completion=False)
        command.command(name)(function)
    return typer.main.get_command(command)


def _with_flags(error: ArgumentError, name: str) -> str:
    """The sentence of an error with the flags of a command instead of Python arguments."""
    sentence, command = str(error), load_command(name)
    for each in getattr(command, "commands", {"": command}).values():
        for parameter in each.params:
            if parameter.name in error.arguments:
                flag = parameter.opts[0] if parameter.opts[0][0] == "-" else parameter.name.upper()
                sentence = sentence.replace(f"`{parameter.name}`", flag)
    return sentence


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tercet {__version__}")
        raise typer.Exit


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False)


@app.callback()
def options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors (or set TERCET_DEBUG=1).")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """One encoder, many answers: several sentence tasks on a single transformer encoder.

    Example: tercet fit tickets.csv --out runs/mine
    """
    if debug:
        os.environ["TERCET_DEBUG"] = "1"
    log = logging.getLogger("tercet")
    log.setLevel(logging.INFO)
    log.handlers = [StderrHandler()]


class StderrHandler(logging.Handler):
    """Prints what lower layers log, such as where weights are fetched from."""

    def emit(self, record: logging.LogRecord) -> None:
        print(printable(record.getMessage()), file=sys.stderr)


def main() -> None:
    """Run the command line; an error is one sentence on stderr and exit code 2."""
    spin_briefly()
    process = os.getpid()
    try:
        with needing_torch():
            # Without standalone mode, an early exit returns its code, and errors are raised.
            code = typer.main.get_command(app).main(prog_name="tercet", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader is gone: keep the interpreter from failing on buffered output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    except typer.Abort:
        code = _fail("aborted.")
    except typer.TyperException as error:
        # Without a message, the help has been printed.
        code = _fail(error.format_message()) if error.format_message() else ERROR
    except ReportedElsewhereError:
        code = ERROR
    except TercetError as error:
        code = _fail(str(error))
    except OSError as error:
        code = _fail(_sentence(error))
    except UnicodeEncodeError as error:
        text = shorten(ascii(error.object[error.start : error.end]))
        code = _fail(f"a text holds {text}, which is not valid Unicode.")
    except MemoryError:
        code = _fail("there is not enough memory for this; ask for less at a time.")
    code = code if isinstance(code, int) else 0
    if os.getpid() != process:
        _end_fork(code)
    sys.exit(code)


def _end_fork(code: int) -> NoReturn:
    """End a worker of `serve`: libraries would wait for threads that only its parent has (ONNX
    Runtime ends the process with SIGABRT)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _fail(sentence: str) -> int:
    if os.environ.get("TERCET_DEBUG", "0") not in ("", "0"):
        traceback.print_exc()
    print(f"error: {printable(' '.join(sentence.split()))}", file=sys.stderr)
    return ERROR


def _sentence(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return f"{' -> '.join(names)}: {reason}." if names else f"{reason}."
