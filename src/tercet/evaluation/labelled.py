"""A model whose tasks are scored on other labelled files than their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tercet.data.files import find_file
from tercet.data.guess import guess_columns
from tercet.data.layouts import resolve
from tercet.data.readers import column_names
from tercet.errors import ArgumentError
from tercet.model import Model
from tercet.specs import Column, DataSpec, TaskSpec


def on_file(
    model: Model,
    file: Path,
    *,
    task: str | None = None,
    texts: Sequence[Column] | None = None,
    label: Column | None = None,
) -> Model:
    """The model with one task, whose dev rows are those of a file.

    task: default: the only one that the model has
    texts: the text columns; default: as in the task's own data, or else detected
    label: the label column; default likewise
    """
    if task is None:
        if len(model.tasks) != 1:
            has = ", ".join(model.tasks) or "none"
            raise ArgumentError(f"`task` must say which task of the model: it has {has}.", "task")
        (task,) = model.tasks
    return on_files(model, {task: file}, texts=texts, label=label)


def on_files(
    model: Model,
    files: Mapping[str, Path],
    *,
    texts: Sequence[Column] | None = None,
    label: Column | None = None,
) -> Model:
    """The model with the tasks that are named, whose dev rows are those of the files."""
    tasks = {}
    for name, file in files.items():
        model.resolve_mode(name)
        spec = model.tasks[name]
        data = _data(spec, find_file(file.absolute()), texts, label)
        tasks[name] = spec.model_copy(update={"data": data})
    return model.with_tasks(tasks)


def own_texts(spec: TaskSpec, path: Path) -> Sequence[Column] | None:
    """The text columns of a task's own data, if a file has columns of these names."""
    texts, names = resolve(spec.data).texts, column_names(path)
    return texts if texts and all(column in names for column in texts) else None


def _data(
    spec: TaskSpec, path: Path, texts: Sequence[Column] | None, label: Column | None
) -> DataSpec:
    own = resolve(spec.data)
    names = column_names(path)
    texts = own_texts(spec, path) if texts is None else texts
    if label is None and own.label in names:
        label = own.label
    chosen = guess_columns(path, texts=texts, label=label, argument="text")
    width = 1 if "single" in spec.predicting_modes else 2
    if len(chosen.texts) != width:
        named = ", ".join(f"`{column}`" for column in chosen.texts)
        raise ArgumentError(
            f"{path}: {width} text column{'s' * (width > 1)} needed, not {len(chosen.texts)} "
            f"({named}); select {'them' if width > 1 else 'it'} with `text`.",
            "text",
        )
    if chosen.label is None:
        listed = ", ".join(f"`{name}`" for name in names[:20])
        raise ArgumentError(
            f"{path}: cannot tell which of the columns {listed} is the label; select it with "
            "`label`.",
            "label",
        )
    # How the task's own files are delimited says nothing about this one.
    return own.model_copy(
        update={
            "layout": None,
            "train": [],
            "dev": [str(path)],
            "texts": list(chosen.texts),
            "label": chosen.label,
            "delimiter": chosen.reading.delimiter,
            "quoting": chosen.reading.quoting,
            "header": chosen.reading.header,
            "group": None,
            "limit": None,
        }
    )
