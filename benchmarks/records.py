"""Records of benchmarks: tables in JSON, with the command, commit and machine of each run."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tercet.files import read_json_object, write_json
from tercet.training.environment import commit

RESULTS = Path(__file__).resolve().parents[1] / "results"
PARTS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8")


def write_record(
    file: str,
    name: str,
    *,
    command: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    packages: Sequence[str],
    **facts: Any,
) -> None:
    """Put a table into results/FILE under a name; other tables of the file stay."""
    path = RESULTS / file
    document = read_json_object(path) if path.exists() else {"records": {}}
    document["records"][name] = {
        "command": command,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": cpu(),
        "versions": {package: version(package) for package in packages},
        **facts,
        "columns": list(columns),
        "rows": [list(row) for row in rows],
    }
    write_json(path, document)


def cpu() -> str:
    """This machine's processor, its cores and the instructions that matter here."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    found = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    flags = found.get("flags", "").split()
    known = ", ".join(part for part in PARTS if part in flags) or "unknown instructions"
    return f"{found.get('model name', platform.machine())}, {os.cpu_count()} cores, {known}"
