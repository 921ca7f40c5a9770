"""What a run is made with: versions, machine and weights."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import torch

import tercet


def describe_environment(device: torch.device, *, weights: str) -> dict[str, str]:
    """Each in words, for tables of results; `weights`: those that the run began with."""
    return {
        "tercet": tercet.__version__,
        "commit": commit(),
        "torch": torch.__version__,
        "machine": machine(device),
        "weights": weights,
    }


def machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"


def commit() -> str:
    """The last commit that changed the package, `+` if files have changed since.

    TERCET_COMMIT names it for a copy without its history.
    """
    if name := os.environ.get("TERCET_COMMIT"):
        return name
    last = _git("log", "-1", "--format=%h", "--", ".")
    return last + ("+" if last and _git("status", "--porcelain", "--", ".") else "") or "unknown"


def _git(*arguments: str) -> str:
    """What git prints in the package's folder; nothing where there is no git or no history."""
    folder = Path(tercet.__file__).parent
    try:
        ended = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""
