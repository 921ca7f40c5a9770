"""Run a notebook from top to bottom in this process, and keep what its cells show.

    python tools/run_notebook.py docs/notebooks/own-data.ipynb

Cells run in the notebook's folder. What a cell prints and the value of its last expression become
its output, as text; a cell that fails ends the run.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def run_notebook(path: Path) -> dict[str, Any]:
    """The notebook at a path with the outputs of its cells."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(path.parent):
        cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
        for number, cell in enumerate(cells, start=1):
            cell["outputs"] = _outputs(_run("".join(cell["source"]), names, f"cell {number}"))
            cell["execution_count"] = number
    return notebook


def _run(source: str, names: dict[str, Any], where: str) -> str:
    """What a cell shows."""
    body = ast.parse(source, where).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(ast.Module(body, []), where, "exec"), names)
        if last is not None:
            expression = compile(ast.Expression(last.value), where, "eval")
            value = eval(expression, names)  # noqa: S307, as the notebook is our own
            if value is not None:
                print(repr(value))
    return shown.getvalue()


def _outputs(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def main() -> None:
    path = Path(sys.argv[1])
    notebook = run_notebook(path)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + os.linesep, "utf-8")


if __name__ == "__main__":
    main()
