"""What a run was made with, for tables that must say so."""

from __future__ import annotations

import platform

import torch

import tercet


def made_with(device: torch.device, *, weights: str) -> dict[str, str]:
    """The versions, the machine and the weights that a run began with, each in words."""
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
