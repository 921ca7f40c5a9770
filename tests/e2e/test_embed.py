"""`tercet embed` as users meet it: talk, mistakes, and a disk that is full."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

ROWS = 300


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [f"a quiet film number {number},{number}\n" for number in range(ROWS)]
    path.write_text("question,price\n" + "".join(lines))
    return path


def test_vectors_go_to_a_file_and_talk_to_stderr(
    here: Any, file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "vectors.parquet"
    ended = here("embed", file, "--out", out, "--model", tiny_encoder, "--column", "question")
    assert (ended.code, ended.out) == (0, ""), ended.err
    assert "rows/s" in ended.err
    assert ended.err.splitlines()[-1] == f"Wrote 300 vectors to {out}."
    table = pq.read_table(out)
    assert table.column("price").to_pylist() == list(range(ROWS))
    vectors = np.stack(table.column("vector").to_numpy())
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv"], "absent.csv: no such file"),
        (["empty.txt"], "empty.txt: is empty."),
        (["blank.csv"], "blank.csv: contains no rows, only a header (`text`)."),
        (["rows.csv", "--column", "answer"], "no column `answer`"),
        (["rows.xlsx"], "unknown kind of file `.xlsx`"),
        (["rows.csv", "--out", "vectors.csv"], "give FILE.parquet or FILE.npy"),
        (["rows.csv", "--address", "head:6379"], "--address needs --engine ray"),
        (["rows.csv", "--engine", "spark"], "'spark' is not one of 'local', 'ray'"),
    ],
)
def test_a_mistake_is_one_sentence(
    here: Any,
    file: Path,
    tiny_encoder: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(file.parent)
    for name, content in {"empty.txt": "", "blank.csv": "text\n", "rows.xlsx": "x"}.items():
        Path(name).write_text(content)
    before = sorted(Path().rglob("*"))
    column = [] if "--column" in arguments else ["--column", "1"]
    out = [] if "--out" in arguments else ["--out", "v.npy"]
    ended = here("embed", *arguments, *out, *column, "--model", tiny_encoder)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert len(ended.err.splitlines()) == 1
    assert message in ended.err
    assert sorted(Path().rglob("*")) == before


def test_a_full_disk_keeps_what_is_done(
    tercet: Any, here: Any, file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """Here a file may grow to some size and no further, which fails as a full disk does."""
    out = tmp_path / "vectors.npy"
    arguments = ["embed", file, "--out", out, "--model", tiny_encoder, "--column", "question"]
    limit = ROWS * 32 * 4 // 2
    ended = tercet.run(
        *arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    assert ended.code == 2
    (result,) = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert "cannot be written" in result
    assert "running it again resumes from there" in result
    assert "Traceback" not in ended.err
    assert not out.exists()
    assert here(*arguments).code == 0
    assert np.load(out).shape == (ROWS, 32)
