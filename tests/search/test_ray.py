"""A cluster of three machines, all of them here: what dies is done again, and nothing twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow.parquet as pq
import pytest

from tercet.embed import ray_corpus
from tercet.embed.local import embed_file
from tercet.embed.ray_engine import embed_with_ray
from tercet.errors import TercetError
from tercet.model import load
from tercet.search.ray_index import index_with_ray

ROWS = {"a.csv": 700, "b.jsonl": 500}
PART = 50


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that does no work, and a node with one processor; a test adds another."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of rows that have ids of their own, in two forms."""
    folder = tmp_path_factory.mktemp("corpus")
    texts = [f"a quiet film number {number}" for number in range(sum(ROWS.values()))]
    texts[3] = ""
    rows = [{"id": f"r{n}", "text": text, "price": n % 7} for n, text in enumerate(texts)]
    first = rows[: ROWS["a.csv"]]
    lines = [f"{row['id']},{row['text']},{row['price']}\n" for row in first]
    (folder / "a.csv").write_text("id,text,price\n" + "".join(lines))
    (folder / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[len(first) :]))
    return folder


@pytest.fixture(scope="module")
def expected(corpus: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the local engine makes of the files."""
    model = load(tiny_encoder)
    out = tmp_path_factory.mktemp("expected")
    found = []
    for name in ROWS:
        path = out / f"{name}.parquet"
        embed_file(str(corpus / name), str(path), model=model)
        found += pq.read_table(path).to_pylist()
    return found


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_corpus, "SMALLEST", PART)


def compare(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Each row once, in order, with all its columns; vectors to 1e-5."""
    ours = np.array([row.pop("vector") for row in (dict(one) for one in found)])
    theirs = np.array([row["vector"] for row in expected])
    names = [name for name in expected[0] if name != "vector"]
    assert [[row[name] for name in names] for row in found] == [
        [row[name] for name in names] for row in expected
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_driver_and_a_node_that_die_cost_nothing(
    cluster: Any, corpus: Path, expected: Any, tiny_encoder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "vectors.parquet"
    work = tmp_path / "vectors.parquet.work" / "ray"
    arguments: dict[str, Any] = {
        "source": f"file://{corpus}",
        "out": str(out),
        "model": str(tiny_encoder),
        "column": "text",
        "address": cluster.address,
    }
    kill_driver(arguments, work, parts=4)
    assert not out.exists()
    records = {path: path.stat().st_mtime_ns for path in sorted(work.glob("0*.json"))}
    damaged, *whole = records
    (work / next(iter(json.loads(damaged.read_text())["files"]))).write_bytes(b"PAR1 no more")

    node = cluster.add_node(num_cpus=1)
    result: list[int] = []
    said: list[str] = []
    at_end: dict[Path, int] = {}

    def progress(done: int, total: int) -> None:
        result.append(done)
        if total // 2 <= done < total and node in cluster.worker_nodes:
            cluster.remove_node(node, allow_graceful=False)
        if done == total:
            at_end.update({path: path.stat().st_mtime_ns for path in records})

    rows = embed_with_ray(**arguments, progress=progress, log=said.append)
    assert rows == sum(ROWS.values())
    assert node not in cluster.worker_nodes
    assert [path for path in records if at_end[path] != records[path]] == [damaged]
    assert said[0].startswith(f"Part {int(damaged.stem)} ")
    assert "is damaged" in said[0]
    assert said[1] == f"{len(whole)} of 24 parts are already embedded."
    assert result[0] == PART * len(whole)
    assert result[-1] == rows
    compare(pq.read_table(out).to_pylist(), expected)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def kill_driver(arguments: dict[str, Any], work: Path, *, parts: int) -> None:
    """Begin to embed in another process, and kill it when so many parts are finished."""
    program = (
        "from tercet.embed import ray_corpus\n"
        f"ray_corpus.SMALLEST = {PART}\n"
        "from tercet.embed.ray_engine import embed_with_ray\n"
        f"embed_with_ray(**{arguments!r}, log=print)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while len(list(work.glob("0*.json"))) < parts:
        assert driver.poll() is None
        time.sleep(0.01)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    time.sleep(1.0)  # its processes on the nodes end a little later than it does


def test_an_index_is_committed_once(
    cluster: Any,
    corpus: Path,
    expected: Any,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "index"
    arguments: dict[str, Any] = {
        "model": str(tiny_encoder),
        "column": None,
        "id_column": "id",
        "address": cluster.address,
        "log": print,
    }
    monkeypatch.setattr(ray_corpus, "SMALLEST", 600)
    skipped = index_with_ray(str(corpus), str(folder), **arguments)
    dataset = lance.dataset(str(folder))
    assert skipped == 1
    assert len(dataset.versions()) == 1
    compare(dataset.to_table().to_pylist(), [row for row in expected if row["text"]])
    assert dataset.schema.metadata[b"tercet.model.name"].decode() == str(tiny_encoder)
    twice = tmp_path / "twice"
    shutil.copytree(corpus, twice)
    shutil.copy(corpus / "a.csv", twice / "c.csv")
    with pytest.raises(TercetError, match=r"id 'r\d+' is in a.csv and in c.csv"):
        index_with_ray(str(twice), str(folder), **arguments)
    assert len(lance.dataset(str(folder)).versions()) == 1


@pytest.mark.parametrize(
    ("files", "column", "message"),
    [
        ({"a.csv": "text\na\n", "b.csv": ""}, None, r"b\.csv: is empty\."),
        ({"a.csv": "text\na\n"}, "txt", "no column `txt`"),
        ({"a.csv": "text,n\na,1\n", "b.csv": "text,n\nb,x\n"}, None, "do not match those of"),
        ({"notes.md": "text"}, None, "holds no file of rows"),
    ],
)
def test_a_mistake_on_any_machine_is_one_sentence(
    cluster: Any,
    tiny_encoder: Path,
    tmp_path: Path,
    files: dict[str, str],
    column: str | None,
    message: str,
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    with pytest.raises(TercetError, match=message) as mistake:
        embed_with_ray(
            str(folder),
            str(tmp_path / "out.npy"),
            model=str(tiny_encoder),
            column=column,
            address=cluster.address,
            log=print,
        )
    assert "\n" not in str(mistake.value)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_an_address_that_nobody_answers_is_told(tiny_encoder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(TercetError, match=r"`address` 127\.0\.0\.1:1: no Ray cluster answers"):
        embed_with_ray(
            str(tmp_path / "a.csv"),
            str(tmp_path / "out.npy"),
            model=str(tiny_encoder),
            column=None,
            address="127.0.0.1:1",
            log=print,
        )
