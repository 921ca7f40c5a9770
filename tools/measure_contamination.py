"""Count the evaluation rows that training files contain, into results/contamination.json.

python tools/measure_contamination.py DATA

Texts are compared by letters and digits alone. A sentence counts as seen if it is a text of any
training row, a pair if the pair is a training row, in either order; pairs of quora-dev that known
duplicates imply are counted apart. Pairs that training makes of these texts, and texts of the
encoders' own training, are not known here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from tercet.data.examples import read_examples
from tercet.data.folding import fold
from tercet.data.overlap import find_overlap
from tercet.data.senteval import STS_SETS, FoldedTask, SplitTask, read_folded, read_split, read_sts
from tercet.files import write_json
from tercet.recipe import Recipe
from tercet.training.environment import commit

RECIPE = "tercet/small"
OUT = Path(__file__).resolve().parents[1] / "results" / "contamination.json"
Row = tuple[str, ...]


def main() -> None:
    data = Path(sys.argv[1])
    texts: set[str] = set()
    rows: set[Row] = set()
    for task in Recipe.load(RECIPE).tasks.values():
        for row in zip(*read_examples(task, "train", data).texts, strict=True):
            folded = tuple(sorted(map(fold, row)))
            texts.update(folded)
            rows.add(folded)
    sets = {}
    for name, columns in evaluation_sets(data):
        every = [tuple(sorted(map(fold, row))) for row in zip(*columns, strict=True)]
        known = rows if len(columns) == 2 else {(text,) for text in texts}
        seen = sum(row in known for row in every)
        sets[name] = {"rows": len(every), "seen": seen}
        print(name, sets[name])
    course = data / "cs224n"
    quora = [course / "quora-train.csv", course / "quora-positives.csv"]
    (dev,) = find_overlap(quora, [course / "quora-dev.csv"]).files
    (alone,) = find_overlap(quora[:1], [course / "quora-dev.csv"]).files
    assert dev.implied is not None
    assert alone.implied is not None
    implied = {
        f"label {label}": {
            "rows": dev.labels[f"{label}.0"],
            "implied": dev.implied[f"{label}.0"].count,
            "implied by quora-train alone": alone.implied[f"{label}.0"].count,
        }
        for label in (1, 0)
    }
    command = "python tools/measure_contamination.py DATA"
    made_with = {"command": command, "commit": commit(), "recipe": RECIPE}
    write_json(OUT, {"made_with": made_with, "sets": sets, "quora-dev": implied})


def evaluation_sets(data: Path) -> Iterator[tuple[str, Sequence[Sequence[str]]]]:
    """Names and columns of texts."""
    tasks = Recipe.load(RECIPE).tasks
    for name in ("sentiment", "paraphrase", "similarity"):
        yield f"{name}, dev", read_examples(tasks[name], "dev", data).texts
    for sts in STS_SETS:
        pairs = read_sts(sts, data)
        yield sts, (pairs.first, pairs.second)
    for folded in get_args(FoldedTask):
        yield folded, read_folded(folded, data).texts
    for split in get_args(SplitTask):
        yield f"{split}, test", read_split(split, "test", data).texts


if __name__ == "__main__":
    main()
