from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from tercet import weights
from tercet.data.stream import TextFile
from tercet.embed import staged
from tercet.embed.local import embed_file
from tercet.embed.schema import (
    FORMAT_KEY,
    HASH_KEY,
    LAYERS_KEY,
    NAME_KEY,
    Identity,
    vector_array,
    vectors_of,
    vectors_schema,
)
from tercet.errors import TercetError
from tercet.model import Model
from tercet.search import ann
from tercet.search.index import Index
from tercet.search.lance_store import metadata_of, write_index
from tercet.vectors import unit

WORDS = ("dull", "film", "quiet", "people", "sing", "dance", "cook", "read", "old", "new", "red")


def sentences(count: int) -> list[str]:
    """Distinct sentences of a few words."""
    found = []
    for number in range(count):
        chosen = [WORDS[(number // len(WORDS) ** place + place) % len(WORDS)] for place in range(4)]
        found.append(" ".join([*chosen, "number", str(number)]))
    return found


Rows = Callable[..., TextFile]
TEXTS = sentences(300)


@pytest.fixture
def built(tmp_path: Path, rows: Rows, model: Model) -> Index:
    return Index.build(tmp_path / "index", rows(TEXTS), model)


def brute_force(model: Model, texts: list[str], query: str) -> np.ndarray:
    return model.embed(texts) @ model.embed([query])[0]


def test_search_equals_brute_force(built: Index, model: Model) -> None:
    queries = [TEXTS[7], "people sing", "old red film"]
    for query, hits in zip(queries, built.search(queries, top=20), strict=True):
        scores = brute_force(model, TEXTS, query)
        order = np.argsort(-scores, kind="stable")[:20]
        assert [hit.score for hit in hits] == pytest.approx(scores[order].tolist(), abs=2e-6)
        for hit in hits:
            place = int(hit.id[1:])
            assert (hit.text, hit.columns) == (TEXTS[place], {"price": place})
            assert hit.score == pytest.approx(scores[place], abs=2e-6)
    assert built.search(TEXTS[7], top=1)[0][0].id == "r7"


def test_what_an_index_tells_of_itself(built: Index, model: Model, tmp_path: Path) -> None:
    opened = Index.open(tmp_path / "index", model)
    assert (opened.count(), opened.count("price < 10"), opened.columns) == (300, 10, ["price"])
    assert opened.model_name == "tiny"
    assert opened.setting is None
    assert "rows=300" in repr(opened)
    assert not staged.work_folder(tmp_path / "index").exists()


@pytest.mark.parametrize("column", ["id", "text", "vector"])
def test_an_index_without_one_of_its_columns_is_told(
    built: Index, tmp_path: Path, column: str
) -> None:
    lance.dataset(tmp_path / "index").drop_columns([column])
    with pytest.raises(TercetError, match="lacks a column of an index"):
        Index.open(tmp_path / "index", built.model)


def test_a_condition_holds_for_all_hits(built: Index, model: Model) -> None:
    (hits,) = built.search(TEXTS[7], top=5, where="price >= 100 and price < 103")
    assert sorted(hit.id for hit in hits) == ["r100", "r101", "r102"]
    assert built.search(TEXTS[7], where="price > 1000") == [[]]


def test_fewer_rows_than_asked_for(tmp_path: Path, rows: Rows, model: Model) -> None:
    index = Index.build(tmp_path / "small", rows(TEXTS[:3]), model)
    assert len(index.search("film", top=10)[0]) == 3


def test_rows_without_text_are_left_out(tmp_path: Path, rows: Rows, model: Model) -> None:
    index = Index.build(tmp_path / "small", rows(["one", "", "three"]), model)
    assert {hit.id for hit in index.search("one")[0]} == {"r0", "r2"}


def test_add_update_delete_by_id(built: Index, rows: Rows, tmp_path: Path) -> None:
    reader = Index.open(tmp_path / "index", built.model)
    assert built.add(rows(["quite another thing"], first=300)) == 1
    assert built.search("quite another thing", top=1)[0][0].id == "r300"
    assert built.update(rows(["entirely new words", "and more"], first=300)) == 2
    assert built.count() == 302
    (hit,) = built.search("entirely new words", top=1)[0]
    assert (hit.id, hit.text, hit.columns) == ("r300", "entirely new words", {"price": 300})
    assert built.delete(["r300", "r5", "no such id"]) == 2
    assert built.count() == 300
    assert "r5" not in {hit.id for hit in built.search(TEXTS[5], top=300)[0]}
    assert (reader.count(), reader.search(TEXTS[5], top=1)[0][0].id) == (300, "r5")
    reader.refresh()
    assert reader.search(TEXTS[5], top=1)[0][0].id != "r5"


def test_many_changes_leave_few_files(
    built: Index, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ann, "FRAGMENTS", 3)
    for number in range(5):
        built.add(rows([f"added words {number}"], first=300 + number))
    assert built.count() == 305
    assert len(lance.dataset(built.folder).get_fragments()) <= 3
    assert built.search("added words 4", top=1)[0][0].id == "r304"


def test_a_column_left_out_of_an_update_is_empty(built: Index, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("id,text\nr1,changed words\n", "utf-8")
    built.update(TextFile.open(tmp_path / "b.csv"))
    (hit,) = built.search("changed words", top=1)[0]
    assert (hit.id, hit.columns) == ("r1", {"price": None})


def test_building_again_replaces_all(built: Index, rows: Rows, tmp_path: Path) -> None:
    Index.build(tmp_path / "index", rows(["only this"]), built.model)
    assert built.count() == 300
    built.refresh()
    assert [hit.text for hit in built.search("film")[0]] == ["only this"]


def test_rerank_orders_by_both_modes(built: Index, model: Model) -> None:
    query = "quiet people sing"
    before = built.search(query, top=30)[0]
    after = built.search(query, top=30, rerank=20)[0]
    assert {hit.id for hit in after[:20]} == {hit.id for hit in before[:20]}
    assert [hit.id for hit in after[20:]] == [hit.id for hit in before[20:]]
    said = model.paraphrase([(query, hit.text) for hit in after[:20]], "cross")
    assert [hit.cross for hit in after[:20]] == pytest.approx(said.tolist(), abs=2e-6)
    sums = [hit.cross + hit.score for hit in after[:20]]
    assert sums == sorted(sums, reverse=True)
    assert len(built.search(query, top=5, rerank=20)[0]) == 5


def test_rerank_needs_a_cross_mode(built: Index, plain_model: Model, tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index", plain_model)
    with pytest.raises(TercetError, match="has mode `cross`"):
        index.search("film", rerank=5)


def test_another_model_is_refused(built: Index, other_model: Model, tmp_path: Path) -> None:
    with pytest.raises(TercetError, match="made by the model tiny"):
        Index.open(tmp_path / "index", other_model)


def test_heads_do_not_make_another_model(built: Index, plain_model: Model, tmp_path: Path) -> None:
    Index.open(tmp_path / "index", plain_model).search("film")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("prise > 3", "Did you mean 'price'"),
        ("price >", "expression"),
        ("price > 'much'", "price"),
        ("price + 1", "boolean"),
    ],
)
def test_a_wrong_condition_is_named(built: Index, where: str, message: str) -> None:
    with pytest.raises(TercetError, match=message) as error:
        built.search("film", where=where)
    assert "\n" not in str(error.value)
    assert ".rs:" not in str(error.value)


def test_mistakes_of_changes_change_nothing(built: Index, rows: Rows, tmp_path: Path) -> None:
    version = built.version
    with pytest.raises(TercetError, match=r"id 'r299' is already in the index"):
        built.add(rows(["x", "y"], first=299))
    (tmp_path / "b.csv").write_text("id,text,prize\nr1,x,3\n", "utf-8")
    with pytest.raises(TercetError, match="did you mean `price`"):
        built.update(TextFile.open(tmp_path / "b.csv"))
    (tmp_path / "c.csv").write_text("id,text,price\nr1,x,much\n", "utf-8")
    with pytest.raises(TercetError, match="`price` has type string"):
        built.update(TextFile.open(tmp_path / "c.csv"))
    built.refresh()
    assert built.version == version


def test_what_is_no_index_is_refused(tmp_path: Path, rows: Rows, model: Model) -> None:
    with pytest.raises(TercetError, match="is not an index"):
        Index.open(tmp_path)
    with pytest.raises(TercetError, match="holds other files"):
        Index.build(tmp_path, rows(TEXTS[:2]), model)
    (tmp_path / "file").write_text("x")
    with pytest.raises(TercetError, match="is a file"):
        Index.build(tmp_path / "file", rows(TEXTS[:2]), model)
    lance.write_dataset(pa.table({"x": [1]}), tmp_path / "theirs")
    with pytest.raises(TercetError, match="not an index built by Tercet"):
        Index.open(tmp_path / "theirs")


def test_a_corrupt_fragment_is_named(built: Index, model: Model, tmp_path: Path) -> None:
    (data,) = (tmp_path / "index" / "data").iterdir()
    whole = data.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", None):
        data.unlink(missing_ok=True)
        if broken is not None:
            data.write_bytes(broken)
        with pytest.raises(TercetError, match=str(tmp_path / "index")) as error:
            Index.open(tmp_path / "index", model).search("film")
        assert "\n" not in str(error.value)
    data.write_bytes(whole)
    assert Index.open(tmp_path / "index", model).search(TEXTS[3], top=1)[0][0].id == "r3"


def test_an_interrupted_build_goes_on(
    tmp_path: Path, rows: Rows, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "PART", 100)
    embedded: list[int] = []
    true_embed = Model.embed

    def embed(self: Model, texts, **options):
        if len(embedded) == 2:
            embedded.append(0)
            raise KeyboardInterrupt
        embedded.append(len(texts))
        return true_embed(self, texts, **options)

    monkeypatch.setattr(Model, "embed", embed)
    file = rows(TEXTS)
    with pytest.raises(KeyboardInterrupt):
        Index.build(tmp_path / "index", file, model)
    assert not (tmp_path / "index").exists()
    index = Index.build(tmp_path / "index", file, model)
    assert embedded == [100, 100, 0, 100]
    assert index.count() == 300


def test_staged_parts_of_another_file_or_model_are_not_used(
    tmp_path: Path, rows: Rows, model: Model, other_model: Model
) -> None:
    index = Index.build(tmp_path / "index", rows(TEXTS[:5]), model)
    file = rows(TEXTS[:5])
    work = staged.work_folder(index.folder) / f"tercet-{file.digest[:16]}"
    staged.stage(file, other_model, Identity.of(other_model), work, skip_empty=True)
    index.update(file)
    assert index.search(TEXTS[3], top=1)[0][0].score == pytest.approx(1.0, abs=1e-5)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "EXACT_BYTES", 0)


def test_a_large_index_is_searched_by_ann(
    large: None, tmp_path: Path, rows: Rows, model: Model
) -> None:
    texts = sentences(2000)
    index = Index.build(tmp_path / "index", rows(texts), model)
    setting = index.setting
    assert setting is not None
    assert setting.recall >= 0.95
    assert setting.rows == 2000
    queries = texts[::50]
    found = index.search(queries, top=10)
    vectors = model.embed(texts)
    share = []
    for query, hits in zip(model.embed(queries), found, strict=True):
        scores = vectors @ query
        least = np.sort(scores)[-10] - 1e-5
        assert [h.score for h in hits] == pytest.approx(
            [scores[int(h.id[1:])] for h in hits], abs=1e-5
        )
        share.append(np.mean([scores[int(hit.id[1:])] >= least for hit in hits]))
    assert np.mean(share) >= 0.9
    (hits,) = index.search(texts[9], top=5, where="price < 20")
    assert len(hits) == 5
    assert all(hit.columns["price"] < 20 for hit in hits)


def test_rows_that_come_later_are_found_by_ann(
    large: None, tmp_path: Path, rows: Rows, model: Model
) -> None:
    index = Index.build(tmp_path / "index", rows(sentences(1000)), model)
    index.add(rows(["words quite unlike the others"], first=5000))
    assert index.setting is not None
    assert index.search("words quite unlike the others", top=1)[0][0].id == "r5000"
    index.delete(["r5000"])
    assert index.search("words quite unlike the others", top=1)[0][0].id != "r5000"


def test_a_large_index_of_0_1_is_searched_and_changed_as_it_is(
    large: None, tmp_path: Path, rows: Rows, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = sentences(1000)
    with monkeypatch.context() as before:
        before.setattr(ann, "kind_of", lambda width: "IVF_SQ")
        Index.build(tmp_path / "index", rows(texts), model)
    index = Index.open(tmp_path / "index", model)
    assert kinds(index) == ("IVF_SQ", "IVF_SQ")
    assert recall(index, model, texts) >= 0.9
    index.update(rows(["words quite unlike the others"], first=5000))
    assert kinds(index) == ("IVF_SQ", "IVF_SQ")
    assert index.search("words quite unlike the others", top=1)[0][0].id == "r5000"
    index.optimise()
    assert kinds(index) == ("IVF_RQ", "IVF_RQ")
    assert index.search("words quite unlike the others", top=1)[0][0].id == "r5000"


def test_rows_are_found_by_ann_after_many_changes(
    large: None, tmp_path: Path, rows: Rows, model: Model
) -> None:
    texts = sentences(1100)
    index = Index.build(tmp_path / "index", rows(texts[:1000]), model)
    built = index.setting
    index.add(rows(texts[1000:], first=1000))
    index.update(rows(texts[500:520], first=500))
    index.delete([f"r{place}" for place in range(0, 1100, 20)])
    assert index.setting == built  # it was extended, not rebuilt
    left = {place: text for place, text in enumerate(texts) if place % 20}
    assert recall(index, model, left) >= 0.9


def test_enough_rows_are_found_where_those_of_the_nearest_partition_are_deleted(
    large: None, tmp_path: Path, rows: Rows, model: Model
) -> None:
    texts = sentences(1000)
    index = Index.build(tmp_path / "index", rows(texts), model)
    assert index.setting is not None
    narrow = asdict(replace(index.setting, nprobes=1))
    index._dataset.update_schema_metadata({ann.ANN_KEY: json.dumps(narrow)})
    one = {"column": "vector", "q": model.embed(texts[7:8])[0], "k": 1000, "nprobes": 1}
    nearest = index._dataset.scanner(columns=["id"], nearest=one).to_table().column("id")
    assert 10 < len(nearest) < 500
    # As a writer leaves it that is killed before it adapts the ANN index.
    ids = ", ".join(f"'{id_}'" for id_ in nearest.to_pylist()[3:])
    index._dataset.delete(f"id in ({ids})")
    index.refresh()
    assert len(index.search(texts[7], top=10)[0]) == 10


@pytest.mark.parametrize(("width", "kind"), [(24, "IVF_RQ"), (20, "IVF_SQ")])
def test_vectors_of_any_width_are_searched_by_ann(
    large: None, tmp_path: Path, width: int, kind: str
) -> None:
    rng = np.random.default_rng(0)
    vectors = unit(rng.normal(size=(2000, width)).astype(np.float32))
    identity = Identity("random", "0", width, "truncate")
    texts = pa.array([str(place) for place in range(len(vectors))])
    schema = vectors_schema(pa.schema({"id": pa.string(), "text": pa.string()}), identity)
    batch = pa.RecordBatch.from_arrays([texts, texts, vector_array(vectors)], schema=schema)
    write_index(str(tmp_path / "index"), [batch], schema)
    index = Index.open(tmp_path / "index")
    index.optimise()
    assert kinds(index) == (kind, kind)
    queries = unit(rng.normal(size=(50, width)).astype(np.float32))
    shares = [
        len({int(hit.id) for hit in hits} & set(np.argsort(-(vectors @ query))[:10].tolist())) / 10
        for query, hits in zip(queries, index.nearest(queries, top=10), strict=True)
    ]
    assert np.mean(shares) >= 0.9


def test_a_damaged_ann_index_is_named(
    large: None, tmp_path: Path, rows: Rows, model: Model
) -> None:
    index = Index.build(tmp_path / "index", rows(sentences(500)), model)
    files = list((tmp_path / "index" / "_indices").rglob("*.idx"))
    assert files
    for file in files:
        whole = file.read_bytes()
        for broken in (whole[: len(whole) // 2], b""):
            file.write_bytes(broken)
            with pytest.raises(TercetError, match=str(tmp_path / "index")) as error:
                Index.open(tmp_path / "index", model).search("film")
            assert "\n" not in str(error.value)
        file.write_bytes(whole)
    assert Index.open(index.folder, model).search("film")[0]


def kinds(index: Index) -> tuple[str, str]:
    """The kind of the ANN index by its setting, and by Lance."""
    assert index.setting is not None
    (stored,) = index._dataset.describe_indices()
    return index.setting.kind, stored.index_type


def recall(index: Index, model: Model, texts: list[str] | dict[int, str]) -> float:
    """Recall of the true nearest ten of some of the texts, by place."""
    left = texts if isinstance(texts, dict) else dict(enumerate(texts))
    vectors = model.embed(list(left.values()))
    queries = list(left.values())[::20]
    shares = []
    for query, hits in zip(model.embed(queries), index.search(queries, top=10), strict=True):
        scores = dict(zip(left, (vectors @ query).tolist(), strict=True))
        least = sorted(scores.values())[-10] - 1e-5
        shares.append(np.mean([scores[int(hit.id[1:])] >= least for hit in hits]))
    return float(np.mean(shares))


def test_the_narrowest_search_that_finds_enough_is_chosen(
    large: None, tmp_path: Path, rows: Rows, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recall(*given: Any) -> tuple[float, float]:
        return (0.98, 0.01) if given[-1].nprobes >= 10 else (0.96, 0.01)

    monkeypatch.setattr(ann, "_recall", recall)
    setting = Index.build(tmp_path / "index", rows(TEXTS), model).setting
    assert setting is not None
    assert (setting.parts, setting.nprobes, setting.recall) == (17, 10, 0.98)


def test_an_ann_index_that_misses_too_much_is_not_used(
    large: None, tmp_path: Path, rows: Rows, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ann, "_recall", lambda *_: (0.96, 0.01))
    index = Index.build(tmp_path / "index", rows(TEXTS), model)
    assert index.setting is None
    assert index.search(TEXTS[7], top=1)[0][0].id == "r7"


def test_without_the_lance_files_nothing_opens(built: Index, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "index" / "_versions")
    with pytest.raises(TercetError, match="is not an index"):
        Index.open(tmp_path / "index")


def test_an_index_of_sentences_in_memory(tmp_path: Path, model: Model) -> None:
    import pandas as pd

    texts = sentences(12)
    for place, given in enumerate((texts, tuple(texts), pd.Series(texts), np.array(texts))):
        built = Index.build(tmp_path / f"{place}.index", given, model)
        (hits,) = built.search(texts[5], top=1)
        assert (hits[0].id, hits[0].text, built.count()) == ("6", texts[5], 12)
    with pytest.raises(TercetError, match="already in the index"):
        built.add(["one more"])
    assert built.update(["one more"]) == 1
    assert built.search("one more", top=1)[0][0].id == "1"


def test_an_index_of_a_table_in_memory(tmp_path: Path, model: Model) -> None:
    import pandas as pd
    import pyarrow as pa

    texts = sentences(8)
    rows = [{"key": f"k{n}", "title": text, "price": n} for n, text in enumerate(texts)]
    frame = pd.DataFrame(rows)
    shuffled = frame[frame["price"] >= 0].set_index(pd.Index(range(8, 0, -1)))
    for place, table in enumerate((rows, frame, shuffled, pa.Table.from_pylist(rows))):
        built = Index.build(
            tmp_path / f"{place}.index", table, model, column="title", id_column="key"
        )
        assert built.columns == ["price"]
        (hits,) = built.search(texts[3], top=2, where="price < 4")
        assert (hits[0].id, hits[0].columns) == ("k3", {"price": 3})
    added = pd.DataFrame({"key": ["new"], "title": ["a new one"], "price": [100]})
    assert built.add(added, column="title", id_column="key") == 1
    added["title"] = ["quite another"]
    assert built.update(added, column="title", id_column="key") == 1
    assert built.search("quite another", top=1)[0][0].id == "new"
    assert built.count() == 9


def test_a_file_by_its_path(tmp_path: Path, rows: Rows, model: Model) -> None:
    file = rows(sentences(5)).path
    assert Index.build(tmp_path / "index", str(file), model).count() == 5


@pytest.mark.parametrize(
    ("texts", "columns", "message"),
    [
        ([], {}, "table: contains no rows"),
        (None, {}, "a list of sentences, not None"),
        (["a", None], {}, "position 1 is missing"),
        ([{"a": "x", "b": "y"}], {}, "cannot tell which of the columns `a`, `b` is the text"),
        ([{"text": "x"}], {"column": "texts"}, "did you mean `text`"),
        ([{"id": 1, "text": "x"}, {"id": 1, "text": "y"}], {}, "row 2: id '1' is already on row 1"),
        ([{"id": None, "text": "x"}], {}, "row 1: no id in column `id`"),
        ([{"text": "x", "vector": "y"}], {}, "column name 'vector' is reserved"),
        ("no-such-file.csv", {}, "no-such-file.csv: no such file"),
    ],
)
def test_mistakes_in_tables_are_named(
    tmp_path: Path, model: Model, texts: object, columns: dict[str, str], message: str
) -> None:
    with pytest.raises(TercetError, match=message):
        Index.build(tmp_path / "index", texts, model, **columns)


def test_a_table_is_read_in_parts_and_known_again() -> None:
    from tercet.data.text_table import TextTable

    texts = sentences(40)
    table = TextTable.open(texts)
    assert table.digest == TextTable.open(tuple(texts)).digest
    assert table.digest == TextTable.open(pa.chunked_array([texts[:7], texts[7:]])).digest
    assert table.digest != TextTable.open(texts[::-1]).digest
    assert [len(batch) for batch in table.batches(16, start=16)] == [16, 8]
    rest = pa.Table.from_batches(table.batches(16, start=16))
    assert rest.column("text").to_pylist() == texts[16:]
    assert rest.column("id").to_pylist() == [str(row) for row in range(17, 41)]


@pytest.mark.parametrize("value", [1e36, np.nan, np.inf, 3.0])
def test_a_vector_with_flipped_bits_is_named(built: Index, model: Model, value: float) -> None:
    stored = built._dataset.take([7], columns=["vector"]).column("vector").combine_chunks()
    vector = vectors_of(stored)[0]
    file = next(
        path
        for path in Path(built.folder).rglob("*.lance")
        if vector.tobytes()[:64] in path.read_bytes()
    )
    spoilt = vector.copy()
    spoilt[5] = value
    file.write_bytes(file.read_bytes().replace(vector.tobytes()[:64], spoilt.tobytes()[:64]))
    with pytest.raises(TercetError, match="a vector is not of length 1"):
        Index.open(built.folder, model).search("dull")


def test_more_rows_than_there_are_take_no_memory(built: Index) -> None:
    assert len(built.search("dull", top=10**12)[0]) == built.count()
    assert built.search("dull", top=10**12, where="id = 'nobody'") == [[]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((ann.ANN_KEY, value) for value in ("{", "[]", "3", "[" * 10**5, '{"kind": "IVF_SQ"}')),
        *((FORMAT_KEY, value) for value in ("", "x", "9" * 5000, "-1")),
        *((LAYERS_KEY, value) for value in ("", "x", "9" * 5000, "[]")),
    ],
)
def test_damaged_metadata_is_named(built: Index, model: Model, key: str, value: str) -> None:
    built._dataset.update_schema_metadata({key: value})
    with pytest.raises(TercetError, match=f"metadata `{key}` is damaged"):
        Index.open(built.folder, model).search("dull")


@pytest.mark.parametrize("key", [FORMAT_KEY, NAME_KEY, HASH_KEY])
def test_missing_metadata_is_named(built: Index, model: Model, key: str) -> None:
    kept = {k: v for k, v in metadata_of(built._dataset).items() if k != key}
    built._dataset.update_schema_metadata(kept, replace=True)
    with pytest.raises(TercetError, match="not an index built by Tercet"):
        Index.open(built.folder)


def test_the_format_of_a_later_release_is_named(built: Index) -> None:
    built._dataset.update_schema_metadata({FORMAT_KEY: "999999999"})
    with pytest.raises(TercetError, match=r"has format 999999999, .*upgrade Tercet"):
        Index.open(built.folder)


ROUNDS = int(os.environ.get("TERCET_ROUNDS", "8"))


def test_two_writers_and_a_reader_lose_and_double_nothing(
    tmp_path: Path, model: Model, rows: Rows
) -> None:
    """Each round both add an id of their own and try the same new one, and one updates a row."""
    Index.build(tmp_path / "index", csv_of(tmp_path / "start.csv", {"shared": "start"}), model)
    added: dict[str, list[str]] = {"a": [], "b": []}
    faults: list[BaseException] = []
    ended = threading.Event()

    def write(name: str) -> None:
        index = Index.open(tmp_path / "index", model)
        for round_ in range(ROUNDS):
            own = csv_of(tmp_path / f"{name}{round_}.csv", {f"{name}{round_}": f"{name} {round_}"})
            assert index.update(own) == 1
            both = csv_of(tmp_path / f"{name}{round_}both.csv", {f"both{round_}": f"by {name}"})
            with suppress(TercetError):
                index.add(both)
                added[name].append(f"both{round_}")
            index.update(csv_of(tmp_path / f"{name}-.csv", {"shared": f"{name} {round_}"}))

    def read() -> None:
        while not ended.is_set():
            ids = ids_of(Index.open(tmp_path / "index", model))
            assert len(ids) == len(set(ids))

    def guarded(work: Callable[..., None], *arguments: str) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 (it belongs to the test's own thread)
            faults.append(error)

    reader = threading.Thread(target=guarded, args=(read,))
    writers = [threading.Thread(target=guarded, args=(write, name)) for name in added]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    reader.join()
    assert faults == []
    assert sorted(added["a"] + added["b"]) == sorted(f"both{n}" for n in range(ROUNDS))
    wanted = {f"{name}{n}" for name in ("a", "b", "both") for n in range(ROUNDS)} | {"shared"}
    assert sorted(ids_of(Index.open(tmp_path / "index", model))) == sorted(wanted)
    assert not (tmp_path / "index.work").exists()
    assert not (tmp_path / ".index.lock").exists()


def csv_of(path: Path, texts: dict[str, str]) -> TextFile:
    lines = [f"{id_},{text}\n" for id_, text in texts.items()]
    path.write_text("id,text\n" + "".join(lines), "utf-8")
    return TextFile.open(path, id_column="id")


def ids_of(index: Index) -> list[str]:
    found: list[str] = index._dataset.scanner(columns=["id"]).to_table().column("id").to_pylist()
    return found


def test_files_of_a_user_beside_an_index_are_never_removed(
    tmp_path: Path, rows: Rows, model: Model
) -> None:
    thesis = tmp_path / "index.work" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("mine", "utf-8")
    index = Index.build(tmp_path / "index", rows(TEXTS[:5]), model)
    index.update(rows(TEXTS[:3]))
    assert [path.name for path in thesis.parent.iterdir()] == ["thesis.txt"]
    out = tmp_path / "vectors.parquet"
    kept = tmp_path / "vectors.parquet.work" / "embed" / "thesis.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine", "utf-8")
    (tmp_path / "a.txt").write_text("dull\n", "utf-8")
    with pytest.raises(TercetError, match="holds other files"):
        embed_file(str(tmp_path / "a.txt"), str(out), model=model)
    assert kept.read_text("utf-8") == "mine"


def test_an_index_causes_no_download(
    built: Index, model: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(weights, "_hub_commit", asked.append)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    built._dataset.update_schema_metadata({NAME_KEY: "somebody/elses-model"})
    index = Index.open(built.folder)
    with pytest.raises(TercetError, match=r"somebody/elses-model, which is not on this machine"):
        index.search("dull")
    assert asked == []
    index.model = model
    assert index.search("dull")[0]
    model.save(tmp_path / "here")
    monkeypatch.setattr(weights, "downloaded", lambda name: tmp_path / "here")
    assert Index.open(built.folder).search("dull")[0]
    assert asked == []
