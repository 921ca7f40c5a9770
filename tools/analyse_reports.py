"""Run the reports' own analyses on trained runs, into analyses.json beside their table.

python tools/analyse_reports.py REPRODUCTION DATA

REPRODUCTION is the folder of `tercet reproduce`, with the models of its first seeds. SentEval's
transfer tasks, HANS, alignment and uniformity of the models of simcse; confusion matrices of
sbert/exp1; the worst mistakes of robust/exp14, by file and line, because the texts are others'.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tercet.evaluation.answers import Answers
from tercet.evaluation.evaluation import Evaluation, evaluate
from tercet.evaluation.per_class import severity
from tercet.evaluation.suites.tasks import TasksResult
from tercet.evaluation.suites.tasks.details import confusion
from tercet.files import read_json_object, write_json
from tercet.model import load
from tercet.reproduce.runs import FIRST_SEED, Experiment

SIMCSE = ("simcse/bi-encoder", "simcse/unsupervised", "simcse/supervised")
CONFUSED = "sbert/exp1"
MISTAKEN = "robust/exp14"
WORST = 6  # mistakes per task, as many as the report shows


def main() -> None:
    out, data = Path(sys.argv[1]), Path(sys.argv[2])
    document: dict[str, Any] = {"command": "python tools/analyse_reports.py REPRODUCTION DATA"}
    document["vectors"] = {
        name: vectors_of(_evaluate(name, out, data, ["transfer", "geometry", "robustness"]))
        for name in _trained(SIMCSE, out)
    }
    for name in _trained([CONFUSED], out):
        document["confusion"] = {name: matrices_of(_evaluate(name, out, data, ["tasks"]))}
    for name in _trained([MISTAKEN], out):
        document["mistakes"] = {name: mistakes_of(_evaluate(name, out, data, ["tasks"]))}
    document["made_with"] = {
        name: read_json_object(_run(name, out) / "summary.json")["made_with"]
        for name in _trained([*SIMCSE, CONFUSED, MISTAKEN], out)
    }
    write_json(out / "analyses.json", document)
    print(out / "analyses.json")


def _run(name: str, out: Path) -> Path:
    return Experiment(name, FIRST_SEED).folder(out)


def _trained(names: Any, out: Path) -> list[str]:
    return [name for name in names if (_run(name, out) / "model").is_dir()]


def _evaluate(name: str, out: Path, data: Path, suites: list[str]) -> Evaluation:
    print(f"{name}: {', '.join(suites)}", file=sys.stderr)
    return evaluate(load(_run(name, out)), data, suites=suites)


def vectors_of(evaluation: Evaluation) -> dict[str, Any]:
    """Transfer, HANS and geometry, without anything by row."""
    suites = evaluation.to_json()["suites"]
    order = suites["robustness"]["word_order"].get("hans", {})
    geometry = suites["geometry"]
    return {
        "transfer": {
            task: {metric: value["value"] for metric, value in found["metrics"].items()}
            for task, found in suites["transfer"]["tasks"].items()
        },
        "hans": {
            f"{task}, {mode}": {"fooled": found["fooled"], **found["heuristics"]}
            for task, modes in order.items()
            for mode, found in modes.items()
        },
        "geometry": {key: geometry[key] for key in ("alignment", "uniformity", "anisotropy")},
    }


def _answers(evaluation: Evaluation) -> list[Answers]:
    result = evaluation.suites["tasks"]
    assert isinstance(result, TasksResult)
    return result.answers()


def matrices_of(evaluation: Evaluation) -> dict[str, Any]:
    """Rows by label, columns by prediction, of each classifier."""
    return {
        answers.task: {
            "classes": answers.classes,
            "counts": np.asarray(confusion(answers)).tolist(),
        }
        for answers in _answers(evaluation)
        if answers.classes is not None
    }


def mistakes_of(evaluation: Evaluation) -> dict[str, list[dict[str, str]]]:
    """The mistakes of each task with the highest confidence, or the grades furthest off."""
    found = {}
    for answers in _answers(evaluation):
        places = answers.places
        assert places is not None  # since they were read from files
        worst = np.argsort(-severity(answers), kind="stable")[:WORST].tolist()
        found[answers.task] = [
            {
                "file": places.file(row),
                "line": str(places.lines[row]),
                "expected": answers.name(answers.labels[row]),
                "predicted": answers.name(answers.predicted[row]),
            }
            for row in worst
            if answers.errors[row] > 0.0
        ]
    return found


if __name__ == "__main__":
    main()
