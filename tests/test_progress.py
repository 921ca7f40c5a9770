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
        report(1, note="7 rows/s")
        report(3)
    result = capsys.readouterr()
    assert result.out == ""
    assert "\rembedding: 1 of 3, 0:00:00 left, 7 rows/s" in result.err
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


def test_time_left_is_what_the_rate_so_far_gives() -> None:
    assert progress.time_left(done=25, total=100, seconds=20.0) == "0:01:00 left"
    assert progress.time_left(done=0, total=100, seconds=20.0) == ""
    assert progress.time_left(done=5, total=None, seconds=20.0) == ""


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
