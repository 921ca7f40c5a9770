"""What `tercet data overlap` counts, how long it takes, and how large and exact a sketch is.

    python benchmarks/overlap.py counts   the public files: quora-dev, sst-dev, sts-dev and SICK
    python benchmarks/overlap.py speed    1,000,000 training rows against 100,000 evaluation rows
    python benchmarks/overlap.py sketch   the sketch of 1,100,000 training rows

Data is TERCET_DATA. For speed and sketch, rows are pairs of its unlabelled sentences: each with one
some lines further on, for several distances, half of them labelled as duplicates. Of the evaluation
rows a tenth are training rows as they are, two fifths are training rows in capitals with a final
full stop, and half are pairs at other distances, which are in no training row. The command runs in
a process of its own, so that its memory is measured separately; the median of three runs counts.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from real_data import real_data, real_file
from records import record

from tercet.data.examples import read_texts
from tercet.data.files import find_file
from tercet.data.senteval import read_sts
from tercet.data.sketch import SketchBuilder
from tercet.folders.seen_file import SEEN_FILE, write_seen

TRAIN, SCORED, SKETCHED, ASKED, RUNS = 1_000_000, 100_000, 1_100_000, 400_000, 3
PACKAGES = ("numpy", "scipy", "pyarrow")
Pair = tuple[str, str]


def counts() -> None:
    """Rows of public evaluation sets that public training files contain or imply."""
    quora = ["quora-train.csv", "quora-positives.csv"]
    with tempfile.TemporaryDirectory() as work:
        sick = read_sts("SICK-R", real_data())
        copy = Path(work) / "SICK-R.tsv"
        write(copy, zip(sick.first, sick.second, sick.grades, strict=True))
        tested = [
            (quora, real_file("quora-dev.csv")),
            (quora[:1], real_file("quora-dev.csv")),
            (["ids-sst-train.csv"], real_file("ids-sst-dev.csv")),
            (["sts-train.csv"], real_file("sts-dev.csv")),
            (["sts-train.csv", "sts-dev.csv"], copy),
        ]
        rows = [line for train, scored in tested for line in counted(train, scored)]
    record("counts", columns=["training files", "set", "found", "rows", "of"], rows=rows)


def counted(train: Sequence[str], scored: Path) -> Iterator[list[str]]:
    (found,) = run([*map(real_file, train), scored])["report"]["files"]
    ways = {"exact": found["exact"], "folded": found["folded"], "both texts": found["texts"]}
    for way, seen in ways.items():
        if seen is not None:
            yield [", ".join(train), scored.name, way, f"{seen['count']:,}", f"{found['rows']:,}"]
    for label, seen in (found["implied"] or {}).items():
        if (of := found["labels"].get(label)) and label in ("0.0", "1.0"):
            way = f"implied, label {label[0]}"
            yield [", ".join(train), scored.name, way, f"{seen['count']:,}", f"{of:,}"]


def speed() -> None:
    """Time and memory of the command, and that it finds what was put there."""
    sentences = unlabelled()
    known, others = SCORED // 10, SCORED // 2
    with tempfile.TemporaryDirectory() as work:
        train, scored = Path(work) / "train.tsv", Path(work) / "scored.tsv"
        write(train, labelled(pairs(sentences, TRAIN)))
        step = TRAIN // (SCORED - others)
        some = list(islice(pairs(sentences, TRAIN), 0, None, step))
        written = [*some[:known], *((f"{a.upper()}.", f"{b.upper()}.") for a, b in some[known:])]
        write(scored, labelled([*written, *unseen_pairs(sentences, others)]))
        runs = [run([train, scored]) for _ in range(RUNS)]
        size = train.stat().st_size
    (found,) = runs[0]["report"]["files"]
    rows = [
        ["training rows", f"{runs[0]['report']['train_rows']:,}"],
        ["evaluation rows", f"{found['rows']:,}"],
        ["found exactly", f"{found['exact']['count']:,}"],
        ["found folded", f"{found['folded']['count']:,}"],
        ["seconds, each run", ", ".join(f"{each['seconds']:.1f}" for each in runs)],
        ["peak memory, MB, each run", ", ".join(f"{each['mb']:.0f}" for each in runs)],
    ]
    values = {
        "seconds": f"{statistics.median(each['seconds'] for each in runs):.0f}",
        "megabytes": f"{statistics.median(each['mb'] for each in runs):.0f}",
        "training file": f"{size / 1e6:.0f} MB",
    }
    record("speed", columns=["what", "value"], rows=rows, values=values, packages=PACKAGES)


def sketch() -> None:
    """Size, time and false alarms of a sketch of real sentences."""
    sentences = unlabelled()
    rows = list(pairs(sentences, SKETCHED))
    begin = time.perf_counter()
    builder = SketchBuilder()
    builder.add_rows(columns_of(rows))
    builder.add_duplicates(*columns_of(rows[::2]))
    built = builder.finish()
    seconds = time.perf_counter() - begin
    others = columns_of(unseen_pairs(sentences, ASKED))
    begin = time.perf_counter()
    alarms = built.seen(others)
    asked = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as work:
        write_seen(Path(work), built)
        size = (Path(work) / SEEN_FILE).stat().st_size
    assert built.seen(columns_of(rows)).all()
    lines = [
        ["rows", f"{len(rows):,}"],
        ["known duplicates", f"{len(rows[::2]):,}"],
        ["file, MB", f"{size / 1e6:.2f}"],
        ["rows asked that it does not have", f"{len(alarms):,}"],
        ["of them taken for its own", f"{int(alarms.sum()):,}"],
        ["seconds to build", f"{seconds:.1f}"],
        ["seconds to ask", f"{asked:.1f}"],
    ]
    values = {
        "megabytes": f"{size / 1e6:.1f}",
        "rows only": f"{rows_size(rows) / 1e6:.1f}",
        "false alarms": f"{alarms.mean():.3%}",
    }
    record("sketch", columns=["what", "value"], rows=lines, values=values, packages=PACKAGES)


def rows_size(rows: Sequence[Pair]) -> int:
    """Bytes of a sketch of the same rows without known duplicates."""
    builder = SketchBuilder()
    builder.add_rows(columns_of(rows))
    with tempfile.TemporaryDirectory() as work:
        write_seen(Path(work), builder.finish())
        return (Path(work) / SEEN_FILE).stat().st_size


def unlabelled() -> list[str]:
    (texts,) = read_texts(find_file(real_data() / "unlabelled/sentences.txt"))
    return list(dict.fromkeys(text.replace("\t", " ") for text in texts if text))


def pairs(sentences: Sequence[str], number: int) -> Iterator[Pair]:
    """Different pairs: each sentence with the one 1, then 3, then 5 lines on, and so forth."""
    return islice(_at_distances(sentences, count(1, 2)), number)


def unseen_pairs(sentences: Sequence[str], number: int) -> Iterator[Pair]:
    """Pairs at even distances, which are none of `pairs`."""
    return islice(_at_distances(sentences, count(2, 2)), number)


def _at_distances(sentences: Sequence[str], distances: Iterator[int]) -> Iterator[Pair]:
    for distance in distances:
        yield from zip(sentences, sentences[distance:], strict=False)


def labelled(rows: Iterator[Pair] | Sequence[Pair]) -> Iterator[tuple[str, str, int]]:
    return ((first, second, place % 2) for place, (first, second) in enumerate(rows))


def columns_of(rows: Iterator[Pair] | Sequence[Pair]) -> list[tuple[str, ...]]:
    return list(zip(*rows, strict=True))


def write(path: Path, rows: Iterator[tuple[Any, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter="\t")
        lines.writerow(["sentence1", "sentence2", "label"])
        lines.writerows(rows)


def run(files: Sequence[Path]) -> dict[str, Any]:
    """The report of the command, its time and its own peak memory."""
    command = [sys.executable, __file__, "alone", *map(str, files)]
    begin = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    (peak,) = (line for line in done.stderr.splitlines() if line.startswith("VmHWM"))
    return {
        "report": json.loads(done.stdout),
        "seconds": seconds,
        "mb": int(peak.split()[1]) * 1024 / 1e6,
    }


def alone(*files: str) -> None:
    """The command, and then what memory its process needed at most, on stderr."""
    from tercet.cli.app import app

    app(["data", "overlap", *files, "--json"], standalone_mode=False)
    print(Path("/proc/self/status").read_text(), file=sys.stderr)


if __name__ == "__main__":
    {"counts": counts, "speed": speed, "sketch": sketch, "alone": alone}[sys.argv[1]](*sys.argv[2:])
