from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import torch

from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.training.metrics_log import MetricsLog, StepRecord, open_metrics
from tercet.training.plan import Draw
from tercet.training.run import _describe


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


@pytest.fixture
def stream(file: Path) -> Iterator[BinaryIO]:
    with open_metrics(file, length=0) as stream:
        yield stream


@pytest.fixture
def log(stream: BinaryIO) -> MetricsLog:
    return MetricsLog(stream, describe=lambda draw: f"rows {draw.rows.tolist()}")


def record(
    step: int = 1,
    *,
    losses: dict[str, float] | None = None,
    norm: float = 2.0,
    cosines: list[list[float]] | None = None,
) -> StepRecord:
    losses = losses if losses is not None else {"sst": 0.5}
    return StepRecord(
        step=step,
        stage="fine-tune",
        draws=[Draw(task, np.array([3, 1])) for task in losses],
        losses=torch.tensor(list(losses.values())),
        lr=0.125,
        norm=torch.tensor(norm),
        cosines=torch.tensor(cosines) if cosines is not None else None,
    )


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_a_step_is_a_line(log: MetricsLog, file: Path) -> None:
    log.step(record(7, losses={"sst": 0.5, "qqp": 0.25}))
    assert lines(file) == []
    result, rows = log.flush()
    line = {
        "step": 7,
        "stage": "fine-tune",
        "loss": {"sst": 0.5, "qqp": 0.25},
        "lr": 0.125,
        "norm": 2.0,
    }
    assert result == lines(file) == [line]
    assert rows == 4


def test_steps_are_told_once_and_in_order(log: MetricsLog, file: Path) -> None:
    for step in (1, 2, 3):
        log.step(record(step))
    assert [line["step"] for line in log.flush()[0]] == [1, 2, 3]
    assert log.flush() == ([], 0)
    log.step(record(4))
    log.flush()
    assert [line["step"] for line in lines(file)] == [1, 2, 3, 4]


def test_losses_survive_bit_for_bit(log: MetricsLog, file: Path) -> None:
    loss = torch.tensor(0.1).item()
    log.step(record(losses={"sst": loss}))
    log.flush()
    assert lines(file)[0]["loss"]["sst"] == loss


def test_surgery_adds_the_cosine_of_every_two_tasks(log: MetricsLog, file: Path) -> None:
    cosines = [[1.0, 0.5, -0.25], [0.5, 1.0, 0.75], [-0.25, 0.75, 1.0]]
    log.step(record(losses={"sst": 1.0, "qqp": 2.0, "sts": 3.0}, cosines=cosines))
    log.flush()
    expected = {"sst ~ qqp": 0.5, "sst ~ sts": -0.25, "qqp ~ sts": 0.75}
    assert lines(file)[0]["cosine"] == expected


def test_scores_are_a_line(log: MetricsLog, file: Path) -> None:
    dev = {"sst": {"accuracy": 0.5}}
    log.scores(step=9, stage="fine-tune", dev=dev, score=0.5)
    assert lines(file) == [{"step": 9, "stage": "fine-tune", "dev": dev, "score": 0.5}]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_loss_that_is_not_finite_stops_and_keeps_the_lines_before(
    file: Path, make_table: Callable[..., TaskTable], value: str
) -> None:
    table = make_table(["one", "two", "three", "four"])
    with open_metrics(file, length=0) as stream:
        log = MetricsLog(stream, describe=lambda draw: _describe({draw.task: table}, draw))
        for step in (1, 2):
            log.step(record(step))
        log.step(record(3, losses={"sst": 0.5, "qqp": float(value)}))
        log.step(record(4))
        with pytest.raises(TercetError) as caught:
            log.flush()
    said = str(caught.value)
    assert f"the loss of task `qqp` became {value} at step 3 of stage `fine-tune`" in said
    assert "2 rows from rows.tsv line 13 to rows.tsv line 11" in said
    assert [line["step"] for line in lines(file)] == [1, 2]


def test_a_gradient_that_is_not_finite_stops_too(log: MetricsLog, file: Path) -> None:
    """The losses of that step do not show it, but the weights after it are spoilt."""
    log.step(record(1, losses={"sst": 0.5, "qqp": 0.25}, norm=float("nan")))
    with pytest.raises(TercetError, match=r"gradient of task `sst` and `qqp` became nan at step 1"):
        log.flush()
    assert lines(file) == []


def test_an_older_file_keeps_only_its_first_bytes(file: Path) -> None:
    first = b'{"step": 1}\n'
    file.write_bytes(first + b'{"step": 2}\n{"st')
    with open_metrics(file, length=len(first)) as stream:
        log = MetricsLog(stream, describe=str)
        assert log.sync() == len(first)
        log.step(record(2))
        log.flush()
        assert log.sync() == file.stat().st_size
    assert [line["step"] for line in lines(file)] == [1, 2]
    assert file.read_bytes().startswith(first)


def test_a_new_run_begins_an_empty_file(file: Path) -> None:
    file.write_bytes(b"old\n")
    open_metrics(file, length=0).close()
    assert file.read_bytes() == b""


def test_a_file_shorter_than_was_noted_is_not_filled_up(file: Path) -> None:
    file.write_bytes(b'{"step": 1}\n')
    with open_metrics(file, length=100) as stream:
        assert MetricsLog(stream, describe=str).sync() == 12
    assert file.read_bytes() == b'{"step": 1}\n'


def test_lengths_noted_along_the_way_cut_exactly_there(file: Path) -> None:
    noted = []
    with open_metrics(file, length=0) as stream:
        log = MetricsLog(stream, describe=str)
        for step in (1, 2, 3):
            log.step(record(step))
            log.flush()
            noted.append(log.sync())
    whole = file.read_bytes()
    for done in (2, 1):
        open_metrics(file, length=noted[done - 1]).close()
        assert file.read_bytes() == whole[: noted[done - 1]]
        assert [line["step"] for line in lines(file)] == list(range(1, done + 1))
