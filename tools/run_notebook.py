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
    tree = ast.parse(source, where)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        kept = ast.Assign([ast.Name("_", ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(kept, last))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr) and names["_"] is not None:
            print(repr(names["_"]))
    return shown.getvalue()


def _outputs(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def main() -> None:
    path = Path(sys.argv[1])
    notebook = run_notebook(path)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
