"""Every example on the pages that teach runs from top to bottom and shows what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("lance")
pytest.importorskip("onnxruntime")
pytest.importorskip("pandas")

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/start/*.md"))]
PAGES += sorted(ROOT.glob("docs/tutorials/*.md"))
WHOLE = os.environ.get("TERCET_WHOLE", "0") not in ("", "0")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "TERCET_CACHE": str(cache), "PYTHONPATH": str(ROOT / "src")}


def run_page(page: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/run_page.py"), str(page)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(cache))


@pytest.fixture(scope="module")
def runner(cache: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs pages in processes of their own, which share the time to import torch."""
    command = [sys.executable, str(ROOT / "tools/run_page.py"), "--stdin"]
    with subprocess.Popen(
        command if WHOLE else [*command, "--quick"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(cache),
    ) as process:  # fmt: skip
        yield process


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_run(page: Path, runner: subprocess.Popen[str]) -> None:
    assert runner.stdin is not None
    assert runner.stdout is not None
    print(page, file=runner.stdin, flush=True)
    done = json.loads(runner.stdout.readline())
    assert done["code"] == 0, done["shown"]


def test_the_first_page_has_the_examples_of_the_readme() -> None:
    def code(page: Path) -> set[str]:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        return {line.split("  #")[0] for block in blocks for line in block.splitlines()}

    first = code(ROOT / "docs/index.md")
    assert first
    assert first <= code(ROOT / "README.md")


@pytest.mark.parametrize(
    ("example", "shown", "complaint"),
    [
        ("print('one two', 0.5)", "one ... 0.52", ""),
        ("print('one two', 0.5)", "one two 0.62", "0.5 instead of 0.62"),
        ("print('[0.51,0.2]', '1,234.5')", "[0.5,0.21] 1,234.5", ""),
        ("print('[0.51,0.2]')", "[0.5,0.31]", "0.2 instead of 0.31"),
        ("print('one two')", "one three", "the words differ"),
        ("1 / 0", "", "ZeroDivisionError"),
    ],
)
def test_what_an_example_shows_is_compared(
    tmp_path: Path, example: str, shown: str, complaint: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```python\n{example}\n```\n\n```text\n{shown}\n```\n", "utf-8")
    done = run_page(page, tmp_path)
    assert (done.returncode == 0) == (complaint == "")
    assert complaint in done.stderr


def test_a_command_that_fails_fails_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\ntercet predict nothing --text x\n```\n", "utf-8")
    done = run_page(page, tmp_path)
    assert done.returncode == 1
    assert "exit code 2" in done.stderr


def test_a_server_may_remove_its_file_while_its_page_ends(tmp_path: Path) -> None:
    """A link to nothing is what a listing still has and reading no longer finds."""
    page = tmp_path / "page.md"
    page.write_text("```sh\nln -s removed server.pid; echo ended\n```\n", "utf-8")
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ended" in done.stdout


def test_figures_of_explanations_are_measured() -> None:
    """A figure with three decimals is on a page of results/, or is what an example shows."""
    results = "".join(path.read_text("utf-8") for path in ROOT.glob("results/**/*.md"))
    shown = "".join(page.read_text("utf-8") for page in PAGES)
    for page in [ROOT / "README.md", *ROOT.glob("docs/explanations/*.md")]:
        figures = set(re.findall(r"\b0\.\d{3}\b", page.read_text("utf-8")))
        unknown = {figure for figure in figures if figure not in results and figure not in shown}
        assert not unknown, f"{page.name}: {', '.join(sorted(unknown))}"
