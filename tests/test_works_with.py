"""The examples of docs/works-with.md print what the page shows, where their packages are installed.

`TERCET_WORKS_WITH=record` writes what they print instead.
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "examples" / "works_with"
EXAMPLES = sorted(FOLDER.glob("with_*.py"))
PAGE = (ROOT / "docs" / "works-with.md").read_text("utf-8")
SERVER = "http://127.0.0.1:8000"
# Nothing is fetched or sent: these would ask other hosts.
QUIET = {"HF_HUB_OFFLINE": "1", "HAYSTACK_TELEMETRY_ENABLED": "False", "DO_NOT_TRACK": "1"}


def missing(script: Path) -> list[str]:
    """The packages that an example imports and this environment lacks."""
    tree = ast.parse(script.read_text("utf-8"))
    names = [
        alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    ]
    names += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    return sorted({name.partition(".")[0] for name in names if not _found(name)})


def _found(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent is missing
        return False
    except ValueError:  # a parent has imported it in a way of its own
        return True


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server of the shipped model."""
    command = [sys.executable, "-m", "tercet", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            ready = next(json.loads(line) for line in process.stderr if '"ready"' in line)
            yield ready["url"]
        finally:
            process.terminate()


def test_the_page_shows_every_example_and_what_it_prints() -> None:
    shown = re.findall(r"examples/works_with/(\S+)", PAGE)
    wanted = [name for script in EXAMPLES for name in (script.name, f"{script.stem}.txt")]
    assert sorted(set(wanted) - set(shown)) == []


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_prints_what_the_page_shows(
    script: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if lacking := missing(script):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    text = script.read_text("utf-8")
    if SERVER in text:
        text = text.replace(SERVER, request.getfixturevalue("server"))
    (tmp_path / script.name).write_text(text, "utf-8")
    shutil.copy(FOLDER / "team.toml", tmp_path)
    rows = (ROOT / "docs" / "examples" / "tickets.csv").read_text("utf-8").splitlines()
    (tmp_path / "tickets.csv").write_text("\n".join(rows[:61]) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    runpy.run_path(script.name, run_name="__main__")
    printed = capsys.readouterr().out
    expected = script.with_suffix(".txt")
    if os.environ.get("TERCET_WORKS_WITH") == "record":
        expected.write_text(printed, "utf-8")
    assert printed == expected.read_text("utf-8")
