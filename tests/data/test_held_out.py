from __future__ import annotations

from tercet.data.held_out import rows_apart, rows_not_in


def test_phrases_of_held_out_sentences_are_left_out() -> None:
    phrases = ["a quiet", "quiet triumph", "A Quiet  Triumph", "quiet", "triumph a", "long ago"]
    assert rows_apart([phrases], [["A quiet triumph", "so long"]]).tolist() == [4, 5]


def test_brackets_are_the_same_however_they_are_written() -> None:
    phrases = ["( a quiet )", "-LRB- a quiet -RRB-", "a quiet", "( loud )"]
    held_out = ["-LRB- A quiet -RRB- triumph"]
    assert rows_apart([phrases], [held_out]).tolist() == [3]
    assert rows_not_in([phrases], [["( A Quiet )"]]).tolist() == [2, 3]


def test_only_the_same_pair_is_left_out() -> None:
    first, second = ["a b", "a b", "c"], ["c", "d", "a b"]
    assert rows_apart([first, second], [["A b"], ["C"]]).tolist() == [1, 2]


def test_nothing_held_out_leaves_all() -> None:
    assert rows_apart([["a", "b"]], [[]]).tolist() == [0, 1]


def test_known_rows_are_found_in_either_order() -> None:
    first, second = ["a b", "c", "a b", "d"], ["c", "A  b", "d", "a b"]
    assert rows_not_in([first, second], [["a B"], ["c"]]).tolist() == [2, 3]
    assert rows_not_in([["a b", "b a"]], [["A b"]]).tolist() == [1]
