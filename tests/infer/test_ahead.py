from __future__ import annotations

from threading import Event

import pytest

from tercet.infer.ahead import THREADS, ahead


def test_results_come_in_order() -> None:
    assert list(ahead(lambda number: number * number, range(20))) == [n * n for n in range(20)]


def test_the_next_item_is_made_while_one_is_used() -> None:
    begun = [Event() for _ in range(4)]
    results = ahead(lambda place: begun[place].set() or place, range(4))
    assert next(results) == 0
    assert begun[1].wait(10)  # although nobody has asked for it yet


def test_items_are_taken_only_as_they_are_needed() -> None:
    taken = []
    results = ahead(str, (taken.append(number) or number for number in range(100)))
    next(results)
    assert len(taken) == THREADS + 1
    results.close()
    assert len(taken) == THREADS + 1


def test_an_error_is_raised_where_its_result_is_used() -> None:
    results = ahead(lambda number: 1 // number, [1, 0, 1])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
