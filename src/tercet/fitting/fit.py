"""`tercet.fit`: labelled files or tables to a model that is measured, calibrated and reported."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from tercet.data.files import MissingFileError, find_file
from tercet.data.likely import LabelKind
from tercet.errors import ArgumentError, nearest, renamed
from tercet.evaluation.evaluation import evaluate
from tercet.evaluation.suites.tasks import TasksResult
from tercet.files import read_json_object, write_json, write_text
from tercet.fitting.budget import Budget
from tercet.fitting.by_dev import fit_by_dev
from tercet.fitting.by_folds import fit_by_folds
from tercet.fitting.inputs import Inputs
from tercet.fitting.overlaps import repeated_rows, rows_seen_before
from tercet.fitting.planning import Judge, Settings, base_epochs
from tercet.fitting.result import SUMMARY, FitResult, TaskScore
from tercet.fitting.sources import Given, Source
from tercet.fitting.work import Fitted, Work
from tercet.model import SHIPPED, Model, load
from tercet.nn.onednn import cpu_has
from tercet.report.report import Report
from tercet.specs import Long
from tercet.specs.stages import Precision
from tercet.training.distributed import World
from tercet.training.listener import Listener, listener_of
from tercet.training.run_folder import holds_files, only_one

FOLDED_ROWS = 2000
"""Rows of all tasks up to which candidates are judged by cross-validation."""
MAX_TOKENS = 512
LONG_SHARE = 0.05
"""The share of longer texts from which on they are read in windows."""
EVALUATION, REPORT, DATA = "evaluation.json", "report.html", "data"


def fit(
    *sources: Any,
    text: str | Sequence[str] | Mapping[str, Any] | None = None,
    label: str | Mapping[str, str] | None = None,
    kind: LabelKind | Mapping[str, LabelKind] | None = None,
    task: str | Sequence[str] | None = None,
    dev: Any = None,
    group: str | Mapping[str, str] | None = None,
    encoder: str | Path | None = None,
    onto: str | Path | None = None,
    long: Long | None = None,
    minutes: float = 10.0,
    seed: int = 11711,
    out: str | Path | None = None,
    device: str | None = None,
    progress: bool | None = None,
    listener: Listener | None = None,
    **tables: Any,
) -> FitResult:
    """Train one encoder on labelled files or tables, each a task, within some minutes.

        result = tercet.fit("tickets.csv")
        result = tercet.fit(team=frame, same=pairs, minutes=5)
        result.model.predict("team", ["My invoice is wrong."])

    sources, tables: files, data frames, Arrow tables, `datasets` or lists of dicts; tasks are
        named by files or keywords
    text: the text column, or two of pairs; default: guessed
    label: the label column; default: guessed
    kind: `classes`, `multi-label` or `grades`; default: guessed
    task: names of the tasks of `sources`
    dev: a file or table to measure on; default: rows are split off, or cross-validated
    group: a column whose equal values are never split up between training and measuring.
        These take one value, or a mapping by task.
    encoder: what to start from: a name of `tercet weights`, a folder or a finished model; default:
        the model that comes with the package
    onto: a finished model to add the tasks to; its encoder and its answers stay the same
    long: `truncate` texts that are longer than the encoder reads at once, or read all of them in
        `windows`; default: windows if more than a twentieth of the texts are longer
    minutes: roughly how long it may take
    seed: the seed of the split and the training
    out: the run folder; default: runs/TASK
    device: `cpu` or `cuda`; default: a GPU if there is one
    progress: whether to show it on stderr; default: in notebooks and terminals
    listener: what shows progress instead

    >>> result = tercet.fit("tickets.csv", minutes=0.05)
    >>> result.model.predict("tickets", ["My parcel is lost."])[0].name
    'Parcels and Delivery'
    """
    if onto is not None and encoder is not None:
        raise ArgumentError(
            "`onto` keeps the encoder of that model: leave out `encoder`.", "encoder"
        )
    if onto is not None and long is not None:
        raise ArgumentError("`onto` keeps `long` of that model: leave out `long`.", "long")
    if not isinstance(minutes, Real) or not 0.0 < minutes < math.inf:
        raise ArgumentError(f"`minutes` is {minutes!r}; it should be a number above 0.", "minutes")
    _check_names(tables)
    budget = Budget(60.0 * minutes)
    given = Given(text=text, label=label, kind=kind, group=group)
    with Inputs(sources, tables, task=task, dev=dev, given=given) as inputs, renamed(inputs.names):
        work = Work(
            data=inputs.folder,
            folder=Path(out) if out is not None else Path("runs") / inputs.sources[0].name,
            device=device,
            listener=listener_of(listener, progress=progress),
            budget=budget,
        )
        with _own_folder(work.folder):
            for source in inputs.sources:
                is_table = source.name in inputs.tables
                shown = f"Table `{source.name}`" if is_table else _shown(source, inputs.sources)
                for sentence in source.look.sentences(name=shown):
                    work.listener.say(sentence)
            body = str(onto if onto is not None else encoder if encoder is not None else SHIPPED)
            settings = _settings(inputs, work, body, is_onto=onto is not None, long=long, seed=seed)
            repeated = list(repeated_rows(work, settings))
            for sentence in repeated:
                work.listener.say(sentence)
            fitted = (fit_by_folds if settings.judge == "folds" else fit_by_dev)(work, settings)
            data = inputs.keep(work.folder / DATA)
            return _finished(work, settings, fitted, data, repeated=repeated)


def _check_names(tables: Mapping[str, Any]) -> None:
    """A mistyped argument looks like a table of that name."""
    known = [name for name in signature(fit).parameters if name not in ("sources", "tables")]
    for name, value in tables.items():
        if isinstance(value, str | os.PathLike):
            with suppress(MissingFileError):
                find_file(str(value))
                continue
        elif value is not None and not isinstance(value, Real):
            continue
        raise ArgumentError(
            f"`{name}` is {value!r}, neither a file nor a table, and `fit` has no argument of that "
            f"name{nearest(name, known)}."
        )


def _shown(source: Source, sources: Sequence[Source]) -> str:
    """The name of a file, with its folder and its task where others are called the same."""
    same = [other for other in sources if other.path.name == source.path.name]
    if len(same) == 1:
        return source.path.name
    return f"{source.path.parent.name}/{source.path.name} (task {source.name})"


@contextmanager
def _own_folder(folder: Path) -> Iterator[None]:
    """The run folder, for this call alone, and removed if it fails: half a run is of no use, and
    would be in the way of the next call."""
    _make_folder(folder)
    with only_one(folder):
        # Another process may have filled it before the lock was taken.
        _refuse_files(folder)
        try:
            yield
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _refuse_files(folder: Path) -> None:
    if holds_files(folder):
        raise ArgumentError(f"{folder}: already holds files; use another `out`.", "out")


def _make_folder(folder: Path) -> None:
    """Make the run folder now, so that nothing is trained for one that cannot be written."""
    _refuse_files(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError as error:
        raise ArgumentError(f"{folder}: is a file; `out` needs a folder.", "out") from error
    except OSError as error:
        raise ArgumentError(
            f"{folder}: cannot be written ({error.strerror}); use another `out`.", "out"
        ) from error


def _settings(
    inputs: Inputs, work: Work, body: str, *, is_onto: bool, long: Long | None, seed: int
) -> Settings:
    """What all candidates share; `body` is the model to start from."""
    sources = inputs.sources
    has_dev = [source.dev is not None for source in sources]
    judge: Judge = "files" if all(has_dev) else "share"
    if not any(has_dev) and sum(source.look.rows for source in sources) <= FOLDED_ROWS:
        judge = "folds"
    model = load(body, device="cpu")
    encoder: dict[str, Any] | None = None
    for source in sources if is_onto else ():
        if source.name in model.tasks:
            raise ArgumentError(
                f"`onto` {body}: that model has a task `{source.name}` already; give the new task "
                "another name with `task`.",
                "onto",
                "task",
            )
    if not is_onto:
        reading = _reading(model, sources, long=long, listener=work.listener)
        encoder = {"name": body, "pooling": model.info.pooling, **reading}
    return Settings(
        sources=sources,
        folder=inputs.folder,
        encoder=encoder,
        onto=body if is_onto else None,
        width=model.width,
        seed=seed,
        judge=judge,
        epochs=base_epochs(sources),
        precision=_precision(work.device),
        decisions={},
    )


def _precision(device: str | None) -> Precision:
    """bf16 on a CPU with instructions for it, which takes two thirds of the time; a GPU has its own
    usual precision."""
    if World.join(device).device.type != "cpu":
        return "auto"
    return "bf16" if cpu_has("avx512_bf16", "amx_bf16") else "auto"


def _reading(
    model: Model, sources: Sequence[Source], *, long: Long | None, listener: Listener
) -> dict[str, Any]:
    """`max_tokens`, up to the limit of the encoder whatever the lengths of these texts, since those
    to come may be longer, and what is done with longer ones."""
    limit = min(MAX_TOKENS, model.network.encoder.config.max_tokens)
    if long is None:
        texts = [text for source in sources for text in source.look.sample]
        lengths = model.tokenizer.pieces(texts, limit=limit).lengths + 2
        share = float(np.mean(lengths > limit))
        if share > LONG_SHARE:
            listener.say(
                f"{share:.0%} of the texts are longer than {limit} tokens: they are read whole, "
                "in windows; to truncate them instead is faster."
            )
            long = "windows"
    return {"max_tokens": limit, "long": long or "truncate"}


def _finished(
    work: Work, settings: Settings, fitted: Fitted, data: Path, *, repeated: Sequence[str]
) -> FitResult:
    """Write the report, and say what is wrong with the model.

    repeated: what is wrong with the rows that it is measured on
    """
    evaluation = fitted.evaluation
    if evaluation is None:
        evaluation = evaluate(load(work.folder, device=work.device), data, suites=["tasks"])
    names = {source.name for source in settings.sources}
    scores = {
        answers.task: TaskScore.of(answers, fitted.baselines.get(answers.task))
        for answers in evaluation.suites["tasks"].answers()
        if answers.task in names
    }
    measured = evaluation.suites["tasks"]
    assert isinstance(measured, TasksResult)
    seen = [each for name in scores for each in rows_seen_before(name, measured.tasks[name])]
    _warn_of_rows(work.folder, [*repeated, *seen])
    _warn_of_hurt(work.folder, settings.sources, scores)
    _note_shortage(work)
    report = Report([evaluation], run=work.folder)
    write_text(work.folder / REPORT, report.to_html())
    write_json(work.folder / EVALUATION, report.to_json())
    result = FitResult(work.folder, evaluation, scores, data, device=work.device)
    for warning in result.warnings:
        work.listener.say(f"Warning: {warning}")
    return result


def _warn_of_rows(folder: Path, sentences: Sequence[str]) -> None:
    """Say what is wrong with the rows that a model is measured on before what they tell of it."""
    summary = read_json_object(folder / SUMMARY)
    write_json(folder / SUMMARY, summary | {"warnings": [*sentences, *summary["warnings"]]})


def _note_shortage(work: Work) -> None:
    """Say before all other warnings that time limited the model."""
    if (shortage := work.budget.shortage) is None:
        return
    summary = read_json_object(work.folder / SUMMARY)
    summary |= {"shortage": shortage, "warnings": [shortage, *summary["warnings"]]}
    write_json(work.folder / SUMMARY, summary)


def _warn_of_hurt(folder: Path, sources: Sequence[Source], scores: Mapping[str, TaskScore]) -> None:
    """Say what to do about tasks that are clearly worse for being tuned with others.

    Candidates are judged over all tasks, since all share one encoder: a second, untouched one for
    some of them would double the memory and the time of every answer.
    """
    if len(sources) == 1:
        return
    summary = read_json_object(folder / SUMMARY)
    summary["warnings"] += [
        f"{source.name}: the files were judged together, and this one is clearly better off alone: "
        f"fit {source.path.name} by itself."
        for source in sources
        if scores[source.name].is_hurt
    ]
    write_json(folder / SUMMARY, summary)
