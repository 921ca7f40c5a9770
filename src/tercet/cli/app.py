"""The `tercet` command: finds the file of a command, runs it, tells a mistake in one sentence."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tercet.errors import ReportedElsewhereError, TercetError

# What `tercet --help` says of each command stands here, so that it imports none of them.
COMMANDS = {
    "train": "Train a recipe and leave a run folder.",
    "evaluate": "Score a model on a suite.",
    "predict": "Predict one task for sentences or pairs, as JSON lines.",
    "embed": "Embed the texts of a file, on this machine or on a Ray cluster.",
    "mine": "Find the closest pairs of a file, or groups of duplicates.",
    "index": "Make an index of texts to search in, or change one by id.",
    "search": "Find the nearest texts of an index.",
    "serve": "Serve a model over HTTP, with a page to try it on.",
    "export": "Write a model in another library's form.",
    "recipes": "List the recipes, show one, or copy one to a file.",
    "reproduce": "Run the reports' experiments, and set our figures beside theirs.",
    "weights": "Fetch the weights of an encoder, checked by sha256.",
    "data": "Look into data files before training on them.",
    "bench": "List the benchmarks, or run one against its peer.",
}
MISTAKE, INTERRUPTED = 2, 130


class Deferred(TyperCommand):
    """A command whose file is imported when it is run, not when it is listed."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return load_command(str(self.name)).make_context(info_name, args, parent, **extra)


class LazyGroup(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(Deferred(name=name, help=summary, callback=None))


def load_command(name: str) -> Any:
    """`tercet/cli/NAME.py` holds a function of that name, or a `typer.Typer` of subcommands."""
    found = getattr(import_module(f"tercet.cli.{name}"), name)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False)
        found.command(name)(function)
    return typer.main.get_command(found)


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False)


@app.callback()
def options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a mistake (or TERCET_DEBUG=1).")
    ] = False,
) -> None:
    """One encoder, three answers: sentiment, paraphrase and similarity from a single BERT.

    Example: tercet train tercet/demo --data DIR --out runs/first
    """
    if debug:
        os.environ["TERCET_DEBUG"] = "1"
    log = logging.getLogger("tercet")
    log.setLevel(logging.INFO)
    log.handlers = [Talk()]


class Talk(logging.Handler):
    """Says on stderr what the rooms below report, such as where weights are fetched from."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr)


def main() -> None:
    """Run the command line; a mistake is one sentence on stderr and exit code 2."""
    try:
        # Outside of standalone mode an early exit comes back as its code, and errors come through.
        code = typer.main.get_command(app).main(prog_name="tercet", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        code = 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    except typer.Abort:
        code = _mistake("given up.")
    except typer.TyperException as error:
        code = _mistake(error.format_message())
    except ReportedElsewhereError:
        code = MISTAKE
    except TercetError as error:
        code = _mistake(str(error))
    except OSError as error:
        code = _mistake(_sentence(error))
    sys.exit(code if isinstance(code, int) else 0)


def _mistake(sentence: str) -> int:
    if os.environ.get("TERCET_DEBUG", "0") not in ("", "0"):
        traceback.print_exc()
    print(f"error: {' '.join(sentence.split())}", file=sys.stderr)
    return MISTAKE


def _sentence(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return f"{' -> '.join(names)}: {reason}." if names else f"{reason}."


def _forget_stdout() -> None:
    """Nobody reads any more: keep the interpreter from failing on what is left to write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
