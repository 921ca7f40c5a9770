from __future__ import annotations

import pytest

from tercet.cli import console
from tercet.errors import printable


def test_a_table_in_a_pipe_is_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(("name", "value"), [("a\tb", 1), ("c\nd", 0.5)])
    assert capsys.readouterr().out == "name\tvalue\na b\t1\nc d\t0.5\n"


def test_a_table_on_a_terminal_keeps_brackets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    console.print_table(("name", "value"), [("[red]", "(u; v; |u-v|)")])
    result = capsys.readouterr().out
    assert "[red]" in result
    assert "\t" not in result


def test_talk_goes_to_stderr_unwrapped(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_message("word " * 100)
    result = capsys.readouterr()
    assert result.out == ""
    assert result.err == "word " * 100 + "\n"


def test_progress_in_a_pipe_ends_with_where_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("embedding", total=300) as report:
        for done in range(1, 301):
            report(done, note="7 a second")
    assert capsys.readouterr().err == "embedding: 300 of 300, 7 a second\n"


def test_progress_in_a_pipe_speaks_at_times(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    with console.progress("embedding") as report:
        report(1)
        report(2, 2)
    assert capsys.readouterr().err == "embedding: 1\nembedding: 2 of 2\n"


def test_time_left_is_in_the_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    with console.progress("embedding") as report:
        now = 100.0
        report(50, 100)
        now = 102.0
        report(55, 100)
        now = 200.0
        report(75, 100)
    result = capsys.readouterr().err.splitlines()
    assert result == ["embedding: 50 of 100", "embedding: 75 of 100, 0:01:40 left"]


def test_progress_on_a_terminal_is_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with console.progress("embedding", total=3) as report:
        report(3, note="done soon")
    result = capsys.readouterr()
    assert result.out == ""
    assert "3/3" in result.err
    assert "done soon" in result.err


def test_terminals_are_not_commanded_by_texts(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "a\x1b]0;title\x07 \x9b31m \u202e b"
    console.print_message(evil)
    console.print_table(["text"], [[evil]])
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert "\\x1b]0;title\\x07" in text
        assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert printable("gr\u00fc\u00df \U0001f600\n") == "gr\u00fc\u00df \U0001f600\n"
