from __future__ import annotations

import pytest

from tercet.errors import TercetError
from tercet.evaluation.scoring import overall_of, score_of
from tercet.specs import TaskSpec

HEAD = {"kind": "mlp"}
TASKS = {
    "sentiment": TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-sst"},
            "labels": ["0", "1", "2", "3", "4"],
            "single": {"head": HEAD, "objective": {"kind": "cross-entropy"}},
        }
    ),
    "similarity": TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-sts"},
            "range": [0, 5],
            "cross": {"head": HEAD, "objective": {"kind": "mean-squared-error"}},
        }
    ),
}


def test_an_undefined_metric_counts_as_nothing() -> None:
    metrics = {
        "sentiment": {"single": {"accuracy": 0.5, "macro-f1": 0.4}},
        "similarity": {"cross": {"pearson": None, "spearman": None}, "bi": {"pearson": 0.9}},
    }
    assert overall_of(metrics, TASKS) == {"mean": 0.25, "mean-shifted": 0.5}
    assert score_of(metrics, TASKS, "similarity.pearson") == 0


def test_a_metric_that_does_not_fit_the_classes_is_refused() -> None:
    spec = TASKS["sentiment"].model_copy(update={"metric": "f1"})
    metrics = {"sentiment": {"single": {"accuracy": 0.5, "macro-f1": 0.4}}}
    with pytest.raises(TercetError, match="does not fit 5 classes: use one of accuracy, macro-f1"):
        overall_of(metrics, {"sentiment": spec})
