"""Write what the models of the second round reached to results/second-round.json.

    tercet evaluate RUN --suite tasks --suite sts --suite robustness --suite depths --json EVAL.json
    python tools/record_round.py --commit COMMIT --teachers EVAL.json...
    python tools/record_round.py --commit COMMIT --students EVAL.json...
    python tools/record_round.py --commit COMMIT --variants STEPS NAME=SUMMARY.json[,EVAL.json]...

Teachers are runs of tercet/base2, students of tercet/small2: one document per seed, in their order.
Variants are runs of tercet/small2 with other keys, one seed each. Other records are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from tercet.files import read_json_object, write_json

FILE = Path(__file__).resolve().parents[1] / "results" / "second-round.json"
SEEDS = [11711, 11712, 11713]
COMMAND = "tercet train tercet/base2 --set seed=SEED --data DIR; then the same of tercet/small2"
VARIANT = "tercet train tercet/small2 --set seed=11711 --set stages.0.steps={} --set ... --data DIR"
SHARED = {
    "data": "the public files of the recipes, without rows that are or imply evaluation rows",
    "command": COMMAND,
    "seeds": SEEDS,
}
Suites = dict[str, Any]
Figure = tuple[str, float | None, Callable[[Suites], float]]
"""What is measured, what is aimed at, and where an evaluation has it."""


def score(task: str, mode: str) -> Callable[[Suites], float]:
    def find(suites: Suites) -> float:
        found = suites["tasks"]["tasks"][task]
        return float(found["modes"][mode]["metrics"][found["metric"]]["value"])

    return find


def calibration(task: str, mode: str) -> Callable[[Suites], float]:
    return lambda suites: suites["tasks"]["tasks"][task]["modes"][mode]["calibration"]["ece"]


def word_order(mode: str) -> Callable[[Suites], float]:
    def find(suites: Suites) -> float:
        found = suites["robustness"]["word_order"]["PAWS"]["paraphrase"]
        return float(found[mode]["accuracy"]["value"])

    return find


def mean_of_tasks(suites: Suites) -> float:
    modes = {"sentiment": "single", "paraphrase": "cross", "similarity": "cross"}
    return fmean(score(task, mode)(suites) for task, mode in modes.items())


def scores(*targets: float | None) -> list[Figure]:
    """The tasks of every model, with what is aimed at."""
    names = [
        ("sentiment", "single"),
        ("paraphrase", "cross"),
        ("similarity", "cross"),
        ("paraphrase", "bi"),
        ("similarity", "bi"),
    ]
    return [
        (f"{task}, {mode}", target, score(task, mode))
        for (task, mode), target in zip(names, targets, strict=True)
    ]


TEACHER: list[Figure] = [
    *scores(None, None, None, None, None),
    ("mean of the first three", 0.798, mean_of_tasks),
    ("PAWS, cross", 0.90, word_order("cross")),
    ("PAWS, bi", None, word_order("bi")),
]
STUDENT: list[Figure] = [
    *scores(0.545, 0.886, 0.903, 0.881, 0.888),
    ("PAWS, cross", 0.85, word_order("cross")),
    ("PAWS, bi", 0.70, word_order("bi")),
    ("STS average, seen pairs left out", 0.811, lambda s: s["sts"]["average_without_leaked_pairs"]),
    ("the same, vectors of 128 numbers", None, lambda s: s["sts"]["average_by_width"]["128"]),
    ("calibration error, sentiment", 0.045, calibration("sentiment", "single")),
    ("calibration error, paraphrase", 0.015, calibration("paraphrase", "cross")),
]


def seeds_table(figures: Sequence[Figure], evaluations: Sequence[Suites]) -> dict[str, Any]:
    """A row per figure: each seed, their mean, and what is aimed at."""
    rows = []
    for name, target, find in figures:
        found = [find(suites) for suites in evaluations]
        cells = [f"{value:.4f}" for value in (*found, fmean(found))]
        rows.append([name, *cells, "" if target is None else f"{target:.3f}"])
    return {"columns": ["", *map(str, SEEDS), "mean", "target"], "rows": rows}


def depths_table(evaluations: Sequence[Suites]) -> dict[str, Any]:
    """A row per depth: the mean over seeds of each task's main metric."""
    rows = []
    for layers in evaluations[0]["depths"]["depths"]:
        cells = []
        for figure, _, _ in scores(None, None, None, None, None):
            task, mode = figure.split(", ")
            metric = evaluations[0]["tasks"]["tasks"][task]["metric"]
            found = [suites["depths"]["depths"][layers]["tasks"][task] for suites in evaluations]
            cells.append(f"{fmean(each[mode][metric]['value'] for each in found):.4f}")
        rows.append([layers, *cells])
    rows.append(["target for 3", "0.515", "0.870", "0.880", "", "0.872"])
    names = [name for name, _, _ in scores(None, None, None, None, None)]
    return {"columns": ["layers", *names], "rows": rows}


def variants_table(variants: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
    """A row per variant: its dev scores, and what an evaluation adds where there is one."""
    figures = {name: find for name, _, find in STUDENT[:8]}
    names = list(figures)
    rows = []
    for variant, (summary, *evaluations) in variants.items():
        dev = read_json_object(summary)["dev"]
        cells = [_dev_score(dev, name) for name in names[:5]]
        suites = [read_json_object(file)["suites"] for file in evaluations]
        cells += [f"{figures[name](suites[0]):.4f}" if suites else "" for name in names[5:]]
        rows.append([variant, *cells])
    return {"columns": ["", *names], "rows": rows}


def _dev_score(dev: Mapping[str, Any], name: str) -> str:
    task, mode = name.split(", ")
    return f"{dev[task][mode]['pearson' if task == 'similarity' else 'accuracy']:.4f}"


def records_of(arguments: argparse.Namespace) -> dict[str, Any]:
    shared = {**SHARED, "commit": arguments.commit, "machine": "one NVIDIA H200"}
    records = {}
    for name, figures in (("teachers", TEACHER), ("students", STUDENT)):
        if files := getattr(arguments, name):
            documents = [read_json_object(file) for file in files]
            suites = [each["suites"] for each in documents]
            made = {**shared, "encoder": documents[0]["model"]["encoder"]}
            records[name] = made | seeds_table(figures, suites)
            if name == "students":
                records["depths"] = made | depths_table(suites)
    if arguments.variants:
        steps, *named = arguments.variants
        pairs = (each.split("=", 1) for each in named)
        found = {name: [Path(file) for file in files.split(",")] for name, files in pairs}
        made = {**shared, "command": VARIANT.format(steps), "seeds": SEEDS[:1]}
        records["variants"] = made | variants_table(found)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commit", required=True)
    parser.add_argument("--teachers", type=Path, nargs=len(SEEDS))
    parser.add_argument("--students", type=Path, nargs=len(SEEDS))
    parser.add_argument("--variants", nargs="+", metavar="NAME=FILES")
    document = read_json_object(FILE)
    document["records"] |= records_of(parser.parse_args())
    write_json(FILE, document)
    print(FILE)


if __name__ == "__main__":
    main()
