"""Run the examples of pages from top to bottom, each in an empty folder; compare what they show.

    python tools/run_page.py docs/tutorials/search.md [PAGE...] [--quick]

Fenced blocks run in order: `sh` by bash (`tercet` commands in this process, which has imported
torch once, where no line of the block needs more of a shell), `python` in one namespace, as in a
notebook. A block whose first line is a comment with the name of a file (`# mine.toml`) is written
to that file instead. Files of docs/examples that the page links to are in the folder, and servers
get free ports.

A block `text` after an example is what it shows: `...` stands for anything, blanks and line ends
are all alike, and numbers with a decimal point may differ by CLOSE.

Comments before a block say when it counts: `<!-- needs nginx -->` where that program is installed,
`<!-- whole runs only -->` without --quick. With --quick, which the tests use, training is shortened
(SHORTER), and from the first shortened block on numbers are not compared.

    python tools/run_page.py --stdin --quick

runs the pages that lines of stdin name, each in a process forked after the imports that most pages
need, and answers each with a line of JSON: its exit code and what it showed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
CLOSE = 0.05
SECONDS = 300
SHORTER = [
    (re.compile(r'\bsteps("?: | ?= ?)\d+'), r"steps\g<1>2"),
    (
        re.compile(r'write_sample\(Path\("data"\)(, rows=\d+)?\)'),
        'write_sample(Path("data"), rows=24)',
    ),
    (re.compile(r"(tercet reproduce \S+) \w+/\S+"), r"\1"),
    (re.compile(r"--minutes \d+"), "--minutes 0.1"),
    (re.compile(r"\bminutes=\d+"), "minutes=0.05"),
    (re.compile(r"(?m)^(tercet fit (?!.*--minutes).*)$"), r"\1 --minutes 0.1"),
]
BLOCK = re.compile(
    r"(?P<when>^<!-- (?:whole runs only|needs (?P<program>\S+)) -->\n+)?"
    r"^```(?P<language>[a-z]+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
FILE_NAME = re.compile(r"(?:#|//|--) ([\w-]+\.[a-z]+)$")
LINK = re.compile(r"\]\([^)]*?examples/([\w.-]+)\)")
PORTS = ("8000", "8443")
# A comma is part of a number only between thousands: a list of numbers is not one number.
NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)*)")
QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")
PLAIN = ("tercet", "cat", "ls")
SHELL = re.compile(r"[|&;<>$`*(){}]")


@dataclass
class Block:
    language: str
    text: str
    line: int
    whole_only: bool
    program: str | None

    @property
    def file(self) -> str | None:
        """The file that the block is, by its first line."""
        found = FILE_NAME.match(self.text.split("\n", 1)[0])
        return found[1] if found else None

    @property
    def runs(self) -> bool:
        return self.file is None and self.language in ("sh", "python")


class Terminal(io.StringIO):
    """What a terminal shows of results; messages are not a terminal's, so that no bar is drawn."""

    def isatty(self) -> bool:
        return True


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        whole_only = found["when"] is not None and found["program"] is None
        yield Block(found["language"], found["text"], line, whole_only, found["program"])


class PageRun:
    """One run of a page in the current folder."""

    def __init__(self, page: Path, *, quick: bool) -> None:
        self.page, self.quick = page, quick
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.shortened = False
        self.ports = {port: str(free_port()) for port in PORTS}
        os.environ["TERCET_PORT"] = self.ports[PORTS[0]]

    def run(self) -> None:
        shown = ""
        for block in blocks(self.page):
            missing = block.program is not None and shutil.which(block.program) is None
            left_out = missing or (block.whole_only and self.quick)
            if left_out:
                print(f"{self.page.name}:{block.line} is left out", flush=True)
            if block.language == "text" and block.file is None:
                if not left_out:
                    self.compare(block, shown)
            elif not left_out:
                shown = self.execute(block)

    def execute(self, block: Block) -> str:
        """What an example shows, after which it is on stdout too."""
        text = self.shorten(block.text)
        for port, free in self.ports.items():
            text = text.replace(port, free)
        if block.file is not None:
            Path(block.file).write_text(text, "utf-8")
            return ""
        if not block.runs:
            return ""
        print(f"{self.page.name}:{block.line}\n{text}", flush=True)
        where = f"{self.page.name}, line {block.line}"
        shown = self.python(text, where) if block.language == "python" else self.shell(text, where)
        print(shown, flush=True)
        for port, free in self.ports.items():
            shown = shown.replace(free, port)
        return shown

    def shorten(self, text: str) -> str:
        if not self.quick:
            return text
        shorter = text
        for long, short in SHORTER:
            shorter = long.sub(short, shorter)
        self.shortened |= shorter != text
        return shorter

    def python(self, source: str, where: str) -> str:
        tree = ast.parse(source, where)
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            kept = ast.Assign([ast.Name("_", ast.Store())], last.value)
            tree.body[-1] = ast.fix_missing_locations(ast.copy_location(kept, last))
        with captured() as shown:
            exec(compile(tree, where, "exec"), self.names)
            if isinstance(last, ast.Expr) and self.names["_"] is not None:
                print(repr(self.names["_"]))
        return shown.getvalue()

    def shell(self, text: str, where: str) -> str:
        """Lines one after the other; what several lines share, such as variables, needs bash."""
        commands = text.replace("\\\n", " ").splitlines()
        plain = [line for line in commands if line.strip()]
        if all(map(is_plain, plain)):
            return "".join(self.plain(line, where) for line in plain)
        return self.bash(text, where)

    def plain(self, line: str, where: str) -> str:
        if line.startswith("tercet "):
            return tercet(shlex.split(line, comments=True), where)
        return self.bash(line, where)

    def bash(self, text: str, where: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text], text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{where}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def compare(self, block: Block, shown: str) -> None:
        if difference := differs(block.text, shown, numbers=not self.shortened):
            where = f"{self.page.name}, line {block.line}"
            raise SystemExit(f"{where}: {difference}; what it shows is:\n{shown}")


@contextlib.contextmanager
def captured() -> Iterator[io.StringIO]:
    """Results and messages in the order in which they come."""
    terminal = Terminal()

    class Messages(io.TextIOBase):
        def write(self, text: str) -> int:
            return terminal.write(text)

    with contextlib.redirect_stdout(terminal), contextlib.redirect_stderr(Messages()):
        yield terminal


def tercet(command: list[str], where: str) -> str:
    """What a command shows."""
    from tercet.cli.app import main

    code: Any = 0
    before, sys.argv = sys.argv, command
    try:
        with captured() as shown:
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    if code:
        raise SystemExit(f"{where}: {shlex.join(command)}: exit code {code}\n{shown.getvalue()}")
    return shown.getvalue()


def differs(page: str, shown: str, *, numbers: bool) -> str:
    """How what is shown differs from the page; empty if it does not."""
    words, found = page.split(), shown.split()
    pattern = r"\s+".join(_pattern(word) for word in words)
    match = re.search(rf"(?:^|\s){pattern}(?:\s|$)", " ".join(found))
    if match is None:
        return "the words differ"
    for expected, got in zip((n for w in words for n in _numbers(w)), match.groups(), strict=True):
        if numbers and not _close(expected, got):
            return f"{got} instead of {expected}"
    return ""


def _pattern(word: str) -> str:
    """A regular expression of a word, with groups for its numbers."""
    if word == "...":
        return ".*?"
    parts = []
    for part in re.split(rf"(\.\.\.|{NUMBER.pattern})", word):
        is_number = NUMBER.fullmatch(part)
        parts.append(f"({NUMBER.pattern})" if is_number else re.escape(part))
    return "".join(parts).replace(re.escape("..."), ".*?")


def _numbers(word: str) -> list[str]:
    return NUMBER.findall(word)


def _close(expected: str, got: str) -> bool:
    if expected == got:
        return True
    try:
        return "." in expected and abs(float(expected) - float(got)) <= CLOSE
    except ValueError:
        return False


def is_plain(line: str) -> bool:
    """Whether a line is a command that shares nothing with other lines but files."""
    return line.split()[0] in PLAIN and not SHELL.search(QUOTED.sub("", line))


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", type=Path, nargs="*")
    parser.add_argument("--stdin", action="store_true", help="pages are named by lines of stdin")
    parser.add_argument("--quick", action="store_true", help="shorten training")
    arguments = parser.parse_args()
    # What bash starts finds the commands of this environment, and results are as on a terminal.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Without LINES, COLUMNS is not read where TERM is dumb.
    os.environ |= {"TERM": "dumb", "COLUMNS": "100", "LINES": "50"}
    for name in [
        name for name in os.environ if name.startswith("TERCET_") and name != "TERCET_CACHE"
    ]:
        del os.environ[name]
    for page in [page.resolve() for page in arguments.pages]:
        run_page(page, quick=arguments.quick)
    if arguments.stdin:
        run_pages_of_stdin(quick=arguments.quick)
        # Python takes a second to take apart all that was imported, of which nothing is open.
        os._exit(0)


def run_page(page: Path, *, quick: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in LINK.findall(page.read_text("utf-8")):
            shutil.copy(EXAMPLES / name, name)
        try:
            PageRun(page, quick=quick).run()
        finally:
            end_servers()


def run_pages_of_stdin(*, quick: bool) -> None:
    import sklearn.linear_model  # noqa: F401
    import torch._dynamo  # noqa: F401

    import tercet.fitting.fit  # noqa: F401

    for line in sys.stdin:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as shown:
            process = multiprocessing.get_context("fork").Process(
                target=_run_page_into, args=(shown.fileno(), Path(line.strip()), quick)
            )
            process.start()
            process.join()
            shown.seek(0)
            print(json.dumps({"code": process.exitcode, "shown": shown.read()}), flush=True)


def _run_page_into(descriptor: int, page: Path, quick: bool) -> None:
    for stream in (sys.stdout, sys.stderr):
        os.dup2(descriptor, stream.fileno())
    run_page(page, quick=quick)


def end_servers() -> None:
    """Ends what `COMMAND & echo $! > NAME.pid` of the page started and did not end itself.

    A server that the page did end may be about to remove its file, as nginx does.
    """
    for file in Path().glob("*.pid"):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(int(file.read_text()), signal.SIGTERM)


if __name__ == "__main__":
    main()
