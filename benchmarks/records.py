"""Records of benchmarks: tables in JSON, with the command, commit and machine of each run.

    TERCET_RECORD=results/speed.json python benchmarks/latency.py

prints its table and puts it into that file, where a page of tools/pages shows it
(tools/rendering/pages.py); without TERCET_RECORD it only prints.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tercet.files import read_json_object, write_json
from tercet.reproduce.table import markdown_table
from tercet.training.environment import commit

RESULTS = Path(__file__).resolve().parents[1] / "results"
PARTS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
VARIABLE = "TERCET_RECORD"


def record(
    name: str,
    *,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    values: Mapping[str, object] | None = None,
    packages: Sequence[str] = ("torch",),
    **facts: Any,
) -> None:
    """Print a table and single values, and keep them where TERCET_RECORD names a file.

    values: single figures, by what they are
    packages: whose versions matter
    facts: what else belongs to it, such as `encoder` and `data`
    """
    cells = [[str(cell) for cell in row] for row in rows]
    shown = {key: str(value) for key, value in (values or {}).items()}
    print("\n".join([*markdown_table(columns, cells), *map(": ".join, shown.items())]), flush=True)
    if (file := os.environ.get(VARIABLE)) is not None:
        script = Path(sys.argv[0]).resolve()
        arguments = map(_without_place, sys.argv[1:])
        command = shlex.join(["python", f"{script.parent.name}/{script.name}", *arguments])
        facts |= {"values": shown} if shown else {}
        put(
            Path(file),
            name,
            command=command,
            packages=packages,
            columns=columns,
            rows=cells,
            **facts,
        )


def write_record(file: str, name: str, **record: Any) -> None:
    """`put` a table into results/FILE."""
    put(RESULTS / file, name, **record)


def put(
    path: Path,
    name: str,
    *,
    command: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    packages: Sequence[str],
    **facts: Any,
) -> None:
    """Put a table into a file under a name; other tables of the file stay."""
    document = read_json_object(path) if path.exists() else {"records": {}}
    document["records"][name] = {
        "command": command,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": {package: version(package) for package in packages},
        **facts,
        "columns": list(columns),
        "rows": [list(row) for row in rows],
    }
    write_json(path, document)


def _without_place(argument: str) -> str:
    """An absolute path says where something was on one machine: its last part is enough."""
    path = Path(argument)
    return path.name if path.is_absolute() else argument


def machine() -> str:
    """The GPU, where torch is imported and sees one; else the processor."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}"
    return cpu()


def cpu() -> str:
    """This machine's processor, its cores and the instructions that matter here."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    found = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    flags = found.get("flags", "").split()
    known = ", ".join(part for part in PARTS if part in flags) or "unknown instructions"
    name = found.get("model name", platform.machine())
    # Clouds call several generations the same.
    if "cpu family" in found:
        name += f" (family {found['cpu family']}, model {found.get('model', 'unknown')})"
    return f"{name}, {os.cpu_count()} cores, {known}"
