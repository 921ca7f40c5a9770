"""tools/ship.py: half the bytes, the same answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

import tercet

SHIP = Path(__file__).parents[2] / "tools" / "ship.py"
TEXTS = ["a fine film", "dull and long"]


def test_a_shipped_model_takes_half_the_bytes_and_answers_the_same(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    made = tercet.load(tiny_encoder)
    made.save(tmp_path / "made")
    out = tmp_path / "shipped"
    subprocess.run([sys.executable, SHIP, tmp_path / "made", out], check=True, timeout=120)
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (out, tmp_path / "made")]
    assert sizes[0] < 0.6 * sizes[1]
    shipped = tercet.load(out)
    assert np.abs(shipped.embed(TEXTS) - made.embed(TEXTS)).max() < 5e-3
    assert all(parameter.dtype == torch.float32 for parameter in shipped.network.parameters())
