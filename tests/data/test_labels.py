"""Label cells become classes or grades, or say what was expected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.data.labels import LabelRule, UnmappedLabelError, WrongLabelError, split_labels

SENTIMENT = LabelRule(names=["negative", "neutral", "positive"])
STARS = LabelRule(names=["1", "2", "3", "4", "5"])
GRADES = LabelRule(span=(0.0, 5.0))


@given(st.integers(0, 2), st.sampled_from(["{}", "{}.0", "{}.", "+{}", "{}e0"]))
def test_a_class_by_its_number(number: int, spelling: str) -> None:
    assert SENTIMENT.parse(spelling.format(number)) == number


def test_a_class_by_its_name() -> None:
    assert SENTIMENT.parse("positive") == 2


@given(st.integers(1, 5), st.sampled_from(["{}", "{}.0"]))
def test_classes_that_are_called_by_numbers_are_not_counted_from_zero(
    number: int, spelling: str
) -> None:
    assert STARS.parse(spelling.format(number)) == number - 1


@pytest.mark.parametrize("cell", ["3", "-1", "0.5", "nan", "inf", "-inf", "great", "1_0", "1e400"])
def test_no_such_class(cell: str) -> None:
    with pytest.raises(WrongLabelError, match=r"from 0 to 2 or its name \(negative, neutral"):
        SENTIMENT.parse(cell)


@pytest.mark.parametrize("cell", ["0", "6", "1.5"])
def test_no_such_star(cell: str) -> None:
    with pytest.raises(WrongLabelError, match="one of the classes 1, 2, 3, 4, 5"):
        STARS.parse(cell)


@given(st.floats(0, 5))
def test_a_grade_in_its_range(value: float) -> None:
    assert GRADES.parse(repr(value)) == value


@given(st.floats().filter(lambda value: not 0 <= value <= 5))
def test_a_grade_outside_its_range(value: float) -> None:
    with pytest.raises(WrongLabelError, match="a number from 0 to 5"):
        GRADES.parse(repr(value))


def test_words_are_mapped_first_and_checked_after() -> None:
    rule = LabelRule(names=["other", "entailment"], words={"entailment": 1, "neutral": 0, "1": 7})
    assert rule.parse("entailment") == 1
    with pytest.raises(UnmappedLabelError, match="entailment, neutral, 1"):
        rule.parse("contradiction")
    with pytest.raises(WrongLabelError):
        rule.parse("1.0")


def test_a_cell_may_hold_several_labels() -> None:
    rule = LabelRule(names=["billing", "refund", "spam"], several=True, separator=",")
    cells = ["billing, refund", "spam,", '["refund", "spam"]', "[]", "2, 0", "spam, spam"]
    rows = [rule.parse(cell) for cell in cells]
    expected = [[1, 1, 0], [0, 0, 1], [0, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 1]]
    assert rule.collect(rows).tolist() == expected
    assert rule.collect([]).shape == (0, 3)
    with pytest.raises(WrongLabelError, match="billing, refund, spam"):
        rule.parse("billing, refnd")
    with pytest.raises(WrongLabelError):
        LabelRule(names=["billing", "refund"], several=True).parse("billing, refund")


def test_brackets_that_nest_too_deeply_are_a_label_like_any_other() -> None:
    cell = "[" * 100_000
    assert split_labels(cell, None) == [cell]
    assert split_labels('["a", "b"]', None) == ["a", "b"]


def test_types_of_collected_labels() -> None:
    assert SENTIMENT.collect([0.0, 2.0]).dtype == np.int64
    assert GRADES.collect([0.0, 2.5]).dtype == np.float32


def test_a_decimal_comma_is_read_and_one_between_thousands_is_not_guessed() -> None:
    rule = LabelRule(span=(1.0, 5.0))
    assert [rule.parse(cell) for cell in ("4,5", "4,50", "4.5")] == [4.5, 4.5, 4.5]
    with pytest.raises(WrongLabelError, match="a number from 1 to 5"):
        rule.parse("1,234")
