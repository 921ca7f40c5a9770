from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pyarrow as pa
import pytest

from tercet.data.spreadsheet import neutralised, without_formulas
from tercet.evaluation.answers import RowPlaces
from tercet.evaluation.per_class import severity
from tercet.evaluation.suites.tasks import TasksResult
from tercet.report.report import Report


@pytest.mark.parametrize(
    "cell", ["=1+1", "+a", "-a", "@SUM(A1)", "\t=1", "\rx", "-inf", "-1\n", "\t1"]
)
def test_a_formula_gets_a_quote_in_front(cell: str) -> None:
    assert neutralised(cell) == f"'{cell}"
    assert without_formulas(pa.array([cell])) == (pa.array([f"'{cell}"]), 1)


@pytest.mark.parametrize("cell", ["", "plain", "-1.5", "+3", "a=b", "'=1", "-1e-3"])
def test_numbers_and_plain_cells_stay(cell: str) -> None:
    assert neutralised(cell) == cell
    assert without_formulas(pa.array([cell])) == (pa.array([cell]), 0)


def places(lines: list[int], ids: list[str] | None = None) -> RowPlaces:
    return RowPlaces(
        files=["dev.csv"],
        units=["line"],
        sources=np.zeros(len(lines), np.int32),
        lines=np.array(lines),
        ids=ids or [""] * len(lines),
    )


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.fixture
def with_tasks(evaluation, task):
    def make(*every, name: str = "model"):
        tasks = {each.task: task(each) for each in every}
        result = TasksResult(tasks, {"mean": None, "mean-shifted": None})
        return dataclasses.replace(evaluation(name), suites={"tasks": result})

    return make


def test_all_mistakes_of_all_tasks_are_written(with_tasks, answers) -> None:
    many = np.arange(100) % 2
    wrong = np.eye(2)[1 - many] * 0.8 + 0.1
    texts = ([f'=cmd|"{row}"' for row in range(100)],)
    team = answers(
        "team", "single", many, wrong, classes=["bug", "@home"], texts=texts,
        places=places(list(range(2, 102))),
    )  # fmt: skip
    grade = answers(
        "grade", "bi", [1.0, 5.0, 9.0], [1.5, 8.0, 9.0], range=(1.0, 10.0),
        texts=(["one", "two", "three"], ["een", "twee", "drie"]),
        places=places([2, 3, 5], ["a", "b", "c"]),
    )  # fmt: skip
    file = Report([with_tasks(team, grade)]).mistakes()
    rows = read(file.to_csv())
    assert len(rows) == 101
    assert rows[0] == {
        "task": "team", "file": "dev.csv", "line": "2", "id": "", "text": "'=cmd|\"0\"",
        "text2": "", "label": "bug", "predicted": "'@home", "probability": "0.9000",
    }  # fmt: skip
    # 1.5 for 1 is off by less than a tenth of the range.
    assert rows[-1] == {
        "task": "grade", "file": "dev.csv", "line": "3", "id": "b", "text": "two",
        "text2": "twee", "label": "5", "predicted": "8", "probability": "",
    }  # fmt: skip
    assert file.neutralised_cells == 100 + 100


def test_columns_that_say_nothing_are_left_out(with_tasks, answers) -> None:
    one = answers("team", "single", [0, 1], np.eye(2)[[1, 1]], classes=["a", "b"])
    alone = Report([with_tasks(one)]).mistakes()
    assert list(alone.columns) == [
        "task", "file", "line", "text", "label", "predicted", "probability",
    ]  # fmt: skip
    both = Report([with_tasks(one, name="x"), with_tasks(one, name="y")]).mistakes()
    assert [row["model"] for row in read(both.to_csv())] == ["x", "y"]


def test_rows_with_several_labels(with_tasks, answers) -> None:
    given = answers(
        "tags", "single", [0, 0], np.eye(2), classes=["a", "b"], metrics={},
    )  # fmt: skip
    several = dataclasses.replace(
        given,
        labels=np.array([[1, 0], [1, 1], [0, 0]]),
        predictions=np.array([[0.9, 0.6], [0.8, 0.3], [0.1, 0.2]]),
        thresholds=[0.5, 0.55],
        calibration=None,
    )
    assert severity(several).tolist() == [1, 1, 0]
    rows = read(Report([with_tasks(several)]).mistakes().to_csv())
    assert [(row["label"], row["predicted"], row["probability"]) for row in rows] == [
        ("a", "a, b", "0.9000, 0.6000"),
        ("a, b", "a", "0.8000"),
    ]
    assert several.name(several.predicted[2]) == "none"
