"""`tercet.evaluate`: suites run on a model from Python, with the report that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tercet.data.tables import write_tables
from tercet.errors import TercetError, renamed
from tercet.evaluation.evaluation import Evaluation
from tercet.evaluation.evaluation import evaluate as run_suites
from tercet.evaluation.labelled import on_file, on_files
from tercet.files import write_text
from tercet.model import Model, load
from tercet.progress import Phases, is_watched, plain_phases, silent_phases
from tercet.report.report import Report
from tercet.report.training import run_of
from tercet.specs import Column

TABLES = "tables"
"""The name of data in memory."""


@dataclass(frozen=True, slots=True, repr=False)
class Measured(Evaluation):
    """An evaluation that writes its report.

    run: the run folder of the model, if it has one
    other_rows: whether other rows were measured than in that run
    """

    run: Path | None = None
    other_rows: bool = False

    def report(self, file: str | Path) -> Path:
        """Write a single-file HTML report.

        >>> measured.report("sentiment.html").name
        'sentiment.html'
        """
        path = Path(file)
        report = Report([self], run=self.run, other_rows=self.other_rows)
        write_text(path, report.to_html())
        return path


def evaluate(
    model: Model | str | Path | None = None,
    data: str | Path | Mapping[str, Any] | None = None,
    *,
    suites: Sequence[str] | None = None,
    rows: int | None = None,
    text: Column | Sequence[Column] | None = None,
    label: Column | None = None,
    progress: bool | None = None,
    phases: Phases | None = None,
) -> Measured:
    """Score a model on suites, as `tercet evaluate` does.

    model: a model, or what `tercet.load` takes; default: the model that comes with the package
    data: the folder of the suites' files; or labelled files or tables by the name of the task,
        such as `{"team": frame}`; or one labelled file, for a model with one task
    suites: names; default: `tasks`
    rows: at most this many rows of each task and set, for a quick look; default: all
    text: the text column of labelled files and tables, or two of pairs; default: those that the
        task was trained with, or else guessed
    label: their label column; default: as `text`
    progress: whether to show it on stderr; default: in notebooks and terminals
    phases: starts the progress of one phase instead

    >>> rows = {"sentence": ["A triumph.", "A dull film."], "label": [4, 0]}
    >>> measured = tercet.evaluate(data={"sentiment": rows})
    >>> measured
    Evaluation of tercet/small on tables
      sentiment: accuracy, mode single 1.000 (95 %: 0.342 to 1.000)
    """
    if phases is None:
        shown = is_watched() if progress is None else progress
        phases = plain_phases if shown else silent_phases
    loaded = model if isinstance(model, Model) else load(model)
    suites = ["tasks"] if suites is None else [suites] if isinstance(suites, str) else suites
    columns = None if text is None else [text] if isinstance(text, str | int) else list(text)
    with _placed(loaded, data, texts=columns, label=label) as (placed, folder):
        if placed is loaded and (columns or label is not None):
            raise TercetError("`text` and `label` are columns of labelled files and tables.")
        if placed is not loaded and list(suites) != ["tasks"]:
            raise TercetError("Labelled files and tables go with the suite `tasks` only.")
        found = run_suites(placed, folder, suites=suites, rows=rows, phases=phases)
    values = {field.name: getattr(found, field.name) for field in fields(Evaluation)}
    return Measured(**values, run=run_of(loaded.source), other_rows=placed is not loaded)


@contextmanager
def _placed(
    model: Model,
    data: str | Path | Mapping[str, Any] | None,
    *,
    texts: Sequence[Column] | None,
    label: Column | None,
) -> Iterator[tuple[Model, Path]]:
    """The model with the data of its tasks, and the data folder."""
    if isinstance(data, str | Path):
        path = Path(data)
        if path.is_dir():
            yield model, path
        else:
            yield on_file(model, path, texts=texts, label=label), path.parent
        return
    if not isinstance(data, Mapping) or not data:
        raise TercetError(
            "Give `data`: a folder, a labelled file, or tables by the name of the task, such as "
            "{'sentiment': frame}."
        )
    for name in data:
        model.resolve_mode(name)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / TABLES
        tables = {name: one for name, one in data.items() if not isinstance(one, str | Path)}
        files = {
            name: folder / f"{name}.parquet" if name in tables else Path(file)
            for name, file in data.items()
        }
        with renamed(write_tables(tables, folder)):
            yield on_files(model, files, texts=texts, label=label), folder
