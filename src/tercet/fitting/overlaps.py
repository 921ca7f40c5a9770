"""Rows to measure on that training, or the encoder before it, has seen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tercet.data.sketch import hash_rows
from tercet.evaluation.suites.tasks import TaskResult
from tercet.fitting.planning import Settings, linear_recipe
from tercet.fitting.work import Work

LEAST_REPEATED, LEAST_KNOWN = 0.01, 0.05
"""The shares of rows that train too, and that the encoder knows, from which on it is said: fewer
hardly change a score, and a sketch takes 0.1 % of other rows for known."""


def repeated_rows(work: Work, settings: Settings) -> Iterator[str]:
    """Dev files with training rows in them, one sentence each; dev files that cannot be used are
    found before anything is trained."""
    recipe = linear_recipe(settings)
    for source in settings.sources:
        if source.dev is None:
            continue
        dev, train = (
            hash_rows(work.examples(recipe, source, split).texts) for split in ("dev", "train")
        )
        count = int(np.isin(dev, train).sum())
        if count >= LEAST_REPEATED * len(dev):
            yield (
                f"{source.name}: {count:,} of the {len(dev):,} rows to measure on are training "
                "rows too, but for case and punctuation, so that scores for new texts may be "
                "lower: delete them from one of the two."
            )


def rows_seen_before(name: str, result: TaskResult) -> Iterator[str]:
    """A sentence if the model that the fit starts from was trained on rows to measure on."""
    found, answers = result.contamination, result.best
    if found is None or answers.unseen is None:
        return
    total = len(found.fresh)
    if total - found.rows < LEAST_KNOWN * total:
        return
    value = answers.unseen[answers.metric].value
    fresh = "" if value is None else f": without these rows, {answers.metric} is {value:.3f}"
    yield (
        f"{name}: the encoder that this fit starts from knows rows that it is measured on: "
        f"{found.describe()} Scores for new texts may be lower{fresh}."
    )
