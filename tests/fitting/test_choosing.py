from __future__ import annotations

import numpy as np

from tercet.fitting.choosing import Comparison, Judged, prefers_tuned, typical
from tercet.specs import TaskSpec

TASK = TaskSpec.model_validate(
    {
        "data": {"layout": "cs224n-sst"},
        "labels": ["bad", "good"],
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
    }
)


def judged(wrong: list[int], rows: int) -> Judged:
    """What a candidate gives that is wrong about some rows of an alternating task."""
    labels = np.arange(rows) % 2
    predicted = labels.copy()
    predicted[wrong] = 1 - predicted[wrong]
    outputs = np.where(predicted[:, None] == np.arange(2), 2.0, -2.0).astype(np.float32)
    return Judged({"task": TASK}, {"task": outputs}, {"task": labels})


def compared(*, tuned: int, linear: int, rows: int) -> Comparison:
    """The candidates are wrong about so many rows, all different ones."""
    first = list(range(tuned))
    return Comparison(judged(first, rows), judged(list(range(tuned, tuned + linear)), rows))


def test_gain_is_the_difference_of_scores() -> None:
    assert np.isclose(compared(tuned=10, linear=30, rows=100).gain, 0.2)


def test_few_rows_do_not_deny_what_tuning_usually_gains() -> None:
    assert prefers_tuned([compared(tuned=24, linear=22, rows=60)])
    assert not prefers_tuned([compared(tuned=800, linear=700, rows=2000)])
    assert prefers_tuned([compared(tuned=700, linear=800, rows=2000)])


def test_further_folds_count_as_much_as_the_first() -> None:
    bad = compared(tuned=50, linear=30, rows=128)
    good = compared(tuned=30, linear=40, rows=128)
    assert not prefers_tuned([bad])
    assert prefers_tuned([bad, good, good])
    assert not prefers_tuned([bad, bad, good])


def test_the_comparison_in_the_middle_is_typical() -> None:
    found = [compared(tuned=tuned, linear=20, rows=100) for tuned in (30, 5, 18)]
    assert typical(found) is found[2]
    assert typical(found[:1]) is found[0]


def test_equal_candidates_are_tuned() -> None:
    same = judged([1, 2], 40)
    assert prefers_tuned([Comparison(same, same)])
