"""Run the reports' own analyses on trained runs, one file per recipe beside their table.

python tools/analyse_reports.py REPRODUCTION DATA [RECIPE...]

REPRODUCTION is the folder of `tercet reproduce`, with the models of first seeds; RECIPE defaults
to every recipe below that was trained there. SentEval's transfer tasks, HANS, alignment and
uniformity of the models of simcse; confusion matrices, scores of each class and the worst mistakes
of sbert/exp1; the worst mistakes of robust/exp14. Mistakes are given by file and line, because the
texts are others'. Results are written to REPRODUCTION/analyses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tercet.evaluation.answers import Answers
from tercet.evaluation.evaluation import Evaluation, evaluate
from tercet.evaluation.per_class import class_scores, severity
from tercet.evaluation.suites.tasks import TasksResult
from tercet.evaluation.suites.tasks.details import confusion
from tercet.files import read_json_object, write_json
from tercet.model import load
from tercet.reproduce.runs import FIRST_SEED, Experiment

FOLDER = "analyses"
COMMAND = "python tools/analyse_reports.py REPRODUCTION DATA"
WORST = 6  # mistakes per task, as many as the report shows


def main() -> None:
    out, data, *names = sys.argv[1:]
    for name in names or [name for name in ANALYSES if (_run(name, Path(out)) / "model").is_dir()]:
        print(analyse(name, out=Path(out), data=Path(data)))


def analyse(name: str, *, out: Path, data: Path) -> Path:
    """Analyse the first seed of a recipe; returns the file of results."""
    suites, analysis = ANALYSES[name]
    print(f"{name}: {', '.join(suites)}", file=sys.stderr)
    run = _run(name, out)
    summary = read_json_object(run / "summary.json")
    document = {
        "recipe": name,
        "seed": FIRST_SEED,
        "command": COMMAND,
        "made_with": summary["made_with"],
        "dev": summary["dev"],
        **analysis(evaluate(load(run), data, suites=suites)),
    }
    file = out / FOLDER / f"{name.replace('/', '-')}.json"
    file.parent.mkdir(exist_ok=True)
    write_json(file, document)
    return file


def _run(name: str, out: Path) -> Path:
    return Experiment(name, FIRST_SEED).folder(out)


def vectors_of(evaluation: Evaluation) -> dict[str, Any]:
    """Transfer, HANS and geometry, without anything by row."""
    suites = evaluation.to_json()["suites"]
    order = suites["robustness"]["word_order"].get("HANS", {})
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


def errors_of(evaluation: Evaluation) -> dict[str, Any]:
    """Confusion matrices, scores of each class, and the worst mistakes."""
    classifiers = [each for each in _answers(evaluation) if each.classes is not None]
    return {
        "confusion": {
            each.task: {"classes": each.classes, "counts": np.asarray(confusion(each)).tolist()}
            for each in classifiers
        },
        "classes": {
            each.task: [asdict(scores) for scores in class_scores(each)] for each in classifiers
        },
        **mistakes_of(evaluation),
    }


def mistakes_of(evaluation: Evaluation) -> dict[str, Any]:
    """The mistakes of each task with the highest confidence, or the grades furthest off."""
    return {"mistakes": {each.task: _worst(each) for each in _answers(evaluation)}}


def _worst(answers: Answers) -> list[dict[str, str]]:
    places = answers.places
    assert places is not None  # since they were read from files
    worst = np.argsort(-severity(answers), kind="stable")[:WORST].tolist()
    return [
        {
            "file": places.file(row),
            "line": str(places.lines[row]),
            "expected": answers.name(answers.labels[row]),
            "predicted": answers.name(answers.predicted[row]),
        }
        for row in worst
        if answers.errors[row] > 0.0
    ]


def _answers(evaluation: Evaluation) -> list[Answers]:
    result = evaluation.suites["tasks"]
    assert isinstance(result, TasksResult)
    return result.answers()


Analysis = Callable[[Evaluation], dict[str, Any]]
_VECTORS = (["transfer", "geometry", "robustness"], vectors_of)
ANALYSES: Mapping[str, tuple[list[str], Analysis]] = {
    "simcse/bi-encoder": _VECTORS,
    "simcse/unsupervised": _VECTORS,
    "simcse/supervised": _VECTORS,
    "sbert/exp1": (["tasks"], errors_of),
    "robust/exp14": (["tasks"], mistakes_of),
}


if __name__ == "__main__":
    main()
