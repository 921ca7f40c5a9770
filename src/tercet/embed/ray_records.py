"""The work folder of the Ray engine: which parts are finished, so that none is embedded twice.

A part is finished when its record exists: a JSON file, written last and atomically, that names the
files of the part. File names are unique, so that a process that was thought dead cannot overwrite
what another one has written.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from tercet.embed.shared_files import SharedFolder
from tercet.files import parse_json

FORMAT = 1
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class PartRecord:
    """A finished part.

    rows, skipped: rows that were embedded, and rows skipped because they have no text
    files: sha256 of each file, by name
    fragment: Lance's metadata of the part as JSON; None for Parquet
    long: how many texts were too long: the fields of `LongInputs`
    """

    part: int
    rows: int
    skipped: int
    files: dict[str, str]
    fragment: str | None = None
    long: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartRecords:
    """The records of all parts in a folder, and the folder of the parts' files."""

    folder: SharedFolder
    data: SharedFolder

    def open(self, **made_from: Any) -> bool:
        """Start or resume. Returns whether parts of other inputs were there and are dropped."""
        key = hashlib.sha256(json.dumps([FORMAT, made_from], sort_keys=True).encode()).hexdigest()
        names = self.folder.names()
        if _MANIFEST in names and _parsed(self.folder.read(_MANIFEST)).get("key") == key:
            return False
        self.folder.remove()
        self.folder.write(_MANIFEST, json.dumps({"key": key} | made_from).encode())
        return bool(names)

    def recorded(self) -> list[int]:
        """The parts that have a record."""
        stems = [name.removesuffix(".json") for name in self.folder.names() if name != _MANIFEST]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def record(self, part: int) -> PartRecord | None:
        """The record of a part; None if it is unfinished or its record is damaged."""
        try:
            return PartRecord(**_parsed(self.folder.read(_name(part))))
        except (FileNotFoundError, TypeError):
            return None

    def finish(self, record: PartRecord) -> None:
        self.folder.write(_name(record.part), json.dumps(asdict(record)).encode())

    def intact(self, part: int) -> bool:
        """Whether all files of a part are as they were written."""
        record = self.record(part)
        if record is None or record.part != part:
            return False
        return all(self.data.sha256(name) == sha256 for name, sha256 in record.files.items())

    def forget(self, part: int) -> None:
        self.folder.remove_file(_name(part))


def _name(part: int) -> str:
    return f"{part:08d}.json"


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        parsed = parse_json(content)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
