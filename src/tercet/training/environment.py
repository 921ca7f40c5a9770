"""What a run is made with: versions, machine and weights."""

from __future__ import annotations

import platform

import torch

import tercet


def describe_environment(device: torch.device, *, weights: str) -> dict[str, str]:
    """Each in words, for tables of results; `weights`: those that the run began with."""
    return {
        "tercet": tercet.__version__,
        "torch": torch.__version__,
        "machine": machine(device),
        "weights": weights,
    }


def machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
