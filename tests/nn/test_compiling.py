"""Kernels that are compiled ahead are those that training launches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
SCRIPT = Path(__file__).with_name("compiles.py")


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_a_step_compiles_nothing_after_its_kernels_were_compiled_ahead(
    architecture: str, tmp_path: Path
) -> None:
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    ran = subprocess.run(
        [sys.executable, SCRIPT, architecture],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    # Six kernels between matrix products, and attention forward and backward in two sizes.
    assert found["ahead"] >= 10
    assert found["later"] == 0
