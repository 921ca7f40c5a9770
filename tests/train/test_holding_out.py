from __future__ import annotations

from tercet.train.holding_out import rows_apart


def test_phrases_of_held_out_sentences_are_left_out() -> None:
    phrases = ["a quiet", "quiet triumph", "A Quiet  Triumph", "quiet", "triumph a", "long ago"]
    assert rows_apart([phrases], [["A quiet triumph", "so long"]]).tolist() == [4, 5]


def test_only_the_same_pair_is_left_out() -> None:
    first, second = ["a b", "a b", "c"], ["c", "d", "a b"]
    assert rows_apart([first, second], [["A b"], ["C"]]).tolist() == [1, 2]


def test_nothing_held_out_leaves_all() -> None:
    assert rows_apart([["a", "b"]], [[]]).tolist() == [0, 1]
