"""Processes that run at once share the cores, unless the user says otherwise."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.cores import (
    NICENESS,
    POLICY,
    SPINS,
    THREADS,
    give_way,
    share,
    shared_environment,
    spin_briefly,
    threads,
)


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.delenv(THREADS, raising=False)


@given(processes=st.integers(1, 100))
def test_shares_are_even_and_as_large_as_the_cores_allow(processes: int) -> None:
    assert share(processes) >= 1
    assert share(processes) * processes <= max(8, processes)
    assert (share(processes) + 1) * processes > 8


def test_one_of_several_is_told_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "as it is")
    environment = shared_environment(3)
    assert environment[THREADS] == "2"
    assert environment["KEPT"] == "as it is"


def test_a_process_alone_is_left_to_choose() -> None:
    assert THREADS not in shared_environment(1)


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "5")
    assert shared_environment(4)[THREADS] == "5"
    assert threads() == 5


@pytest.mark.parametrize("said", ["", "0", "many"])
def test_without_a_number_all_cores_are_taken(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, said)
    assert threads() == 8


def test_threads_spin_briefly_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SPINS, "")  # so that it is restored
    for said, expected in (
        ({}, "1000"),
        ({SPINS: "7"}, "7"),
        ({POLICY: "ACTIVE"}, None),
    ):
        for name in (SPINS, POLICY):
            monkeypatch.delenv(name, raising=False)
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        spin_briefly()
        assert os.environ.get(SPINS) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities")
@pytest.mark.parametrize(("before", "after"), [(0, NICENESS), (NICENESS + 5, NICENESS + 5)])
def test_a_thread_that_gives_way_never_becomes_less_nice(before: int, after: int) -> None:
    """Only root may do that: under `nice`, the server of another user had no encoder."""

    def niceness() -> int:
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, before)
        give_way()
        return os.getpriority(os.PRIO_PROCESS, thread)

    if os.getpriority(os.PRIO_PROCESS, 0) > before:
        pytest.skip("the tests themselves run nicer")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(niceness).result() == after
