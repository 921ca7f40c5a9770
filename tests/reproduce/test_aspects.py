"""What else differs between two recipes that a finding compares."""

from __future__ import annotations

import pytest

from tercet.recipe import Recipe, bundled, find_bundled
from tercet.reproduce.aspects import differing_aspects


@pytest.mark.parametrize(
    ("first", "second", "aspects"),
    [
        ("robust/exp11", "robust/exp14", ["dropout"]),
        ("sbert/exp2", "sbert/exp1", ["surgery"]),
        # Named after the common layer, which is not all that changed.
        ("robust/exp03", "robust/exp05", ["head", "shared layers", "order of tasks"]),
        ("robust/exp05", "robust/exp06", ["dropout", "order of tasks", "epochs"]),
        ("robust/exp14", "robust/exp15", ["tasks", "stages", "epochs"]),
        ("simcse/bi-encoder", "simcse/cross-encoder", ["mode", "head"]),
        ("simcse/unsupervised", "simcse/unsupervised-mlm", ["mode"]),
        ("sbert/sst-pretrain", "sbert/sst-finetune", ["freezing", "optimiser"]),
        ("bertology/head-mod", "bertology/nli-triplet", ["tasks", "stages"]),
        ("sbert/exp1", "sbert/mnr", ["tasks"]),
    ],
)
def test_every_part_in_which_recipes_differ_is_named(
    first: str, second: str, aspects: list[str]
) -> None:
    recipes = [find_bundled(name).parse() for name in (first, second)]
    assert differing_aspects(*recipes) == aspects
    assert set(differing_aspects(*reversed(recipes))) == set(aspects)


def test_a_recipe_differs_from_itself_in_nothing_and_from_a_change_in_that() -> None:
    for each in bundled():
        assert differing_aspects(each.parse(), each.parse()) == []
    name = "bertology/head-mod"
    for change, word in {
        "seed=1": None,
        "encoder.pooling=mean": "pooling",
        "stages.0.name=other": None,
        "stages.0.epochs=3": "epochs",
        "stages.0.optimiser.clip=1.0": "optimiser",
        "stages.0.average=0.9": "average",
        "evaluation.keep=last": "selection",
        "tasks.sentiment.single.head.hidden=[9]": "head",
        "tasks.sentiment.class_weights=balanced": "class_weights",
        "tasks.similarity.bi.objective.targets=[-1,1]": "objective",
    }.items():
        found = differing_aspects(Recipe.load(name), Recipe.load(name, [change]))
        assert found == ([] if word is None else [word]), change
