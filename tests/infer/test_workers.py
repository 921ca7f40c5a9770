from __future__ import annotations

import os
import threading
from time import sleep

import pytest

from tercet.infer.workers import in_parallel


def test_every_batch_is_worked_on_once() -> None:
    assert sorted(in_parallel(lambda n: n * n, range(20), threads=3)) == [n * n for n in range(20)]


def test_threads_begin_once_and_work_at_the_same_time() -> None:
    begun: list[int] = []
    both = threading.Barrier(2, timeout=10)

    def initialise() -> None:
        begun.append(threading.get_ident())

    for _ in range(2):
        list(in_parallel(lambda _: both.wait(), range(4), threads=2, initialise=initialise))
    assert len(begun) == len(set(begun)) == 2


def test_a_failure_comes_through_and_stops_the_rest() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            raise ValueError("no")
        sleep(0.01)
        done.append(number)

    with pytest.raises(ValueError, match="no"):
        list(in_parallel(work, range(1000), threads=2))
    assert len(done) < 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_its_own_threads() -> None:
    list(in_parallel(str, range(4), threads=2))
    child = os.fork()
    if not child:
        found = sorted(in_parallel(str, range(4), threads=2))
        os._exit(0 if found == ["0", "1", "2", "3"] else 1)
    assert os.waitpid(child, 0)[1] == 0
