"""The import contracts of pyproject.toml: which layer may import which."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_layers_keep_their_order() -> None:
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_contributing_lists_the_layers_in_order() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (order,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = page.partition("## Layers")[2].partition("\n## ")[0]
    listed = re.findall(r"^    (\w+(?:, \w+)*)  ", section, re.MULTILINE)
    assert [line.split(", ") for line in listed] == [
        layer.split(" | ") for layer in reversed(order)
    ]
