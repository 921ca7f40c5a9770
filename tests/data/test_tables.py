"""Tables of every library become the same Arrow table, and files that a recipe can name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tercet.data.examples import read_examples
from tercet.data.tables import to_arrow, write_tables
from tercet.errors import TercetError
from tercet.specs import TaskSpec

datasets = pytest.importorskip("datasets")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ROWS: list[dict[str, Any]] = [
    {"text": "one", "team": "a", "grade": 1.5, "tags": ["x", "y"]},
    {"text": "two", "team": None, "grade": None, "tags": []},
    {"text": "three", "team": "b", "grade": 3.0, "tags": ["x"]},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


class Stream:
    """Anything with the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)


TABLES: dict[str, Callable[[], object]] = {
    "arrow": lambda: pa.table(COLUMNS),
    "batch": lambda: pa.RecordBatch.from_pylist(ROWS),
    "reader": lambda: pa.table(COLUMNS).to_reader(),
    "stream": Stream,
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas with an index": lambda: pd.DataFrame(COLUMNS, index=["p", "q", "r"]),
    "pandas with categories": lambda: pd.DataFrame(COLUMNS).astype({"team": "category"}),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars with categories": lambda: pl.DataFrame(COLUMNS).cast({"team": pl.Categorical}),
    "datasets": lambda: datasets.Dataset.from_dict(COLUMNS),
    "datasets, shuffled back": lambda: datasets.Dataset.from_list(ROWS[::-1]).select([2, 1, 0]),
    "rows": lambda: ROWS,
    "rows with keys left out": lambda: [
        {key: value for key, value in row.items() if value is not None} for row in ROWS
    ],
    "columns": lambda: COLUMNS,
    "columns of many kinds": lambda: {
        "text": np.array(COLUMNS["text"]),
        "team": pl.Series(COLUMNS["team"]),
        "grade": pd.Series(COLUMNS["grade"]),
        "tags": pa.array(COLUMNS["tags"]),
    },
    "columns with NaN": lambda: {**COLUMNS, "grade": (1.5, float("nan"), 3.0)},
}


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_becomes_the_same(name: str) -> None:
    table = to_arrow(TABLES[name]())
    assert table.to_pylist() == ROWS
    kinds = [str(kind) for kind in table.schema.types]
    assert kinds[:3] == ["string", "string", "double"]
    assert pa.types.is_list(table.schema.field("tags").type)
    assert table.schema.field("tags").type.value_type == pa.string()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "Expected a table, not None: give a pandas or polars DataFrame"),
        ("tickets.csv", "Expected a table, not a str"),
        (3, "Expected a table, not a int"),
        ((row for row in ROWS), "not a generator"),
        (["one", "two"], "Expected a table of dicts, but row 1 is a str"),
        ([{"text": "x"}, None], "but row 2 is a NoneType"),
        ([], "has no rows"),
        ({}, "has no columns"),
        ({"text": "one", "label": "a"}, "Column `text` of the table is a str, not a list"),
        ({"text": ["one"], "label": None}, "Column `label` of the table is None"),
        (
            {"text": ["one", "two"], "label": [1]},
            "differ in length: `text` has 2 rows, `label` has",
        ),
        ({"text": ["one", 2]}, "The table cannot be read: column `text`: "),
        ({"text": np.zeros((2, 2))}, "The table cannot be read: column `text`: "),
        (pd.Series(["one"]), "Expected a table with named columns, not a Series"),
        (pl.Series(["one"]), "Expected a table with named columns, not a Series"),
        (pl.LazyFrame({"text": ["one"]}), "call its `collect()` first"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "are called `text`"),
        (pd.DataFrame({"text": ["a", 1]}), "The table cannot be read: "),
        (
            datasets.DatasetDict({"train": datasets.Dataset.from_dict(COLUMNS)}),
            "choose one of its splits: `train`",
        ),
    ],
)
def test_what_is_not_a_table_is_told(table: object, message: str) -> None:
    with pytest.raises(TercetError) as caught:
        to_arrow(table)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def task() -> Iterator[TaskSpec]:
    head = {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}}
    data = {
        "train": "tickets.parquet",
        "texts": "text",
        "label": "team",
        "on_bad_row": "skip",
    }
    return TaskSpec.model_validate({"data": data, "labels": ["a", "b"], "single": head})


@pytest.mark.parametrize("name", ["pandas", "polars", "datasets", "rows"])
def test_written_tables_are_read_by_a_recipe(tmp_path: Path, task: TaskSpec, name: str) -> None:
    write_tables({"tickets": TABLES[name](), "other": COLUMNS}, tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "other.parquet",
        "tickets.parquet",
    ]
    examples = read_examples(task, "train", tmp_path / "new")
    assert examples.texts == (["one", "three"],)
    assert examples.labels is not None
    assert examples.labels.tolist() == [0, 1]


def test_a_wrong_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match="Table `team`: Expected a table, not None"):
        write_tables({"team": None}, tmp_path)
    with pytest.raises(TercetError, match=r"Table '\.\./team': its name"):
        write_tables({"../team": ROWS}, tmp_path)


WITHOUT_LIBRARIES = """
import sys

class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "datasets"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
from tercet.data.tables import to_arrow
print(to_arrow([{"text": "x"}]).num_rows)
"""


def test_no_library_of_tables_is_needed() -> None:
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARIES], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "1"
