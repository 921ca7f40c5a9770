from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tercet.evaluation.warnings import warnings_of

CLASSES = ["billing", "bug", "account"]


def warned(answers, **baselines) -> list[str]:
    return warnings_of(answers, **{"majority": None, "linear": None, **baselines})


@pytest.fixture
def classified(answers):
    def make(labels, predicted, confidence: float = 0.98):
        others = (1.0 - confidence) / 2.0
        likely = np.full((len(labels), 3), others)
        likely[np.arange(len(labels)), predicted] = confidence
        return answers("team", "single", labels, likely, classes=CLASSES)

    return make


def test_a_good_model_has_none(classified, answers) -> None:
    labels = np.arange(120) % 3
    assert warned(classified(labels, labels), majority=0.34, linear=0.9) == []
    grades = np.linspace(1, 10, 50)
    assert warned(answers("grade", "bi", grades, grades, range=(1.0, 10.0)), majority=0.0) == []
    assert warned(answers("grade", "bi", [], [])) == []


def test_constant_classes(classified) -> None:
    labels = np.arange(120) % 3
    (sentence,) = warned(classified(labels, np.ones(120, int)))
    # What `fit` has no argument for is a matter of the recipe.
    assert sentence == (
        "team: all 120 rows are predicted to be bug; add rows of the other classes, train longer, "
        'or edit the recipe: `tasks.team.class_weights = "balanced"` if one class is much more '
        "frequent, or a lower learning rate."
    )


def test_one_class_in_dev_is_not_the_models_fault(classified) -> None:
    assert warned(classified(np.ones(120, int), np.ones(120, int))) == []


def test_constant_grades_although_the_correlation_is_high(answers) -> None:
    labels = np.linspace(1, 10, 40)
    clipped = answers(
        "urgency", "bi", labels, np.full(40, 1.0), unclipped=labels / 10, range=(1.0, 10.0),
        metrics={},
    )  # fmt: skip
    (sentence,) = warned(clipped)
    assert "all 40 predicted grades are about 1.00" in sentence
    assert "labels range from 1 to 10" in sentence


def test_classes_that_are_never_predicted(classified) -> None:
    labels = np.array([0] * 100 + [1] * 4 + [2])
    predicted = np.where(np.arange(105) < 102, 0, 0)
    predicted[3] = 2
    (sentence,) = warned(classified(labels, predicted))
    assert sentence == (
        "team: never predicts bug (4 rows); add rows of this class, or set "
        '`tasks.team.class_weights = "balanced"` in the recipe.'
    )


def test_grades_that_are_cut_at_one_end(answers) -> None:
    labels = np.linspace(1, 10, 100)
    cut = np.minimum(labels + 4.0, 10.0)
    (sentence,) = warned(answers("urgency", "bi", labels, cut, range=(1.0, 10.0)))
    assert sentence.startswith("urgency: 45% of the predicted grades are cut at 10, the highest")
    assert "only 1% of the labels" in sentence
    # As many labels as predictions at that end: nothing is cut.
    assert warned(answers("urgency", "bi", cut, cut, range=(1.0, 10.0))) == []


def test_a_score_below_a_baseline(classified) -> None:
    labels = np.arange(120) % 3
    predicted = labels.copy()
    predicted[:60] = (labels[:60] + 1) % 3
    half = classified(labels, predicted, confidence=0.5)
    assert half.metrics["accuracy"].value == 0.5
    (sentence,) = warned(half, majority=0.6, linear=0.78)
    assert sentence.startswith("team: accuracy 0.500 (95 % interval 0.")
    assert "below always predicting the majority class (0.600) and a linear model" in sentence
    (sentence,) = warned(half, majority=0.4, linear=0.78)
    assert "majority" not in sentence
    assert "(0.780)" in sentence
    assert warned(half, majority=0.4, linear=0.5) == []


def test_a_score_that_may_be_that_of_the_majority_class(classified) -> None:
    labels = np.arange(60) % 3
    predicted = labels.copy()
    predicted[:30] = (labels[:30] + 1) % 3
    half = classified(labels, predicted, confidence=0.5)
    low, high = half.metrics["accuracy"].interval
    (sentence,) = warned(half, majority=0.45, linear=0.3)
    assert sentence == (
        f"team: accuracy 0.500 (95 % interval {low:.3f} to {high:.3f}) is not clearly above always "
        "predicting the majority class (0.450); check that the labels depend on the texts, or add "
        "rows."
    )
    assert warned(half, majority=low - 0.001) == []
    # A model that always says the same has a sentence of its own.
    (sentence,) = warned(classified(labels, np.ones(60, int)), majority=1 / 3)
    assert "are predicted to be bug" in sentence


def test_probabilities_that_are_far_off(classified) -> None:
    labels = np.arange(200) % 3
    predicted = np.where(np.arange(200) % 4 == 0, (labels + 1) % 3, labels)
    sure = classified(labels, predicted, confidence=0.99)
    (sentence,) = warned(sure)
    assert "off by 0.24" in sentence
    assert "mean confidence is 99%, accuracy 75%; add rows, or calibrate the model" in sentence
    few = classified(labels[:60], predicted[:60], confidence=0.99)
    assert warned(few) == []


def test_several_labels(answers) -> None:
    given = answers("tags", "single", [], [], classes=CLASSES, metrics={})
    labels = np.array([[1, 0, 1], [0, 1, 0]] * 10)
    several = dataclasses.replace(
        given, labels=labels, predictions=np.where(labels, 0.9, 0.1) * [1, 1, 0.1]
    )
    (sentence,) = warned(several)
    assert "never predicts account (10 rows)" in sentence
