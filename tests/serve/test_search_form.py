from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.data.stream import TextFile
from tercet.model import Model
from tercet.search.index import Index

ROWS = """id,text,year
a,a film that is worth a look,1999
b,dull,2001
c,good fun,2003
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Index:
    folder = tmp_path_factory.mktemp("index")
    (folder / "rows.csv").write_text(ROWS, "utf-8")
    Index.build(folder / "films", TextFile.open(folder / "rows.csv"), model)
    return Index.open(folder / "films", model)


@pytest.fixture(scope="module")
def searching(serve: Any, index: Index) -> Any:
    return serve(index=index)


def test_search_gives_the_rows_of_the_index(searching: Any, index: Index) -> None:
    told = searching.post("/search", {"query": ["dull", "fun"], "top": 2}).json()["results"]
    wanted = index.search(["dull", "fun"], top=2)
    assert [[row["id"] for row in rows] for rows in told] == [[h.id for h in hs] for hs in wanted]
    assert told[0][0]["id"] == "b"
    assert {**told[0][0], "score": 1.0} == {"id": "b", "text": "dull", "score": 1.0, "year": 2001}
    assert np.isclose(told[0][0]["score"], 1.0, atol=1e-5)


def test_one_query_needs_no_list(searching: Any) -> None:
    assert len(searching.post("/search", {"query": "dull"}).json()["results"][0]) == 3


def test_info_tells_of_the_index(searching: Any) -> None:
    assert searching.get("/info").json()["tercet"]["index"] == {"name": "films", "rows": 3}


@pytest.mark.parametrize("top", [0, 1001, 2.5, "3"])
def test_a_wrong_top_is_named(searching: Any, top: Any) -> None:
    told = searching.post("/search", {"query": "dull", "top": top})
    assert (told.status_code, told.json()["field"]) == (422, "top")


def test_without_an_index_there_is_nothing_to_search(server: Any) -> None:
    told = server.post("/search", {"query": "dull"})
    assert told.status_code == 404
    assert "--index" in told.json()["error"]


def test_an_index_of_another_model_is_refused_at_the_start(
    index: Index, tiny_encoder: Path
) -> None:
    from tercet.errors import TercetError
    from tercet.model import load
    from tercet.serve.server import open_index

    with pytest.raises(TercetError, match="another"):
        open_index(Path(index.folder), load(tiny_encoder))
