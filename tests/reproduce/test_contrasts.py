"""Verdicts on what the reports conclude, against intervals by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tercet.recipe import bundled
from tercet.reproduce.contrasts import (
    CONTRASTS,
    Contrast,
    Difference,
    contrasts_table,
    difference,
    published_difference,
    spread_of_seeds,
    verdict,
)
from tercet.reproduce.table import ExperimentRow, Measured


def row(name: str, values: list[float], published: float | None = None) -> ExperimentRow:
    return ExperimentRow(
        name=name,
        report=None,
        summary="",
        published={} if published is None else {"similarity": published},
        published_train={},
        published_test={},
        measured={"similarity": Measured("pearson", values, float(np.mean(values)), None)},
        measured_train={},
        kept="best",
        commits=[],
        remarks=[],
        failures=[],
    )


ROWS = [row("a", [0.80, 0.82, 0.81], 0.7), row("b", [0.90, 0.91, 0.89], 0.6), row("c", [0.815])]


def contrast(first: str, second: str) -> Contrast:
    return Contrast("", first, second, "similarity")


def test_the_margin_is_that_of_the_pooled_spread() -> None:
    spread, freedom = spread_of_seeds(ROWS, "similarity")
    pooled = math.sqrt((np.var([0.80, 0.82, 0.81], ddof=1) + np.var([0.9, 0.91, 0.89], ddof=1)) / 2)
    assert (spread, freedom) == (pytest.approx(pooled), 4)
    found = difference(contrast("a", "b"), ROWS)
    assert found is not None
    # With equal numbers of seeds in both groups this is Student's own interval.
    expected = stats.ttest_ind([0.90, 0.91, 0.89], [0.80, 0.82, 0.81]).confidence_interval()
    assert (found.value - found.margin, found.value + found.margin) == pytest.approx(
        tuple(expected)
    )


def test_the_spread_is_that_of_the_report_on_another_encoder_if_need_be() -> None:
    here = [row("x/a", [0.5]), row("x/b", [0.6]), row("y/c", [0.1, 0.1, 0.1, 0.1, 0.1])]
    there = [row("x/a", [0.50, 0.52, 0.51]), row("x/b", [0.60, 0.61, 0.59])]
    pair = contrast("x/a", "x/b")
    found, alone = difference(pair, here, [there]), difference(pair, here)
    assert found is not None
    assert alone is not None
    assert alone.margin == pytest.approx(0.0)
    spread, freedom = spread_of_seeds(there, "similarity")
    assert found.margin == pytest.approx(stats.t.ppf(0.975, freedom) * spread * math.sqrt(2))
    assert found.margin == found.single


def test_a_recipe_that_forgets_has_a_spread_of_its_own() -> None:
    forgetful, steady = [0.1, 0.5, 0.3], [0.80, 0.82, 0.81]
    rows = [row("robust/exp02", forgetful), row("robust/a", steady), row("robust/b", steady)]
    found = difference(contrast("robust/exp02", "robust/a"), rows)
    between = difference(contrast("robust/a", "robust/b"), rows)
    assert found is not None
    assert between is not None
    own = stats.t.ppf(0.975, 2) * np.std(forgetful, ddof=1)
    others = stats.t.ppf(0.975, 4) * np.std(steady, ddof=1)
    assert found.margin == pytest.approx(math.hypot(own, others) / math.sqrt(3))
    assert between.margin == pytest.approx(others * math.sqrt(2 / 3))
    once = difference(contrast("robust/exp02", "robust/a"), [row("robust/exp02", [0.1]), *rows[1:]])
    assert once is not None
    assert not once.is_clear


def test_verdicts() -> None:
    clear, unclear = Difference(0.09, 0.02, 0.03, (3, 3)), Difference(0.01, 0.02, 0.03, (3, 1))
    published = {row.name: row.published for row in ROWS}
    assert published_difference(contrast("a", "b"), published) == pytest.approx(-0.1)
    assert published_difference(contrast("a", "c"), published) is None
    assert verdict(-0.1, clear) == "disagrees"
    assert verdict(0.1, clear) == "agrees"
    assert verdict(None, clear) == "better"
    # A published difference that one seed cannot show is no claim to agree with.
    assert verdict(-0.02, clear) == "better"
    assert verdict(0.1, unclear) == "not distinguished"
    assert difference(contrast("a", "missing"), ROWS) is None
    assert difference(Contrast("", "a", "b"), ROWS) is None


def test_contrasts_name_recipes_and_tasks_that_exist() -> None:
    recipes = {recipe.name: recipe.parse() for recipe in bundled()}
    for each in CONTRASTS:
        for name in (each.first, each.second):
            assert each.what == "mean" or each.what in recipes[name].tasks
    assert len(contrasts_table({"tiny": ROWS})) == len(CONTRASTS) + 2
