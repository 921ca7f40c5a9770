from __future__ import annotations

import copy

import numpy as np
import pytest

from tercet.errors import TercetError
from tercet.evaluate.compare import compare, difference, names_of
from tercet.evaluate.comparison_tables import disagreements_table, side_by_side_table

METRICS = ["accuracy", "macro-f1", "f1", "pearson", "spearman"]


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_does_not_differ_from_itself(metric: str) -> None:
    draw = np.random.default_rng(3)
    labels, said = draw.integers(0, 2, 80).astype(float), draw.uniform(size=80)
    found = difference(metric, labels, said, said)
    assert (found.value, found.interval, found.p) == (0.0, (0.0, 0.0), 1.0)


@pytest.mark.parametrize("metric", METRICS)
def test_a_clearly_better_model_is_found(metric: str) -> None:
    draw = np.random.default_rng(4)
    labels = draw.integers(0, 2, 200).astype(float)
    guess = draw.uniform(size=200)
    good = np.clip(labels * 0.8 + 0.2 * draw.uniform(size=200), 0.0, 1.0)
    better, worse = (difference(metric, labels, *pair) for pair in ((guess, good), (good, guess)))
    assert better.value > 0.2
    assert better.interval[0] > 0.1
    assert better.p < 0.01
    assert worse.value == pytest.approx(-better.value)
    assert worse.p == better.p


def test_chance_is_called_chance() -> None:
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 2, 150).astype(float)
    small = [
        difference("accuracy", labels, *draw.uniform(size=(2, 150))).p < 0.05 for _ in range(100)
    ]
    assert np.mean(small) < 0.15


@pytest.mark.parametrize("metric", ["accuracy", "pearson"])
def test_pairing_agrees_with_resampling_row_by_row(metric: str) -> None:
    draw = np.random.default_rng(6)
    labels = draw.integers(0, 2, 200).astype(float)
    first = draw.uniform(size=200)
    second = np.clip(first + draw.normal(scale=0.1, size=200), 0.0, 1.0)
    found = difference(metric, labels, first, second)
    by_hand = []
    for _ in range(2000):
        rows = draw.integers(200, size=200)
        pair = [
            np.mean((said[rows] > 0.5) == labels[rows])
            if metric == "accuracy"
            else np.corrcoef(labels[rows], said[rows])[0, 1]
            for said in (first, second)
        ]
        by_hand.append(pair[1] - pair[0])
    # Were the rows not the same for both, the interval would be several times as wide.
    expected = np.percentile(by_hand, [2.5, 97.5])
    assert found.interval == pytest.approx(expected, abs=0.2 * np.ptp(expected))


def test_undefined_is_said() -> None:
    found = difference("pearson", np.array([1.0, 2.0]), np.array([3.0, 3.0]), np.array([1.0, 2.0]))
    assert (found.value, found.interval, found.p) == (None, None, None)


def test_models_side_by_side(document, texts) -> None:
    good, bad = document("good", skill=1.5), document("bad", skill=0.0, seed=9)
    found = compare([bad, good, bad], [texts] * 3)
    assert found.names == ["bad (1)", "good", "bad (3)"]
    for contest in found.contests:
        better, same = contest.differences
        assert better.p < 0.05
        assert better.value == pytest.approx(contest.values[1] - contest.values[0])
        assert (same.value, same.p) == (0.0, 1.0)
    assert {one.task for one in found.disagreements} == {"sentiment", "paraphrase", "similarity"}
    for one in found.disagreements:
        assert len(set(one.said)) > 1
        assert one.said[0] == one.said[2]
        assert one.inputs[0] in texts[one.task][0]
        if one.task != "similarity":
            assert one.right == [said == one.expected for said in one.said]
    sentiment = [one.apart for one in found.disagreements if one.task == "sentiment"]
    assert sentiment == sorted(sentiment, reverse=True)


def test_a_task_that_one_model_lacks_is_left_open(document, texts) -> None:
    whole, part = document("whole"), document("part")
    del part["suites"]["tasks"]["tasks"]["similarity"]
    found = compare([part, whole], [texts] * 2)
    (pearson,) = [one for one in found.contests if one.metric == "pearson"]
    assert pearson.values[0] is None
    assert pearson.differences == [None]
    assert {one.task for one in found.disagreements} <= {"sentiment", "paraphrase"}


def test_different_rows_are_refused(document, texts) -> None:
    other = copy.deepcopy(document("b"))
    other["suites"]["tasks"]["tasks"]["sentiment"]["modes"]["single"]["labels"][0] = 2
    other["suites"]["tasks"]["tasks"]["sentiment"]["modes"]["single"]["labels"][1] = 0
    with pytest.raises(TercetError, match=r"task `sentiment`: .* different rows"):
        compare([document("a"), other], [texts] * 2)
    with pytest.raises(TercetError, match="two models"):
        compare([other], [texts])


def test_names_are_told_apart(document) -> None:
    assert names_of([document("a"), document("b")]) == ["a", "b"]


def test_sentences_show_the_models_that_say_something_and_all_tasks_first(document, texts) -> None:
    mute = document("mute")
    mute["suites"] = {}
    models = [document("bad", skill=0.0, seed=9), mute, document("good", skill=1.5)]
    table = disagreements_table(compare(models, [texts] * 3))
    assert table.columns == ["Sentence", "Task", "Expected", "bad", "good", "Apart"]
    tasks = [row[1].text for row in table.rows]
    assert set(tasks[:3]) == {"sentiment", "paraphrase", "similarity"}


def test_suites_stand_side_by_side_with_what_is_left_without_leaks(document, suites) -> None:
    first, second = document(), document()
    first["suites"] |= suites
    suites["sts"]["average_without_leaked_pairs"] = 0.8123
    table = side_by_side_table([first, second], ["one", "two"])
    shown = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    assert shown["average without leaked pairs"] == ["0.812", ""]
    # Of STS-B a pair was left out, of STS12 none.
    assert "STS-B without leaked pairs, spearman" in shown
    assert "STS12 without leaked pairs, spearman" not in shown
