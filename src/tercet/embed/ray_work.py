"""The work folder of the Ray engine: which parts are finished, so that none is embedded twice.

A part is finished when its record lies there: a JSON file, written last and as a whole, that names
the files of the part. Those carry names of their own, so that a process that was thought dead
cannot spoil what another has written meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from tercet.embed.shared_files import Folder

FORMAT = 1
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Record:
    """A finished part.

    rows, skipped: rows that were embedded, and rows that were left out for having no text
    files: sha256 of each of its files, by name
    fragment: what Lance must know of it, as JSON; None for Parquet
    """

    part: int
    rows: int
    skipped: int
    files: dict[str, str]
    fragment: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The records of a run, beside its output, and the folder that holds the parts' files."""

    folder: Folder
    data: Folder

    def open(self, **made_from: Any) -> bool:
        """Begin or go on; what was made from something else is dropped, and then this is true."""
        key = hashlib.sha256(json.dumps([FORMAT, made_from], sort_keys=True).encode()).hexdigest()
        names = self.folder.names()
        if _MANIFEST in names and _parsed(self.folder.read(_MANIFEST)).get("key") == key:
            return False
        self.folder.remove()
        self.folder.write(_MANIFEST, json.dumps({"key": key} | made_from).encode())
        return bool(names)

    def recorded(self) -> list[int]:
        """Parts that have a record."""
        stems = [name.removesuffix(".json") for name in self.folder.names() if name != _MANIFEST]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def record(self, part: int) -> Record | None:
        """What is known of a part; None where it is not finished or its record is damaged."""
        try:
            return Record(**_parsed(self.folder.read(_name(part))))
        except (FileNotFoundError, TypeError):
            return None

    def finish(self, record: Record) -> None:
        self.folder.write(_name(record.part), json.dumps(asdict(record)).encode())

    def whole(self, part: int) -> Record | None:
        """The record of a part whose files are all as they were written."""
        found = self.record(part)
        if found is None or found.part != part:
            return None
        kept = all(self.data.sha256(name) == sha256 for name, sha256 in found.files.items())
        return found if kept else None

    def forget(self, part: int) -> None:
        self.folder.remove_file(_name(part))


def _name(part: int) -> str:
    return f"{part:08d}.json"


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
