from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from tercet.cli.app import main
from tercet.data.examples import read_texts
from tercet.data.stream import TextFile
from tercet.data.table_files import write_table
from tercet.errors import TercetError
from tercet.model import Model, load
from tercet.search.mine import mine
from tercet.search.rerank import SAME, Cross

TEXTS = [f"{one} {two} film number {n % 7}" for n in range(6) for one in "abc" for two in "xyz"]


def write(folder: Path, texts: list[str]) -> TextFile:
    path = folder / "texts.txt"
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return TextFile.open(path)


def rows_of(mined) -> list[dict[str, object]]:
    rows = [row for batch in mined.batches() for row in batch.to_pylist()]
    assert len(rows) == mined.count
    assert all(batch.schema.names == mined.schema.names for batch in mined.batches())
    return rows


def brute_force(model: Model, texts: list[str]) -> list[tuple[float, int, int]]:
    """All pairs of texts by their numbers from 1, the best first."""
    vectors = model.embed(texts).astype(np.float64)
    first, second = np.triu_indices(len(texts), 1)
    scores = (vectors @ vectors.T)[first, second].astype(np.float32)
    order = np.lexsort((second, first, -scores))[: 20 * len(texts)]
    return [(float(scores[n]), int(first[n]) + 1, int(second[n]) + 1) for n in order]


def as_pairs(rows: list[dict[str, object]]) -> list[tuple[object, int, int]]:
    return [(row["score"], int(str(row["first_id"])), int(str(row["second_id"]))) for row in rows]


def check_equals_brute_force(model: Model, texts: list[str], folder: Path) -> None:
    file = write(folder, texts)
    wanted = brute_force(model, texts)
    count = 5 * len(texts)
    assert as_pairs(rows_of(mine(file, model, folder / "work", top=count))) == wanted[:count]
    threshold = wanted[count // 2][0]
    found = as_pairs(rows_of(mine(file, model, folder / "work", threshold=threshold)))
    assert found == sorted((p for p in wanted if p[0] >= threshold), key=lambda p: p[1:])


def test_pairs_equal_brute_force(model: Model, tmp_path: Path) -> None:
    check_equals_brute_force(model, TEXTS, tmp_path)


@pytest.mark.skipif(os.environ.get("TERCET_WHOLE") != "1", reason="embeds 5,000 real questions")
def test_pairs_of_5000_questions_equal_brute_force(
    minilm: Path, real_data: Path, tmp_path: Path
) -> None:
    (texts,) = read_texts(real_data / "cs224n" / "quora-dev.csv", ["sentence1"])
    texts = [" ".join(text.split()) for text in texts[:5000]]
    check_equals_brute_force(load(minilm, device="cpu"), texts, tmp_path)


def test_rerank_orders_the_closest_by_the_cross_mode(model: Model, tmp_path: Path) -> None:
    file = write(tmp_path, TEXTS)
    plain = rows_of(mine(file, model, tmp_path / "work", top=20))
    judged = rows_of(mine(file, model, tmp_path / "work", top=20, rerank=True))
    key = ("first_id", "second_id", "score")
    assert {tuple(row[k] for k in key) for row in plain} == {
        tuple(row[k] for k in key) for row in judged
    }
    said = model.paraphrase([(str(row["first"]), str(row["second"])) for row in judged], "cross")
    assert [row["cross"] for row in judged] == pytest.approx(said.tolist(), abs=1e-6)
    assert [row["cross"] for row in judged] == sorted((r["cross"] for r in judged), reverse=True)


def test_a_terminal_reranks_no_more_than_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[int] = []

    def scores(cross: Cross, pairs: list[tuple[str, str]]) -> np.ndarray:
        scored.append(len(pairs))
        return np.zeros(len(pairs), np.float32)

    path = write(tmp_path, TEXTS).path
    monkeypatch.setattr(Cross, "scores", scores)
    monkeypatch.setattr("tercet.search.mine.SHOWN", 40)
    monkeypatch.setattr("tercet.cli.mine.RESULTS", Console(force_terminal=True))
    line = ["tercet", "mine", str(path), "--threshold", "-1", "--rerank"]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit, match="0"):
        main()
    assert scored == [40, 40]  # for fifty of 1,431


def test_groups_are_held_together_by_what_the_cross_mode_takes_for_the_same(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, ["one film", "two films", "one film", "two films", "red"])

    def scores(self: Cross, pairs) -> np.ndarray:
        return np.array([SAME if one == two == "one film" else 0.49 for one, two in pairs])

    monkeypatch.setattr(Cross, "scores", scores)
    plain = rows_of(mine(file, model, tmp_path / "work", threshold=0.99999, groups=True))
    assert [(row["group"], row["id"]) for row in plain] == [(1, "1"), (1, "3"), (2, "2"), (2, "4")]
    judged = mine(file, model, tmp_path / "work", threshold=0.99999, groups=True, rerank=True)
    assert [(row["group"], row["id"]) for row in rows_of(judged)] == [(1, "1"), (1, "3")]


def test_nothing_is_near_enough(model: Model, tmp_path: Path) -> None:
    file = write(tmp_path, ["one film", "red"])
    assert rows_of(mine(file, model, tmp_path / "work", threshold=1.0)) == []
    assert rows_of(mine(file, model, tmp_path / "work", threshold=1.0, groups=True)) == []
    assert rows_of(mine(file, model, tmp_path / "work", top=3, threshold=1.0, rerank=True)) == []


def test_one_text_makes_no_pair(model: Model, tmp_path: Path) -> None:
    with pytest.raises(TercetError, match="a pair needs two texts"):
        mine(write(tmp_path, ["alone"]), model, tmp_path / "work")


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_no_spreadsheet_runs_what_is_written(tmp_path: Path, suffix: str) -> None:
    texts = ["=1+1", "@cmd", "+3", "plain", None]
    table = pa.record_batch({"text": pa.array(texts), "score": pa.array([-0.5] * 5)})
    write_table(tmp_path / f"a{suffix}", table.schema, [table])
    lines = (tmp_path / f"a{suffix}").read_text("utf-8").splitlines()
    assert [line[0] for line in lines[1:4]] != ["=", "@", "+"]
    assert "'=1+1" in lines[1]
    assert "-0.5" in lines[4]
