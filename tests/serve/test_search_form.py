from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.data.stream import TextFile
from tercet.model import Model
from tercet.search.index import Index
from tercet.serve.forms import search

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
    result = searching.post("/search", {"query": ["dull", "fun"], "top": 2}).json()["results"]
    wanted = index.search(["dull", "fun"], top=2)
    assert [[row["id"] for row in rows] for rows in result] == [[h.id for h in hs] for hs in wanted]
    assert result[0][0]["id"] == "b"
    assert {**result[0][0], "score": 1.0} == {"id": "b", "text": "dull", "score": 1.0, "year": 2001}
    assert np.isclose(result[0][0]["score"], 1.0, atol=1e-5)


def test_one_query_needs_no_list(searching: Any) -> None:
    assert len(searching.post("/search", {"query": "dull"}).json()["results"][0]) == 3


def test_a_condition_on_columns_narrows_the_search(searching: Any, index: Index) -> None:
    body = {"query": "dull", "where": "year > 2000"}
    (rows,) = searching.post("/search", body).json()["results"]
    wanted = [hit.id for hit in index.search("dull", where="year > 2000")[0]]
    assert [row["id"] for row in rows] == wanted
    assert {row["year"] for row in rows} == {2001, 2003}
    nothing = searching.post("/search", body | {"where": "year > 2100", "rerank": 2}).json()
    assert nothing == {"results": [[]]}


@pytest.mark.parametrize("where", ["nope > 3", "year >", "?", "year", "", "year > 1 " * 600, 3])
def test_a_wrong_condition_is_named_and_the_server_stays_up(searching: Any, where: Any) -> None:
    refused = searching.post("/search", {"query": "dull", "where": where})
    assert (refused.status_code, refused.json()["field"]) == (422, "where")
    assert "where" in refused.json()["error"]
    assert searching.post("/search", {"query": "dull"}).status_code == 200


@pytest.mark.parametrize(
    "where",
    [
        "repeat('a', 9) = id",
        "REPEAT ('a', 9) = id",
        "`repeat`('a', 9) = id",
        "repeat/**/('a', 9) = id",
        "repeat -- x\n('a', 9) = id",
        "{fn repeat('a', 9)} = id",
        "\"'\" = repeat('a', 9) or \"'\" = id",
        "$$'$$ = repeat('a', 9) or $$'$$ = id",
        "E'\\' = repeat('a', 9) or '' = id",
        "array_repeat(1, 9)[1] = 1",
        "lpad('a', 9, 'b') = id",
        "replace(text, 'l', 'llll') = id",
        "text || text = id",
        "length(repeat(text, 9)) > 3",
    ],
)
def test_a_condition_that_could_make_gigabytes_is_refused(searching: Any, where: str) -> None:
    """With 1,000,000,000 for 9, the first took 6 GB and more than a minute."""
    refused = searching.post("/search", {"query": "dull", "where": where})
    assert (refused.status_code, refused.json()["field"]) == (422, "where")
    assert "`where` may not have" in refused.json()["error"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("year in (2001, 2003) and not (text like '%u%')", set()),
        ("text = 'repeat (a) -- || $' or year in(2001)", {"b"}),
        ("lower(text) = 'dull' and `year` > cast('1999' as int)", {"b"}),
        ("(year > 2002) is true", {"c"}),
    ],
)
def test_usual_conditions_are_answered(searching: Any, where: str, ids: set[str]) -> None:
    (rows,) = searching.post("/search", {"query": "dull", "where": where}).json()["results"]
    assert {row["id"] for row in rows} == ids


def test_reranking_equals_the_library(searching: Any, index: Index) -> None:
    queries = ["dull", "a film that is fun"]
    body = {"query": queries, "top": 3, "rerank": 2}
    results = searching.post("/search", body).json()["results"]
    for rows, hits in zip(results, index.search(queries, top=3, rerank=2), strict=True):
        assert [row["id"] for row in rows] == [hit.id for hit in hits]
        assert [row.get("cross") is None for row in rows] == [False, False, True]
        for row, hit in zip(rows[:2], hits[:2], strict=True):
            assert row["cross"] == pytest.approx(hit.cross, abs=1e-5)


def test_reranking_tokenises_a_query_once(searching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it is and however many rows it is compared with."""
    seen: list[str] = []
    piece_steps = Model.piece_steps

    def spy(model: Model, texts: Any) -> Any:
        seen.extend(texts)
        return piece_steps(model, texts)

    monkeypatch.setattr(Model, "piece_steps", spy)
    assert searching.post("/search", {"query": "x" * 5000, "rerank": 3}).status_code == 200
    assert seen.count("x" * 5000) == 1


@pytest.mark.parametrize(("rerank", "status"), [(-1, 422), (1001, 422), ("2", 422), (65, 413)])
def test_a_wrong_number_to_rerank_is_named(searching: Any, rerank: Any, status: int) -> None:
    refused = searching.post("/search", {"query": "dull", "rerank": rerank})
    assert (refused.status_code, refused.json()["field"]) == (status, "rerank")


def test_a_model_without_a_cross_mode_cannot_rerank(
    tmp_path: Path, tiny_encoder: Path, serve_model: Any
) -> None:
    from tercet.model import load

    plain = load(tiny_encoder)
    (tmp_path / "rows.csv").write_text(ROWS, "utf-8")
    built = Index.build(tmp_path / "films", TextFile.open(tmp_path / "rows.csv"), plain)
    server = serve_model(plain, index=built)
    refused = server.post("/search", {"query": "dull", "rerank": 2})
    assert (refused.status_code, refused.json()["field"]) == (422, "rerank")
    assert "cannot rerank" in refused.json()["error"]


def test_the_document_describes_conditions_and_reranking(searching: Any) -> None:
    schemas = searching.get("/openapi.json").json()["components"]["schemas"]
    fields = schemas["SearchBody"]["properties"]
    assert "SQL" in fields["where"]["description"]
    assert (fields["rerank"]["minimum"], fields["rerank"]["maximum"]) == (0, 1000)
    assert "cross" in schemas["FoundRow"]["properties"]


def test_info_tells_of_the_index(searching: Any) -> None:
    assert searching.get("/info").json()["tercet"]["index"] == {"name": "films", "rows": 3}


@pytest.mark.parametrize("top", [0, 1001, 2.5, "3"])
def test_a_wrong_top_is_named(searching: Any, top: Any) -> None:
    result = searching.post("/search", {"query": "dull", "top": top})
    assert (result.status_code, result.json()["field"]) == (422, "top")


def test_without_an_index_there_is_nothing_to_search(server: Any) -> None:
    result = server.post("/search", {"query": "dull"})
    assert result.status_code == 404
    assert "no index" in result.json()["error"]


def test_an_index_of_another_model_is_refused_at_the_start(
    index: Index, tiny_encoder: Path
) -> None:
    from tercet.errors import TercetError
    from tercet.model import load
    from tercet.serve.reload import open_index

    with pytest.raises(TercetError, match="another"):
        open_index(Path(index.folder), load(tiny_encoder))


def test_an_answer_has_a_limit_of_rows(searching: Any) -> None:
    refused = searching.post("/search", {"query": ["dull"] * 64, "top": 1000})
    assert (refused.status_code, refused.json()["field"]) == (413, "top")
    assert "640" in refused.json()["error"]
    assert searching.post("/search", {"query": ["dull"] * 64}).status_code == 200


def test_an_answer_has_a_limit_of_bytes(serve: Any, model: Model, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(f"id,text,notes\na,dull,{'x' * 2000}\n", "utf-8")
    Index.build(tmp_path / "long", TextFile.open(tmp_path / "long.csv"), model)
    server = serve(index=Index.open(tmp_path / "long", model), body=1000)
    assert server.post("/search", {"query": ["dull"] * 3}).status_code == 200
    refused = server.post("/search", {"query": ["dull"] * 5})
    assert (refused.status_code, refused.json()["field"]) == (413, "top")
    assert "8000 bytes" in refused.json()["error"]


def test_queries_that_are_answered_in_groups_keep_their_order(
    searching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"query": ["dull", "fun", "a film"], "top": 2, "rerank": 2}
    whole = searching.post("/search", body).json()
    monkeypatch.setattr(search, "ROWS_AT_ONCE", 2)
    parts = searching.post("/search", body).json()
    for rows, others in zip(whole["results"], parts["results"], strict=True):
        assert [row["id"] for row in rows] == [row["id"] for row in others]
