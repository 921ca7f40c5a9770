"""How figures were made: what a table must say to be honest."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import torch

import tercet


def facts_of(*, encoder: str | None, seeds: int, changes: Sequence[str]) -> dict[str, str]:
    """Encoder, seeds, changes, version and machine, each in words."""
    return {
        "encoder": encoder or "as each recipe names it",
        "seeds": str(seeds),
        "changes": ", ".join(changes) or "none",
        "tercet": tercet.__version__,
        "torch": torch.__version__,
        "machine": _machine(),
        "intervals": "95 %, over seeds where there are several (Student's t), else over dev rows",
        "data": "NLI and Quora differ in size from the reports'; see each recipe's header",
    }


def _machine() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
