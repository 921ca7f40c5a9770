"""What a benchmark measured, as a table on stdout and as a record for `make results`.

    TERCET_RECORD=results/speed.json python benchmarks/latency.py

With TERCET_RECORD the record, with its command, commit, machine and versions, replaces the one of
the same name in that file; a page of tools/pages shows it (tools/rendering/pages.py).
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tercet.cores import threads
from tercet.files import read_json_object, write_json
from tercet.reproduce.table import markdown_table
from tercet.training.environment import commit

VARIABLE = "TERCET_RECORD"


def record(
    name: str,
    *,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    values: Mapping[str, object] | None = None,
    packages: Sequence[str] = ("torch",),
    facts: Mapping[str, str] | None = None,
) -> None:
    """Print a table and single values, and keep them where TERCET_RECORD names a file.

    values: single figures, by what they are
    packages: whose versions matter
    facts: what else belongs to it, such as `encoder` and `data`
    """
    cells = [[str(cell) for cell in row] for row in rows]
    shown = {key: str(value) for key, value in (values or {}).items()}
    print("\n".join(markdown_table(columns, cells)))
    for key, value in shown.items():
        print(f"{key}: {value}")
    if (file := os.environ.get(VARIABLE)) is None:
        return
    path = Path(file)
    document = read_json_object(path) if path.is_file() else {"records": {}}
    document["records"][name] = {
        "command": shlex.join(["python", _from_here(sys.argv[0]), *sys.argv[1:]]),
        "commit": commit(),
        "machine": machine(),
        "versions": ", ".join(_versions(packages)),
        **(facts or {}),
        "columns": list(columns),
        "rows": cells,
        **({"values": shown} if shown else {}),
    }
    write_json(path, document)


def machine() -> str:
    """The processor with the cores in use, or the GPU if torch has been imported and sees one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}"
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{threads()} cores of {models[0] if models else platform.machine()}"


def _from_here(script: str) -> str:
    path = Path(script)
    return f"{path.parent.name}/{path.name}" if path.is_absolute() else script


def _versions(packages: Sequence[str]) -> Iterable[str]:
    yield f"Python {platform.python_version()}"
    for package in packages:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"no {package}"
