"""What a user sees of the trainings of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tercet.errors import TercetError
from tercet.fitting.fit import fit
from tercet.fitting.following import joined
from tercet.fitting.sources import names_of
from tercet.progress import Progress
from tercet.training.listener import Silent


class Recorder(Silent):
    def __init__(self) -> None:
        self.seen: list[tuple[int, int | None, str]] = []
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    @contextmanager
    def working(self, what: str) -> Iterator[Progress]:
        def move(done: int, total: int | None = None, *, note: str = "") -> None:
            self.seen.append((done, total, note))

        yield move


def test_trainings_are_one_progress_that_ends_at_its_total() -> None:
    recorder = Recorder()
    with joined(recorder, "tuning", steps=8) as following:
        for trial in (1, 2):
            following.note = f"trial {trial} of 2"
            following.begin_stage("tune", steps=2, done=0)
            following.steps([{}], rows=32)
            following.steps([{}], rows=32)
            following.end_stage()
            following.begin_stage("heads", steps=1, done=0)
            following.end_stage()
    assert recorder.seen[0] == (0, 8, "")
    assert (3, 8, "trial 1 of 2") in recorder.seen
    assert recorder.seen[-1] == (6, 6, "trial 2 of 2")
    assert len(set(recorder.seen)) == len(recorder.seen)


def test_scores_and_rows_of_trials_are_not_told() -> None:
    recorder = Recorder()
    with joined(recorder, "tuning", steps=1) as following:
        following.say("team train: 10 rows.")
        following.say("Warning: team: all rows are predicted to be a.")
        following.say("Calibrating team on held-out rows.")
    assert recorder.said == ["Calibrating team on held-out rows."]


def test_a_fit_that_fails_leaves_no_folder(tmp_path) -> None:
    table = [{"text": f"A sentence {n}.", "team": "ab"[n % 2]} for n in range(12)]
    with pytest.raises(TercetError):
        fit(team=table, encoder=tmp_path / "nowhere", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tasks_are_named_after_their_files(tmp_path) -> None:
    files = ["8-per-class.1.csv", "Team tickets.csv.gz", f"{tmp_path.name}/x_train.tsv"]
    assert names_of(files, None) == ["8-per-class-1", "Team-tickets", "x"]
    assert names_of([str(tmp_path / "spam" / "train.csv")], None) == ["spam"]
