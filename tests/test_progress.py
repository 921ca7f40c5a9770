"""Progress as plain text, for notebooks and Python sessions."""

from __future__ import annotations

import sys

import pytest

from tercet import progress
from tercet.training.listener import Shown, Silent, listener_of


def test_a_phase_overwrites_its_line_and_leaves_its_last_state(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.0)
    with progress.PlainText().phase("embedding", total=3) as report:
        report(1)
        report(2, note="7 rows/s")
        report(3)
    result = capsys.readouterr()
    assert result.out == ""
    assert "\rembedding: 2 of 3, 0:00:00 left, 7 rows/s" in result.err
    assert result.err.endswith("\rembedding: 3 of 3\n")


def test_few_updates_per_second_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.PlainText().phase("embedding") as report:
        for done in range(10_000):
            report(done)
    assert capsys.readouterr().err.count("embedding: ") < 20


def test_a_sentence_replaces_the_line_of_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.0)
    text = progress.PlainText()
    with text.phase("embedding") as report:
        report(100)
        text.say("ok")
    lines = capsys.readouterr().err.split("\r")
    assert lines[-1] == "ok\nembedding: 100\n"
    assert lines[-2].strip() == ""


def test_time_left_is_what_the_rate_since_the_first_item_gives() -> None:
    pace = progress.Pace()
    assert pace.time_left(done=0, total=100, now=1000.0) == ""
    assert pace.time_left(done=1, total=100, now=1100.0) == ""  # 100 s to prepare
    assert pace.time_left(done=26, total=101, now=1120.0) == "0:01:00 left"
    assert pace.time_left(done=51, total=None, now=1140.0) == ""
    assert pace.time_left(done=101, total=101, now=1200.0) == ""


def test_time_left_of_other_work_is_at_its_own_rate() -> None:
    pace = progress.Pace()
    pace.time_left(done=1, total=100, now=0.0)
    pace.time_left(done=90, total=100, now=1.0)
    assert pace.time_left(done=1, total=10, now=100.0) == ""
    assert pace.time_left(done=2, total=10, now=106.0) == "0:00:48 left"


def test_progress_is_shown_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert isinstance(listener_of(None, progress=None), Silent)
    assert isinstance(listener_of(None, progress=True), Shown)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert isinstance(listener_of(None, progress=None), Shown)
    assert isinstance(listener_of(None, progress=False), Silent)
    own = Silent()
    assert listener_of(own, progress=True) is own


def test_a_sentence_without_progress_is_nothing_but_the_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A notebook keeps what is written, carriage returns too."""
    progress.PlainText().say("Two rows are left out.")
    assert capsys.readouterr().err == "Two rows are left out.\n"
