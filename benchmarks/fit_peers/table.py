"""results/fit.json and results/fit.md from the results of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from fit_peers.cells import CELLS, DRAWS, Cell
from fit_peers.jobs import KINDS, METHODS, jobs_of

Result = dict[str, Any]
Scores = dict[tuple[Cell, str], float]
"""Points (100 times accuracy or Pearson) of a method on a cell."""

OURS, SIMPLE, PEER = "tercet", "linear", "setfit"
MAIN, OTHER = ("accuracy", "pearson"), ("macro_f1", "spearman")
MARGIN = 0.5
"""Points below the linear model that are not counted against a method."""
NOTES = (
    "Accuracy in %, for STS 100 times Pearson; means over {draws} draws. Bold: the best of a row.",
    "All methods get the same rows and the same all-MiniLM-L6-v2; model2vec gets static vectors "
    "that its own `distill` made from it. Draws and sizes of a data set share one test file of at "
    "most 2,000 rows. None of its texts is in any training file (for SICK, whose pairs are made "
    "from few sentences, none of its pairs).",
    "SetFit: its defaults, but `num_iterations = 20` as in its paper, because by default it takes "
    "all pairs of rows. Its classifier and model2vec's take single texts: on pairs and grades they "
    "cannot be run (-).",
    "The authors of all-MiniLM-L6-v2 trained it on Quora duplicates and NLI pairs among others.",
)


def write(folders: Sequence[Path], results: Path) -> None:
    found = collect(folders)
    text = json.dumps({"summary": summary(found), "jobs": found}, indent=1)
    (results / "fit.json").write_text(text + "\n", encoding="utf-8")
    (results / "fit.md").write_text(render(found), encoding="utf-8")


def collect(folders: Iterable[Path]) -> list[Result]:
    """All results, in order; of the same job on the same device the last one counts."""
    found: dict[tuple[Any, ...], Result] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        result = json.loads(path.read_text(encoding="utf-8"))
        found[tuple(result[key] for key in ("method", "data", "size", "draw", "device"))] = result
    cells = {(cell.data, cell.size): place for place, cell in enumerate(CELLS)}
    return sorted(
        found.values(),
        key=lambda result: (
            METHODS.index(result["method"]),
            cells[result["data"], result["size"]],
            result["draw"],
            result["device"],
        ),
    )


def is_estimated(result: Result) -> bool:
    """Whether the job was cut short, so that it has no scores and its time is estimated."""
    return "seconds left" in result.get("settings", {})


def points(result: Result, metrics: Sequence[str]) -> float:
    """100 times the first of the metrics that the result has."""
    return 100.0 * float(next(result[name] for name in metrics if name in result))


def scores_of(found: Iterable[Result], metrics: Sequence[str] = MAIN) -> Scores:
    """Means over draws; a draw that was run on both devices counts with its CPU score."""
    draws: dict[tuple[Cell, str], dict[int, float]] = {}
    # "cpu" sorts before "cuda", so that it is set first.
    whole = (result for result in found if not is_estimated(result))
    for result in sorted(whole, key=lambda result: result["device"]):
        key = Cell(result["data"], result["size"]), result["method"]
        draws.setdefault(key, {}).setdefault(result["draw"], points(result, metrics))
    return {key: mean(values.values()) for key, values in draws.items()}


def summary(found: Sequence[Result]) -> dict[str, Any]:
    scores = scores_of(found)
    return {
        "wins": wins(scores),
        "mean by size": {size: means(scores, size) for size in sizes(scores)},
        "below linear": {
            method: [cell.name for cell in below(scores, method)] for method in METHODS
        },
        "slower than setfit": slower(found),
        "incomplete": incomplete(found),
    }


def sizes(scores: Scores) -> list[str]:
    return list(dict.fromkeys(cell.size for cell in CELLS if any(cell == key[0] for key in scores)))


def row_of(scores: Scores, cell: Cell) -> dict[str, float]:
    return {method: scores[cell, method] for method in METHODS if (cell, method) in scores}


def means(scores: Scores, size: str) -> dict[str, dict[str, float]]:
    """Mean points at a size over the cells that a method shares with tercet, and tercet's there."""
    found = {}
    for method in METHODS:
        rows = [row_of(scores, cell) for cell in CELLS if cell.size == size]
        shared = [row for row in rows if method in row and OURS in row]
        if shared:
            found[method] = {
                "cells": len(shared),
                "mean": mean(row[method] for row in shared),
                OURS: mean(row[OURS] for row in shared),
            }
    return found


def wins(scores: Scores) -> dict[str, dict[str, int]]:
    """How often tercet is better, equal or worse than each peer, to a tenth of a point."""
    counts = {peer: {"better": 0, "equal": 0, "worse": 0} for peer in METHODS if peer != OURS}
    for cell in CELLS:
        row = row_of(scores, cell)
        for peer in counts:
            if peer in row and OURS in row:
                gap = round(row[OURS], 1) - round(row[peer], 1)
                counts[peer]["better" if gap > 0 else "worse" if gap < 0 else "equal"] += 1
    return counts


def below(scores: Scores, method: str) -> list[Cell]:
    """The cells where the method is more than the margin below the linear model."""
    return [
        cell
        for cell in CELLS
        if (row := row_of(scores, cell)).keys() >= {method, SIMPLE}
        and row[method] < row[SIMPLE] - MARGIN
    ]


def seconds_of(found: Sequence[Result]) -> dict[tuple[str, int, Cell], dict[str, float]]:
    """Mean seconds of each method by device, jobs side by side, and cell."""
    times: dict[tuple[str, int, Cell], dict[str, list[float]]] = {}
    for result in found:
        key = result["device"], result["jobs at once"], Cell(result["data"], result["size"])
        times.setdefault(key, {}).setdefault(result["method"], []).append(result["seconds"])
    order = sorted(times, key=lambda key: (*key[:2], CELLS.index(key[2])))
    return {key: {method: mean(values) for method, values in times[key].items()} for key in order}


def slower(found: Sequence[Result]) -> list[str]:
    """The cells in which tercet takes longer than SetFit, by device."""
    return [
        f"{cell.name} ({device})"
        for (device, _, cell), row in seconds_of(found).items()
        if row.keys() >= {OURS, PEER} and row[OURS] > row[PEER]
    ]


def disturbed(found: Iterable[Result]) -> list[str]:
    """Jobs that ran alone, except that somebody noted other work beside them."""
    return [
        f"{result['method']} {result['data']}/{result['size']}, draw {result['draw']}"
        for result in found
        if result.get("beside other work")
    ]


def incomplete(found: Iterable[Result]) -> list[str]:
    """Methods and cells that lack a draw."""
    draws: dict[tuple[str, Cell], set[int]] = {}
    for result in found:
        if is_estimated(result):
            continue
        key = result["method"], Cell(result["data"], result["size"])
        draws.setdefault(key, set()).add(result["draw"])
    return [
        f"{method} {cell.name}" for (method, cell), done in draws.items() if len(done) < len(DRAWS)
    ]


def render(found: Sequence[Result]) -> str:
    scores = scores_of(found)
    parts = [
        "# Fit against its peers",
        "`tercet fit` beside SetFit, model2vec and a linear model (logistic or ridge regression on "
        "the untouched encoder), from few rows to thousands. A cell is a data set with a number of "
        "rows.",
        "    python benchmarks/fit.py table RESULTS...",
        "\n".join(f"- {note.format(draws=len(DRAWS))}" for note in (*NOTES, _counts(found))),
        "## Scores",
        _grid(("data", "rows", *METHODS), _score_rows(scores)),
        "## Mean by size",
        "Each method over the cells that it can be run on, beside tercet's mean over these cells.",
        _grid(("rows", "method", "cells", "mean", "tercet"), _mean_rows(scores)),
        "## Wins",
        "Cells in which tercet is better, equal (to a tenth of a point) or worse.",
        _grid(
            ("against", "better", "equal", "worse"),
            [(peer, *map(str, counts.values())) for peer, counts in wins(scores).items()],
        ),
        f"## More than {MARGIN} points below the linear model",
        "\n".join(_below_lines(scores)),
        "## Seconds",
        "Training, including the head and the loading of weights, without imports and test "
        "predictions; mean per job, by device. Where several jobs ran at once on a CPU, other work "
        "ran beside them too: their times are upper bounds. ~: SetFit was stopped after some of "
        "its steps (`--steps`), and the time of the rest is estimated from their pace.",
        _grid(("device", "jobs at once", "cell", *METHODS), _second_rows(found)),
        "Cells in which tercet takes longer than SetFit on the same device: "
        f"{', '.join(slower(found)) or 'none'}. Single jobs that ran beside other work, so that "
        f"the mean of their cell is an upper bound: {', '.join(disturbed(found)) or 'none'}.",
        "## Macro F1, and Spearman for STS",
        _grid(("data", "rows", *METHODS), _score_rows(scores_of(found, OTHER))),
        "## Environments",
        "\n".join(_environments(found)),
    ]
    if missing := incomplete(found):
        parts.append(f"Not all draws were run: {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def _score_rows(scores: Scores) -> list[tuple[str, ...]]:
    rows = []
    for cell in CELLS:
        row = row_of(scores, cell)
        if not row:
            continue
        shown = {method: f"{value:.1f}" for method, value in row.items()}
        best = f"{max(row.values()):.1f}"
        cells = [f"**{text}**" if text == best else text for text in _filled(shown, cell)]
        rows.append((cell.data, _readable(cell.size), *cells))
    return rows


def _mean_rows(scores: Scores) -> list[tuple[str, ...]]:
    return [
        (_readable(size), method, str(value["cells"]), f"{value['mean']:.1f}", f"{value[OURS]:.1f}")
        for size in sizes(scores)
        for method, value in means(scores, size).items()
        if method != OURS
    ]


def _below_lines(scores: Scores) -> Iterable[str]:
    for method in METHODS:
        compared = sum((cell, method) in scores and (cell, SIMPLE) in scores for cell in CELLS)
        if compared and method != SIMPLE:
            cells = below(scores, method)
            names = f": {', '.join(cell.name for cell in cells)}" if cells else ""
            yield f"- {method}: {len(cells)} of {compared} cells{names}"


def _second_rows(found: Sequence[Result]) -> list[tuple[str, ...]]:
    cut = {
        (each["device"], each["jobs at once"], Cell(each["data"], each["size"]), each["method"])
        for each in found
        if is_estimated(each)
    }
    return [
        (
            *(device, str(at_once), cell.name),
            *_filled(
                {
                    name: f"{'~' * ((device, at_once, cell, name) in cut)}{seconds:.1f}"
                    for name, seconds in row.items()
                }
            ),
        )
        for (device, at_once, cell), row in seconds_of(found).items()
    ]


def _environments(found: Sequence[Result]) -> Iterable[str]:
    lines = {}
    for result in found:
        versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
        lines[
            f"- {result['method']} on {result['device']} ({result['machine']}, "
            f"{result['threads']} threads), commit {result['commit']}: {versions}"
        ] = None
    return lines


def _filled(shown: Mapping[str, str], cell: Cell | None = None) -> list[str]:
    """A text per method: - where it cannot be run on the cell, `not run` where it was not."""
    return [
        shown.get(method, "not run" if cell and cell.kind in KINDS[method] else "-")
        for method in METHODS
    ]


def _counts(found: Sequence[Result]) -> str:
    """How many of the jobs of each method have a result."""
    done = {
        (each["method"], each["data"], each["size"], each["draw"])
        for each in found
        if not is_estimated(each)
    }
    counted = [
        f"{method} {sum(job[0] == method for job in done)} of {len(jobs_of(method, CELLS, DRAWS))}"
        for method in METHODS
    ]
    return f"Jobs with a result: {', '.join(counted)}."


def _readable(size: str) -> str:
    number, _, per_class = size.partition("-")
    return f"{int(number):,}{' per class' if per_class else ''}"


def _grid(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
