"""What `fit` is given: files, or tables in memory, each one task."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tercet.data.files import bare_name, find_file
from tercet.data.likely import KINDS, LabelKind
from tercet.data.look import Look, look_at
from tercet.data.tables import write_tables
from tercet.errors import ArgumentError, TercetError, renamed
from tercet.specs import Column

T = TypeVar("T")
UNNAMED = "task"
"""The name of a table in memory that has none."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""The names of tasks in recipes; paths are made of them."""


@dataclass(frozen=True, slots=True)
class Source:
    """A task: its name, its training file and what that is about, and its dev file if any.

    draw: how many of the rows are used; None: all
    """

    name: str
    look: Look
    dev: Path | None = None
    group: Column | None = None
    draw: int | None = None

    @property
    def path(self) -> Path:
        return self.look.path

    @property
    def rows(self) -> int:
        """Those that are used."""
        return self.look.rows if self.draw is None else self.draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a user says about the tables: one value for all, or one per task."""

    text: object = None
    label: object = None
    kind: object = None
    group: object = None


def gather(
    sources: Sequence[object],
    named: Mapping[str, object],
    *,
    task: str | Sequence[str] | None,
    dev: object,
    given: Given,
    folder: Path,
) -> list[Source]:
    """The tasks of files and tables; tables in memory are written into `folder`."""
    tables = _named(sources, named, task)
    if not tables:
        raise TercetError("`fit` needs a labelled file or table.")
    devs = _by_task(dev, list(tables), "dev")
    memory = {name: table for name, table in tables.items() if not _is_path(table)}
    memory |= {f"{name}-dev": t for name, t in devs.items() if t is not None and not _is_path(t)}
    with renamed(write_tables(memory, folder) if memory else {}):
        return [
            _source(name, _file(name, table, folder), devs.get(name), given, folder, list(tables))
            for name, table in tables.items()
        ]


def common_folder(sources: Sequence[Source]) -> Path:
    """The folder that all files are in, to which recipes name them relatively."""
    files = [source.path for source in sources] + [s.dev for s in sources if s.dev is not None]
    return Path(os.path.commonpath([file.resolve().parent for file in files]))


def _source(
    name: str, file: Path, dev: object, given: Given, folder: Path, names: list[str]
) -> Source:
    def own(argument: str) -> object:
        return _by_task(getattr(given, argument), names, argument).get(name)

    text = own("text")
    columns = [text] if isinstance(text, str | int) else list(text or ())  # type: ignore[call-overload]
    kind = _kind(own("kind"))
    look = look_at(file, text=columns, label=own("label"), kind=kind)  # type: ignore[arg-type]
    dev_file = None if dev is None else _file(f"{name}-dev", dev, folder)
    return Source(name, look, dev_file, own("group"))  # type: ignore[arg-type]


def _kind(kind: object) -> LabelKind | None:
    if kind is not None and kind not in KINDS:
        raise ArgumentError(f"`kind` is {kind!r}; it should be one of {', '.join(KINDS)}.", "kind")
    return kind


def _named(
    sources: Sequence[object], named: Mapping[str, object], task: str | Sequence[str] | None
) -> dict[str, object]:
    names = [task] if isinstance(task, str) else list(task or ())
    for name in (*names, *named):
        if not _NAME.fullmatch(name):
            raise ArgumentError(
                f"`task` is {name!r}; the name of a task may have only letters, digits, _ and -.",
                "task",
            )
    if names and len(names) != len(sources):
        raise ArgumentError(
            f"`task` gives {len(names)} names for {len(sources)} files: give one for each.", "task"
        )
    tables: dict[str, object] = {}
    for place, table in enumerate(sources):
        name = names[place] if names else _name(table)
        while not names and name in (*tables, *named):
            name = f"{name}-{place + 1}"
        if name in tables or name in named:
            raise ArgumentError(f"`task` names `{name}` twice.", "task")
        tables[name] = table
    return {**tables, **named}


def names_of(files: Sequence[str], task: Sequence[str] | None) -> list[str]:
    """The names of the tasks of files."""
    return list(_named(files, {}, task or None))


def _name(table: object) -> str:
    if not _is_path(table):
        return UNNAMED
    path = Path(str(table))
    return _words(Path(bare_name(path)).stem) or _words(path.resolve().parent.name) or UNNAMED


def _words(name: str) -> str:
    """A file's or folder's name as a task's: `Team tickets.train` is `Team-tickets`."""
    joined = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    return re.sub(r"(^|[-_])(train|training)$", "", joined.strip("-_"), flags=re.I)


def _is_path(table: object) -> bool:
    return isinstance(table, str | os.PathLike)


def _file(name: str, table: object, folder: Path) -> Path:
    return find_file(str(table)) if _is_path(table) else folder / f"{name}.parquet"


def _by_task(value: object, names: list[str], argument: str) -> dict[str, object]:
    """What an argument says of each task: a mapping by task, or one value for all."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or (
        argument == "dev" and len(names) == 1 and not (set(value) <= set(names))
    ):
        if argument == "dev" and len(names) > 1:
            raise ArgumentError(
                "`dev` needs a mapping from task to file where there are several tasks.", "dev"
            )
        return dict.fromkeys(names, value)
    unknown = [name for name in value if name not in names]
    if unknown:
        raise ArgumentError(
            f"`{argument}` names the task {unknown[0]!r}; the tasks are {', '.join(names)}.",
            argument,
        )
    return dict(value)
