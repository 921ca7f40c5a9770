"""The tasks of a fit, and the folder that their files are in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tercet.data.files import bare_name
from tercet.fitting.sources import Given, Source, common_folder, gather


class Inputs:
    """The tasks and the folder of their files; tables in memory get a temporary one.

    tables: the tasks whose rows were given in memory
    names: what errors call temporary files
    """

    def __init__(
        self,
        sources: Sequence[Any],
        tables: Mapping[str, Any],
        *,
        task: Any,
        dev: Any,
        given: Given,
    ) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="tercet-fit-")).resolve()
        self.names: dict[str, str] = {}
        try:
            self.sources = gather(
                sources, tables, task=task, dev=dev, given=given, folder=self._temporary
            )
            self.in_memory = any(self._temporary.iterdir())
            self.tables = {s.name for s in self.sources if s.path.parent == self._temporary}
            if self.in_memory:
                self.sources = [self._copied(source) for source in self.sources]
            self.folder = self._temporary if self.in_memory else common_folder(self.sources)
            self.folder = self.folder.resolve()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Inputs:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)

    def keep(self, folder: Path) -> Path:
        """The folder of the data from now on: tables in memory are kept in `folder`."""
        if not self.in_memory:
            return self.folder
        shutil.copytree(self._temporary, folder)
        return folder

    def _copied(self, source: Source) -> Source:
        """The same with files beside the tables, so that one folder has all data."""
        files = {source.name: source.path}
        files |= {} if source.dev is None else {f"{source.name}-dev": source.dev}
        copies = []
        for name, file in files.items():
            ending = file.name.removeprefix(Path(bare_name(file)).stem)
            copy = self._temporary / f"{name}{ending}"
            self.names[str(copy)] = f"Table `{name}`"
            if file.resolve() != copy:
                shutil.copyfile(file, copy)
                self.names[str(copy)] = str(file)
            copies.append(copy)
        look = replace(source.look, path=copies[0])
        return replace(source, look=look, dev=copies[1] if len(copies) > 1 else None)
