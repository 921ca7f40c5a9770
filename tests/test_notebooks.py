"""The notebooks of docs/ run from top to bottom."""

from __future__ import annotations

import importlib.util
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

ROOT = Path(__file__).parents[1]
ROWS = 60


def run_notebook(path: Path) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("run_notebook", ROOT / "tools/run_notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_notebook(path)


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def test_from_a_data_frame_to_a_served_model(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs/notebooks", tmp_path / "notebooks")
    (tmp_path / "examples").mkdir()
    lines = (ROOT / "docs/examples/tickets.csv").read_text("utf-8").splitlines()
    few = "\n".join(lines[: ROWS + 1]) + "\n"
    (tmp_path / "examples/tickets.csv").write_text(few, "utf-8")
    path = tmp_path / "notebooks/own-data.ipynb"
    text = path.read_text("utf-8")
    # A short time on few rows, and a port that other tests do not use.
    path.write_text(
        text.replace("minutes=9", "minutes=0.1").replace("8123", str(free_port())), "utf-8"
    )

    ran = run_notebook(path)

    shown = ["".join(out["text"]) for c in ran["cells"] for out in c.get("outputs", [])]
    assert any(text.startswith("FitResult in runs/team") for text in shown)
    assert any("Billing" in text and "Returns" in text for text in shown)
    served = next(text for text in reversed(shown) if text.startswith("'"))
    assert served.strip("'\n") in few
    assert (path.parent / "report.html").exists()
