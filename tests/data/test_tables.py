from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from tercet.data.tables import to_arrow
from tercet.errors import TercetError

COLUMNS = {"text": ["a", "b"], "price": [1, 2]}


def test_tables_of_every_library_are_arrow() -> None:
    frame = pd.DataFrame(COLUMNS)
    rows = [{"text": "a", "price": 1}, {"text": "b", "price": 2}]
    for table in (
        COLUMNS,
        rows,
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        frame,
        frame.set_index(pd.Index([5, 3])),
        pa.table(COLUMNS).to_reader(),
    ):
        found = to_arrow(table)
        assert found.to_pydict() == COLUMNS
        assert found.schema.metadata is None
    assert to_arrow([{"a": 1}, {"b": 2}]).to_pydict() == {"a": [1, None], "b": [None, 2]}


@pytest.mark.parametrize("table", [None, 3, "text", ["a", "b"]])
def test_what_is_no_table_is_refused(table: object) -> None:
    with pytest.raises(TercetError, match="Expected a table"):
        to_arrow(table)


def test_a_mixed_column_is_one_sentence() -> None:
    with pytest.raises(TercetError, match="The table cannot be read"):
        to_arrow({"a": [1, "b"]})
