"""Every example on the pages that teach runs from top to bottom and shows what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
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


# A page that runs a file of >>> lines, beside the first 60 rows of an example.
SESSION = """
[rows](examples/tickets.csv)

```python
import doctest
from pathlib import Path

rows = Path("tickets.csv").read_text("utf-8").splitlines(keepends=True)
Path("tickets.csv").write_text("".join(rows[:61]), "utf-8")
doctest.testfile("{file}", module_relative=False).failed
```

```text
0
```
"""


Run = Callable[[Path], tuple[int, str]]


@pytest.fixture(scope="module")
def run_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a page in a process of its own; all share the time to import torch. Gives its exit code
    and what it showed."""
    command = [sys.executable, str(ROOT / "tools/run_page.py"), "--stdin"]
    own = {"TERCET_CACHE": str(tmp_path_factory.mktemp("cache")), "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command if WHOLE else [*command, "--quick"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | own,
    ) as process:  # fmt: skip

        def run(page: Path) -> tuple[int, str]:
            assert process.stdin is not None
            assert process.stdout is not None
            print(page, file=process.stdin, flush=True)
            done = json.loads(process.stdout.readline())
            return done["code"], done["shown"]

        yield run


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_run(page: Path, run_page: Run) -> None:
    code, shown = run_page(page)
    assert code == 0, shown


def test_the_examples_of_public_calls_give_what_they_show(tmp_path: Path, run_page: Run) -> None:
    """All of the reference, as one session: it registers a part, and uses files of its folder."""
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name)
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        reference = import_module("reference.python_api").python_api()
    finally:
        sys.path.remove(str(ROOT / "tools"))
    examples = re.findall(r"```pycon\n(.*?)\n```", reference, re.DOTALL)
    session = "\n\n".join([">>> import tercet", *examples, ""])
    (tmp_path / "session.txt").write_text(session, "utf-8")
    page = tmp_path / "page.md"
    page.write_text(SESSION.format(file=tmp_path / "session.txt"), "utf-8")
    code, shown = run_page(page)
    assert code == 0, shown
    assert session.count(">>> ") > 60


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
    tmp_path: Path, run_page: Run, example: str, shown: str, complaint: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```python\n{example}\n```\n\n```text\n{shown}\n```\n", "utf-8")
    code, found = run_page(page)
    assert (code == 0) == (complaint == "")
    assert complaint in found


@pytest.mark.parametrize("command", ["tercet predict nothing --text x", "ls nothing"])
def test_a_command_that_fails_fails_its_page(tmp_path: Path, run_page: Run, command: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```sh\n{command}\ntercet --version\n```\n", "utf-8")
    code, shown = run_page(page)
    assert code == 1
    assert "exit code 2" in shown


def test_what_the_commands_of_an_example_show_is_in_order(tmp_path: Path, run_page: Run) -> None:
    page = tmp_path / "page.md"
    recipe = "tercet recipes siamese/sts-mse --copy mine.toml"
    page.write_text(
        f"```sh\n{recipe}\nls\ntercet --version\n```\n\n```text\n...\nmine.toml\ntercet ...\n```\n",
        "utf-8",
    )
    code, shown = run_page(page)
    assert code == 0, shown


def test_a_server_may_remove_its_file_while_its_page_ends(tmp_path: Path, run_page: Run) -> None:
    """A link to nothing is what a listing still has and reading no longer finds."""
    page = tmp_path / "page.md"
    page.write_text("```sh\nln -s removed server.pid; echo ended\n```\n", "utf-8")
    code, shown = run_page(page)
    assert code == 0, shown
    assert "ended" in shown


def test_figures_of_explanations_are_measured() -> None:
    """A figure with three decimals is on a page of results/, or is what an example shows."""
    results = "".join(path.read_text("utf-8") for path in ROOT.glob("results/**/*.md"))
    shown = "".join(page.read_text("utf-8") for page in PAGES)
    for page in [ROOT / "README.md", *ROOT.glob("docs/explanations/*.md")]:
        figures = set(re.findall(r"\b0\.\d{3}\b", page.read_text("utf-8")))
        unknown = {figure for figure in figures if figure not in results and figure not in shown}
        assert not unknown, f"{page.name}: {', '.join(sorted(unknown))}"
