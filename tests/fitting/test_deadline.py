"""`minutes` holds: trainings that would take too long are shortened, and the recipe says so."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tercet
from tercet.fitting import fit as fitting
from tercet.fitting.budget import NO_TIME, UNTUNED, Budget
from tercet.fitting.by_folds import SHORTENED, SLOW, UNFOLDED
from tercet.fitting.deadline import Deadline, OutOfTimeError
from tercet.progress import Progress
from tercet.training.encoded_rows import EncodedRows
from tercet.training.listener import Silent

Fit = Callable[..., Any]
Pace = Callable[[str, str], float]
MINUTES = 2.0
STEPS = 20


class Slow(Silent):
    """A clock that advances with each step, by what `pace` gives for the work and its note."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.now = 0.0
        self.said: list[str] = []
        self.works: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    @contextmanager
    def working(self, what: str) -> Iterator[Progress]:
        self.works.append(what)
        last = 0

        def move(done: int, total: int | None = None, *, note: str = "") -> None:
            nonlocal last
            if done > last:
                self.now += self.pace(what, note)
            last = done

        yield move

    @property
    def shortenings(self) -> list[str]:
        return [sentence for sentence in self.said if "is shortened from" in sentence]


def rows(count: int = 60) -> list[dict[str, Any]]:
    draw = random.Random(1)
    words = {"film": "plot film", "music": "guitar guitar", "weather": "rain rain"}
    fillers = ["the", "a", "how", "is", "it", "long", "good"]
    return [
        {"text": f"{' '.join(draw.sample(fillers, 4))} {words[team]} {n}", "team": team}
        for n in range(count)
        for team in [list(words)[n % 3]]
    ]


def weights(folder: Path) -> list[bytes]:
    names = ("model.safetensors", "heads.safetensors")
    return [(folder / "model" / name).read_bytes() for name in names]


@pytest.fixture
def slowly(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Slow]]:
    """`fit` by a clock of steps, with 0.8 seconds to encode all rows once."""
    encode = EncodedRows.of

    def run(pace: Pace, minutes: float = MINUTES) -> tuple[Any, Slow]:
        clock = Slow(lambda what, note: 0.0 if what == "linear model" else pace(what, note))
        monkeypatch.setattr(fitting, "Budget", lambda s: Budget(s, clock=lambda: clock.now))

        def slow_encoding(*arguments: Any) -> EncodedRows:
            # Each of three folds is one batch of the two that all rows make.
            clock.now += 1.2 if clock.works[-1] == "linear model" else 0.0
            return encode(*arguments)

        monkeypatch.setattr(EncodedRows, "of", slow_encoding)
        return fit(team=rows(), minutes=minutes, listener=clock), clock

    return run


def trained_again(result: Any) -> list[bytes]:
    out = result.folder.with_name(result.folder.name + "-again")
    return weights(tercet.train(result.recipe, data=result.data, out=out, device="cpu").folder)


def shortened(result: Any) -> Any:
    (stage,) = [stage for stage in result.recipe.stages if stage.name == "tune"]
    return stage.shortened


def test_the_time_to_fit_heads_is_not_taken_for_that_to_encode(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Slow(lambda what, _: 60.0 * MINUTES / 10.0 if what == "linear model" else 0.1)
    monkeypatch.setattr(fitting, "Budget", lambda s: Budget(s, clock=lambda: clock.now))
    fit(team=rows(), minutes=MINUTES, listener=clock)
    assert "tuning" in clock.works
    assert NO_TIME not in clock.said


def test_nothing_depends_on_the_pace_within_the_time(slowly: Any) -> None:
    (one, first), (other, second) = slowly(lambda *_: 0.5), slowly(lambda *_: 1.1)
    assert weights(one.folder) == weights(other.folder)
    assert one.scores == other.scores
    assert shortened(one) is None
    assert first.said == second.said
    assert one.shortage is None
    # Nor on a machine that is slow for a while.
    seen = 0

    def pace(what: str, note: str) -> float:
        nonlocal seen
        seen += 1
        return 6.0 if seen <= 8 else 0.5

    late, third = slowly(pace)
    assert weights(late.folder) == weights(one.folder)
    assert third.said == first.said


def test_the_last_training_is_shortened_and_trains_again_to_the_same_model(slowly: Any) -> None:
    result, clock = slowly(lambda what, note: 3.0 if note == "on all rows" else 1.0)
    (cut,) = shortened(result)
    assert 1 <= cut[0] < cut[1] < STEPS
    assert clock.shortenings == [
        f"Training is slower than planned: it is shortened from {STEPS} to {cut[1]} steps, to end "
        "within 2 minutes."
    ]
    assert clock.now <= 60.0 * MINUTES
    assert weights(result.folder) == trained_again(result)
    assert SHORTENED in result.warnings
    assert SHORTENED.replace("'", "&#39;") in (result.folder / "report.html").read_text("utf-8")
    assert f"Warning: {SHORTENED}" in clock.said
    check_shortage(result, clock, f"the training was shortened from 20 to {cut[1]} steps")


def test_a_share_judges_where_trials_are_too_slow(slowly: Any) -> None:
    """And is shortened itself where it is slower still."""
    result, clock = slowly(lambda what, note: 3.0 if note else 5.5)
    assert SLOW in clock.said
    assert result.recipe.tasks["team"].data.dev == 0.15
    (cut,) = shortened(result)
    assert len(clock.shortenings) == 1
    assert clock.now <= 60.0 * MINUTES
    check_shortage(result, clock, f"{UNFOLDED}; the training was shortened from 20 to {cut[1]}")
    assert weights(result.folder) == trained_again(result)


def test_the_linear_model_is_kept_where_even_that_is_too_slow(slowly: Any) -> None:
    result, clock = slowly(lambda *_: 40.0)
    assert clock.said.index(SLOW) < clock.said.index(NO_TIME)
    assert [stage.name for stage in result.recipe.stages] == ["heads"]
    assert sum("simple baselines" in sentence for sentence in clock.said) == 1
    assert result.scores["team"].value == result.scores["team"].linear
    check_shortage(result, clock, UNTUNED)


def check_shortage(result: Any, clock: Slow, left_out: str) -> None:
    """That a user sees everywhere what time did not allow, before all else that is wrong."""
    assert left_out in result.shortage
    assert result.warnings[0] == result.shortage
    assert f"  Warning: {result.shortage}" in repr(result).splitlines()
    assert f"Warning: {result.shortage}" in clock.said
    page = (result.folder / "report.html").read_text("utf-8")
    warnings = page[page.index('class="warnings"') :]
    assert warnings.index("Time limited this model: ") < warnings.index("</li>")


@pytest.mark.parametrize("seconds", [3.0, 40.0])
def test_the_minutes_that_it_asks_for_suffice_and_half_of_them_do_not(
    slowly: Any, seconds: float
) -> None:
    minutes = asked_minutes(slowly(lambda *_: seconds)[0])
    assert slowly(lambda *_: seconds, minutes)[0].shortage is None
    assert slowly(lambda *_: seconds, minutes / 2)[0].shortage is not None


def asked_minutes(result: Any) -> int:
    found = re.search(r"`--minutes (\d+)`", result.shortage)
    assert found is not None
    return int(found[1])


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def deadline(clock: Clock) -> Deadline:
    settings: Any = SimpleNamespace(
        batches=7, epochs=1.0
    )  # four steps' time is needed after the last one
    return Deadline(Budget(100.0, clock=clock), settings)


def test_a_short_stop_does_no_harm(deadline: Deadline, clock: Clock) -> None:
    following: Any = SimpleNamespace()
    for step in range(1, 81):
        clock.now += 5.0 if step == 40 else 1.0
        assert deadline.shorten(step, 80, following=following) is None


def test_a_training_that_becomes_slower_and_slower_is_shortened_again(
    deadline: Deadline, clock: Clock
) -> None:
    following: Any = SimpleNamespace(shorten=lambda _: None, tell=lambda _: None)
    planned, done = [80], 0
    while done < planned[-1]:
        done += 1
        clock.now += 1.0 + 0.15 * max(0, done - 20)
        steps = deadline.shorten(done, planned[-1], following=following)
        planned += [] if steps is None else [steps]
    assert len(planned) > 2
    assert planned == sorted(planned, reverse=True)
    assert clock.now < 110.0


def test_trainings_are_counted_together(deadline: Deadline, clock: Clock) -> None:
    """Three of 20 steps each, whose last is not noted; only the last one shows to be too late."""
    seen = []

    def watch() -> None:
        for training in range(3):
            for step in range(1, 20):
                clock.now += 1.0 if training == 0 else 2.0
                seen.append(training)
                deadline.check(step, 20, total=60)

    with pytest.raises(OutOfTimeError) as late:
        watch()
    assert seen[-1] == 2
    assert late.value.encoding == pytest.approx(2.0 * 7 / 3.5)
