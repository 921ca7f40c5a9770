"""How the command line ends: each mistake in one sentence, with its own exit code."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NoReturn

import pytest
import typer

from tercet.cli import app
from tercet.errors import ArgumentError, TercetError

FULL = Path("/dev/full")
Ends = Callable[[BaseException], tuple[int, str]]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ends:
    """Exit code and stderr of a command that raises."""

    def run(error: BaseException) -> tuple[int, str]:
        def recipes(name: Annotated[str, typer.Argument()] = "", copy: str = "") -> NoReturn:
            raise error

        module = ModuleType("tercet.cli.recipes")
        module.__dict__["recipes"] = recipes
        monkeypatch.setitem(sys.modules, "tercet.cli.recipes", module)
        monkeypatch.setattr(sys, "argv", ["tercet", "recipes"])
        with pytest.raises(SystemExit) as end:
            app.main()
        code = end.value.code
        assert isinstance(code, int)
        return code, capsys.readouterr().err

    return run


def test_a_mistake_is_told_in_one_line(ends: Ends) -> None:
    assert ends(TercetError("a.csv: line 3\n  is bad.")) == (2, "error: a.csv: line 3 is bad.\n")


def test_arguments_are_named_by_their_flags(ends: Ends) -> None:
    error = ArgumentError("`copy` a.toml: no column `copied` or `name`.", "copy", "name")
    result = "error: --copy a.toml: no column `copied` or NAME.\n"
    assert ends(error) == (2, result)


def test_an_interrupt_is_quiet(ends: Ends) -> None:
    assert ends(KeyboardInterrupt()) == (130, "")


def test_a_chosen_exit_code_is_kept(ends: Ends) -> None:
    assert ends(typer.Exit(130)) == (130, "")


def test_a_full_disk_names_the_file(ends: Ends) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/a")
    assert ends(error) == (2, "error: runs/a: No space left on device.\n")


def test_a_refused_file_is_named(ends: Ends) -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "secret")
    assert ends(error) == (2, "error: secret: Permission denied.\n")


def test_an_error_without_a_file_is_still_a_sentence(ends: Ends) -> None:
    assert ends(OSError("the tape tore")) == (2, "error: the tape tore.\n")


def test_a_reader_that_left_is_no_mistake(ends: Ends) -> None:
    assert ends(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))) == (1, "")


def test_debug_shows_the_traceback(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_DEBUG", "1")
    code, result = ends(TercetError("it is bad."))
    assert code == 2
    assert result.startswith("Traceback")
    assert result.endswith("error: it is bad.\n")


def test_a_bug_is_not_hidden(ends: Ends) -> None:
    with pytest.raises(ZeroDivisionError):
        ends(ZeroDivisionError())


def tercet(arguments: str, **streams: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tercet", *arguments.split()],
        text=True,
        stderr=subprocess.PIPE,
        **streams,
    )


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", ["--help", "recipes"])
def test_output_that_cannot_be_written_is_a_mistake(arguments: str) -> None:
    with FULL.open("w") as full, tercet(arguments, stdout=full) as process:
        assert process.communicate()[1] == "error: No space left on device.\n"
    assert process.returncode == 2


def test_a_closed_pipe_is_quiet() -> None:
    with tercet("recipes", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 1


SLOW = """
import sys, time
import tercet.recipe
from tercet.cli.app import main
tercet.recipe.bundled = lambda: (print("started", flush=True), time.sleep(60))
sys.argv[1:] = ["recipes"]
main()
"""


def test_ctrl_c_ends_with_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that a shell runs in the background inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    _, result = process.communicate(timeout=20)
    assert (process.returncode, result) == (130, "")
