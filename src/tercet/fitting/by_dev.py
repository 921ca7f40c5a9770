"""Candidates judged on dev rows: files of their own, or a share of the rows."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace

import numpy as np

from tercet.evaluation.scoring import best_mode
from tercet.evaluation.simple_scores import read_baselines
from tercet.fitting.budget import NO_TIME, READ, UNTUNED, USED
from tercet.fitting.deadline import Deadline
from tercet.fitting.following import Joined, joined
from tercet.fitting.planning import Settings, linear_recipe, tune_steps, tuned_recipe
from tercet.fitting.work import Fitted, Work
from tercet.model import load
from tercet.training.run import RunResult

LEAST_OF_TASK = 1000
"""Rows of a task that are used, if it has as many, however many others have."""
ENOUGH = 0.95
"""The share of the epochs from which on nobody needs to know that some were left out."""


def fit_by_dev(work: Work, settings: Settings, *, encoding: float | None = None) -> Fitted:
    """Train the tuned candidate, and the linear one if that is better on dev.

    encoding: seconds to encode all rows once; default: measured on a sample
    """
    if encoding is None:
        encoding = _encoding_seconds(work, settings)
    possible = work.budget.rows(settings, encoding)
    if possible < settings.rows:
        drawn = _with_fewer_rows(work, settings, possible, encoding=encoding)
        encoding *= drawn.rows / settings.rows
        settings = drawn
    epochs = work.budget.epochs(settings, encoding, trainings=1)
    chosen = replace(settings, epochs=round(epochs, 2))
    needed = work.budget.full_seconds(settings, encoding, trainings=1)
    if epochs == 0.0:
        work.listener.say(NO_TIME)
        work.budget.leave_out(UNTUNED, needed=needed)
    elif chosen.epochs < ENOUGH * settings.epochs:
        # The linear model may be kept after all, perhaps because this was short.
        shorter = f"tuning had {chosen.epochs:g} epochs instead of {settings.epochs:g}"
        work.budget.leave_out(shorter, needed=needed)
    what, steps = ("heads", 1) if epochs == 0.0 else ("tuning", tune_steps(chosen))
    with joined(work.listener, what, steps=steps) as following:
        if epochs == 0.0:
            work.train(linear_recipe(chosen), None, following)
        else:
            deadline = Deadline(work.budget, chosen)
            tuned = work.train(tuned_recipe(chosen), None, following, deadline=deadline)
            _replace_if_worse(work, chosen, tuned, following)
    return Fitted(read_baselines(work.folder))


def _with_fewer_rows(work: Work, settings: Settings, rows: int, *, encoding: float) -> Settings:
    """Settings that use only so many of the rows, the same share of each task, once each."""
    share = rows / settings.rows
    sources = []
    for source in settings.sources:
        draw = max(LEAST_OF_TASK, math.ceil(share * source.rows))
        sources.append(replace(source, draw=draw) if draw < source.rows else source)
    if sources == list(settings.sources):
        return settings
    drawn = replace(settings, sources=sources, epochs=min(settings.epochs, 1.0))
    used = f"{drawn.rows:,} of the {settings.rows:,} rows"
    work.listener.say(f"There is time for {used}; they are drawn at random.")
    needed = work.budget.full_seconds(settings, encoding, trainings=1)
    work.budget.leave_out(f"only {used} were used", needed=needed + READ * encoding / USED)
    return drawn


def _replace_if_worse(work: Work, settings: Settings, tuned: RunResult, following: Joined) -> None:
    """Train the linear candidate instead, if the tuned one is below the linear baseline."""
    baselines = read_baselines(work.folder)
    recipe = linear_recipe(settings)
    gains = []
    for name, baseline in baselines.items():
        metrics = tuned.dev[name][best_mode(recipe.tasks[name])]
        gains.append((metrics[baseline.metric] or 0.0) - (baseline.linear or 0.0))
    if np.mean(gains) >= 0.0:
        return
    work.listener.say(
        "The tuned encoder is not better than a linear model on the encoder as it is: the "
        "linear model is kept."
    )
    shutil.rmtree(work.folder)
    work.train(recipe, baselines, following)


def _encoding_seconds(work: Work, settings: Settings) -> float:
    """How long it takes to encode all rows once, from a sample of them."""
    model = load(settings.body, device=work.device)
    if settings.encoder is not None:
        reading = {key: settings.encoder[key] for key in ("max_tokens", "long")}
        model.info = model.info.model_copy(update=reading)
    sample, total = [], 0
    for source in settings.sources:
        examples = work.examples(linear_recipe(settings), source)
        total += len(examples) * len(examples.texts)
        sample += [text for column in examples.texts for text in column[:256]]
    model.embed(sample[:16])
    began = work.budget.spent
    model.embed(sample)
    return (work.budget.spent - began) * total / len(sample)
