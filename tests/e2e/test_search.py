"""mine, index and search from the command line, and what is left of an index after kill -9."""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet
import pytest

from tercet.model import Model, load
from tercet.search.index import Index

WORDS = ("dull", "film", "quiet", "people", "sing", "dance", "cook", "read", "old", "new", "red")
WHOLE = os.environ.get("TERCET_WHOLE") == "1"
KILLS = 10 if WHOLE else 3
SECONDS = 120.0


def texts(count: int, *, salt: str = "number") -> list[str]:
    draw = random.Random(salt)
    return [f"{' '.join(draw.choices(WORDS, k=5))} {salt} {n}" for n in range(count)]


def write_rows(path: Path, rows: list[str], *, first: int = 0) -> Path:
    lines = ["id,text,price"]
    lines += [f"r{first + n},{text},{first + n}" for n, text in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="session")
def encoder(tiny_encoder: Path) -> Model:
    return load(tiny_encoder, device="cpu")


@pytest.fixture
def built(here, tmp_path: Path, tiny_encoder: Path) -> Path:
    file = write_rows(tmp_path / "rows.csv", texts(40))
    ended = here("index", file, "--out", tmp_path / "index", "--model", tiny_encoder)
    assert ended.code == 0, ended.err
    assert "40 rows" in ended.err
    assert ended.out == ""
    return tmp_path / "index"


def test_index_then_search(here, built: Path) -> None:
    wanted = texts(40)
    ended = here("search", built, wanted[3], wanted[9], "--top", "2", "--where", "price < 20")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["rank"] for line in lines] == [1, 2, 1, 2]
    assert (lines[0]["id"], lines[2]["id"]) == ("r3", "r9")
    assert lines[0] == {
        "query": wanted[3],
        "rank": 1,
        "id": "r3",
        "text": wanted[3],
        "score": pytest.approx(1.0, abs=1e-5),
        "columns": {"price": 3},
    }
    assert all(line["columns"]["price"] < 20 for line in lines)


def test_add_update_delete(here, built: Path, tmp_path: Path) -> None:
    more = write_rows(tmp_path / "more.csv", ["entirely new words"], first=40)
    assert here("index", more, "--out", built, "--add").code == 0
    again = here("index", more, "--out", built, "--add")
    assert (again.code, "id 'r40' is already in the index" in again.err) == (2, True)
    changed = write_rows(tmp_path / "changed.csv", ["changed words"], first=40)
    assert "Added or replaced 1 rows" in here("index", changed, "--out", built, "--update").err
    (line,) = here("search", built, "changed words", "--top", "1").out.splitlines()
    assert json.loads(line)["id"] == "r40"
    (tmp_path / "gone.txt").write_text("r40\nr39\nr99\n")
    ended = here("index", tmp_path / "gone.txt", "--out", built, "--delete")
    assert "Deleted 2 rows; 1 of 3 ids were not in the index" in ended.err
    assert Index.open(built).count() == 39
    (tmp_path / "gone.csv").write_text("key,id\nx,r1\ny,r2\n")
    here("index", tmp_path / "gone.csv", "--out", built, "--delete")
    assert Index.open(built).count() == 37


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "INDEX", "film", "--where", "prise < 3"], "Did you mean 'price'"),
        (["search", "INDEX", "film", "--model", "OTHER"], "were made by the model"),
        (["search", "INDEX", "film", "--rerank", "5"], "cannot rerank"),
        (["search", "INDEX", " "], "query is empty"),
        (["search", "INDEX", "film", "--top", "0"], "Invalid value for '--top'"),
        (["search", "no-such", "film"], "is not an index"),
        (["index", "EMPTY", "--out", "INDEX", "--model", "MODEL"], "is empty"),
        (["index", "BLANK", "--out", "INDEX", "--model", "MODEL"], "no row has a text"),
        (["index", "TWICE", "--out", "INDEX", "--model", "MODEL"], "id 'a' is already on line 2"),
        (["index", "TWICE", "--out", "INDEX", "--update"], "id 'a' is already on line 2"),
        (["index", "ROWS", "--out", "INDEX", "--update", "--model", "OTHER"], "made by the model"),
        (["index", "ROWS", "--out", "INDEX", "--add", "--delete"], "one of --add"),
        (["index", "ROWS", "--out", "INDEX", "--address", "x"], "--engine ray"),
        (["mine", "EMPTY", "--model", "MODEL"], "is empty"),
        (["mine", "ROWS", "--model", "MODEL", "--threshold", "7"], "from -1 to 1"),
        (["mine", "ROWS", "--model", "MODEL", "--groups"], "--groups needs --threshold"),
        (["mine", "ROWS", "--model", "MODEL", "--rerank"], "cannot rerank"),
        (["mine", "ROWS", "--model", "MODEL", "--out", "x.doc"], "`.doc`"),
        (["mine", "ROWS", "--model", "MODEL", "--column", "txt"], "did you mean `text`"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_lost(
    here, built: Path, tmp_path: Path, tiny_encoder: Path, tiny_mpnet: Path, arguments, message
) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "blank.csv").write_text("id,text\na,\nb,\n")
    (tmp_path / "twice.csv").write_text("id,text\na,x\na,y\n")
    names = {
        "INDEX": built,
        "MODEL": tiny_encoder,
        "OTHER": tiny_mpnet,
        "EMPTY": tmp_path / "empty.txt",
        "BLANK": tmp_path / "blank.csv",
        "TWICE": tmp_path / "twice.csv",
        "ROWS": tmp_path / "rows.csv",
    }
    before = Index.open(built).version
    ended = here(*(names.get(word, word) for word in arguments))
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    after = Index.open(built)
    assert (after.version, after.count()) == (before, 40)


def test_a_corrupt_fragment_is_one_sentence(here, built: Path) -> None:
    (data,) = (built / "data").iterdir()
    data.write_bytes(data.read_bytes()[:100])
    ended = here("search", built, "film")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert str(built) in ended.err


def limited() -> None:
    """A disk on which no file can grow beyond 64 KB; writing on gives an error, not a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))


def test_a_full_disk_leaves_the_old_version(
    tercet, built: Path, tmp_path: Path, tiny_encoder: Path
) -> None:
    many = write_rows(tmp_path / "many.csv", texts(4000))
    for change in ([], ["--update"]):
        ended = tercet.run(
            *("index", many, "--out", built, "--model", tiny_encoder, *change), preexec_fn=limited
        )
        assert ended.code == 2, ended.err
        assert ended.err.splitlines()[-1].startswith("error: ")
        assert "Traceback" not in ended.err
        assert Index.open(built).count() == 40
    tercet.succeed("index", many, "--out", built, "--model", tiny_encoder)
    assert Index.open(built).count() == 4000


KILLING = """
import os, random, signal, sys, time, traceback
from pathlib import Path
from tercet.data.stream import TextFile
from tercet.model import load
from tercet.search.index import Index

folder, old, new, encoder, change, kills = sys.argv[1:]
model = load(encoder, device="cpu")

def forked(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid

def done(work):
    _, status = os.waitpid(forked(work), 0)
    assert status == 0

def build(file=old):
    Index.build(folder, TextFile.open(file), model)

def changed():
    build(new) if change == "build" else Index.open(folder, model).update(TextFile.open(new))

def checked():
    # Every row is of one version, and its vector is its text's.
    index = Index.open(folder, model)
    hits = index.search("film", top=10_000)[0]
    found = {hit.id: hit.text for hit in hits}
    wanted = {}
    for name in (old, new):
        rows = Path(name).read_text().splitlines()[1:]
        wanted[name] = dict(row.split(",")[:2] for row in rows)
    assert found in wanted.values(), len(found)
    scores = model.embed([hit.text for hit in hits]) @ model.embed(["film"])[0]
    assert abs(scores - [hit.score for hit in hits]).max() < 1e-5
    print("new" if found == wanted[new] else "old", flush=True)

done(build)
begin = time.monotonic()
done(changed)
whole = time.monotonic() - begin
done(checked)
draw = random.Random(change)
for _ in range(int(kills)):
    done(build)
    pid = forked(changed)
    time.sleep(whole * draw.uniform(0.0, 1.1))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    done(checked)
done(changed)
done(checked)
"""


@pytest.mark.parametrize("change", ["build", "update"])
def test_killed_at_any_moment_an_index_is_old_or_new(
    environment: dict[str, str], tmp_path: Path, tiny_encoder: Path, change: str
) -> None:
    old = write_rows(tmp_path / "old.csv", texts(100, salt="old"))
    new = write_rows(tmp_path / "new.csv", texts(1000, salt="new"))
    # Forked from one process that has imported what takes long.
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            KILLING,
            tmp_path / "index",
            old,
            new,
            tiny_encoder,
            change,
            str(KILLS),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert result.returncode == 0, result.stderr
    found = result.stdout.split()
    assert len(found) == KILLS + 2
    assert (found[0], found[-1]) == ("new", "new")
    assert not (tmp_path / "index.work").exists()


def brute_force(encoder: Model, rows: list[str]) -> list[tuple[float, int, int]]:
    vectors = encoder.embed(rows)
    products = vectors @ vectors.T
    pairs = [(-products[i, j], i, j) for i in range(len(rows)) for j in range(i + 1, len(rows))]
    return [(-score, i, j) for score, i, j in sorted(pairs)]


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv", "pairs.jsonl", "pairs.parquet", None])
def test_mine_writes_every_form(here, tmp_path: Path, tiny_encoder: Path, encoder, name) -> None:
    rows = [*texts(30), texts(30)[4]]
    file = write_rows(tmp_path / "rows.csv", rows)
    out = [] if name is None else ["--out", tmp_path / name]
    ended = here("mine", file, "--top", "7", "--model", tiny_encoder, *out)
    assert ended.code == 0, ended.err
    assert "7 pairs of 31 texts" in ended.err
    if name is None:
        found = [json.loads(line) for line in ended.out.splitlines()]
    else:
        assert ended.out == ""
        found = read_table(tmp_path / name)
    assert [set(row) for row in found] == [
        {"score", "first_id", "second_id", "first", "second"}
    ] * 7
    assert (found[0]["first_id"], found[0]["second_id"]) == ("r4", "r30")
    wanted = [score for score, _, _ in brute_force(encoder, rows)[:7]]
    assert [float(row["score"]) for row in found] == pytest.approx(wanted, abs=1e-5)
    for row in found:
        assert rows[int(row["first_id"][1:])] == row["first"]
        assert rows[int(row["second_id"][1:])] == row["second"]
    assert not list(tmp_path.glob("*.work"))


def read_table(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_mine_keeps_a_spreadsheet_from_running_texts(
    here, tmp_path: Path, tiny_encoder: Path
) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("=1+1 film\n=1+1 film\n", "utf-8")
    out = tmp_path / "pairs.csv"
    ended = here("mine", file, "--model", tiny_encoder, "--out", out)
    assert "2 cells begin like a formula" in ended.err
    assert [row["first"] for row in read_table(out)] == ["'=1+1 film"]


def test_pairs_do_not_replace_the_file_that_they_are_of(
    here, tmp_path: Path, tiny_encoder: Path
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text\na dull film\na dull film\n", "utf-8")
    ended = here("mine", file, "--model", tiny_encoder, "--out", file)
    assert (ended.code, "is the file that is read" in ended.err) == (2, True)
    assert file.read_text("utf-8").startswith("text\n")


def test_mine_leaves_files_of_a_user_alone(here, tmp_path: Path, tiny_encoder: Path) -> None:
    (tmp_path / "rows.txt").write_text("a dull film\na dull film\n", "utf-8")
    thesis = tmp_path / "pairs.csv.work" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("mine", "utf-8")
    arguments = ("--model", tiny_encoder, "--out", tmp_path / "pairs.csv")
    ended = here("mine", tmp_path / "rows.txt", *arguments)
    assert thesis.read_text("utf-8") == "mine"
    assert ended.code == 2
    assert "holds other files" in ended.err


def test_mine_above_a_threshold_and_in_groups(here, tmp_path: Path, tiny_encoder: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("a dull film\nold red people\n\na dull film\nquiet dance 7\na dull film\n")
    ended = here("mine", file, "--threshold", "0.999999", "--model", tiny_encoder)
    pairs = [json.loads(line) for line in ended.out.splitlines()]
    assert [(row["first_id"], row["second_id"]) for row in pairs] == [
        ("1", "4"),
        ("1", "6"),
        ("4", "6"),
    ]
    assert "1 rows without text were skipped" in ended.err
    ended = here("mine", file, "--threshold", "0.999999", "--groups", "--model", tiny_encoder)
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert rows == [{"group": 1, "id": row, "text": "a dull film"} for row in ("1", "4", "6")]


@pytest.mark.skipif(not WHOLE, reason="embeds 40,000 texts: TERCET_WHOLE=1 runs it")
def test_interrupted_mining_goes_on(tercet, tmp_path: Path, tiny_encoder: Path) -> None:
    file = write_rows(tmp_path / "rows.csv", texts(20_000))
    arguments = ["mine", file, "--top", "50", "--model", tiny_encoder, "--out"]
    process = tercet.start(*arguments, tmp_path / "a.jsonl")
    first_part = tmp_path / "a.jsonl.work" / "part-000000.arrow"
    while not first_part.exists() and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    assert not (tmp_path / "a.jsonl").exists()
    stamp = first_part.stat().st_mtime_ns
    again = tercet.start(*arguments, tmp_path / "a.jsonl")
    kept = set()
    while again.poll() is None:
        with suppress(FileNotFoundError):
            kept.add(first_part.stat().st_mtime_ns)
        time.sleep(0.02)
    again.communicate()
    assert (again.returncode, kept) == (0, {stamp})
    tercet.succeed(*arguments, tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()
    assert not (tmp_path / "a.jsonl.work").exists()
