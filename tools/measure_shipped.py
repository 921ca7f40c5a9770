"""Measure the model that ships, into records of results/small.json and the report small.html.

python tools/measure_shipped.py DATA [--results DIR] [--rows N]

Tasks, STS, transfer, robustness and geometry of the shipped file; STS and transfer of its encoder
as published, on the same pairs; tasks of its 8-bit export. DATA is the folder of the public files.
--rows limits the rows of each task, for a trial. The report's map shows a sixth of the sentences
that reports show otherwise, because the data belong to their authors.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from tercet.data.examples import read_examples
from tercet.data.sketch import Sketch, SketchBuilder
from tercet.evaluation.evaluation import Evaluation, evaluate
from tercet.evaluation.suites import geometry
from tercet.files import read_json_object, write_json, write_text
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.model import load
from tercet.recipe import Recipe
from tercet.report.report import Report
from tercet.training.environment import commit, machine

ENCODER, RECIPE = "all-minilm-l6-v2", "tercet/small"
DUPLICATES = ("paraphrase", "duplicates")
"""Tasks whose rows, or those labelled 1, are duplicates."""
COMMAND = "python tools/measure_shipped.py DATA"
CHECKED = 20
"""tests/test_shipped.py predicts every so-manieth row of paraphrase again."""
Table = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--rows", type=int)
    arguments = parser.parse_args()
    geometry.MAPPED //= 6
    data, rows = arguments.data, arguments.rows
    shipped, encoder = load(), load(ENCODER)
    shipped.sketch = shipped.sketch or sketch_of(data)
    ours = evaluate(shipped, data, name="small", rows=rows, compared=[encoder])
    suites = ["sts", "transfer"]
    theirs = evaluate(encoder, data, suites=suites, rows=rows, compared=[shipped])
    with tempfile.TemporaryDirectory() as folder:
        small = load(device="cpu")
        parts = Parts(small.network, small.tokenizer, small.info)
        export_onnx(Path(folder) / "int8", parts, precision="int8")
        in_8_bits = evaluate(load(Path(folder) / "int8"), data, suites=["tasks"], rows=rows)
    write_text(arguments.results / "small.html", Report([ours]).to_html())
    file = arguments.results / "small.json"
    document = read_json_object(file)
    made = {"command": COMMAND, "commit": commit(), "machine": machine(shipped.network.device)}
    found = records(ours, theirs, in_8_bits, targets=document["targets"])
    document["records"] |= {name: {**made, **record} for name, record in found.items()}
    write_json(file, document)
    print(file)


def sketch_of(data: Path) -> Sketch:
    """The rows of the recipe's files, and the duplicates among them."""
    builder = SketchBuilder()
    for name, task in Recipe.load(RECIPE).tasks.items():
        examples = read_examples(task, "train", data)
        builder.add_rows(examples.texts)
        if name in DUPLICATES:
            same = np.ones(len(examples), bool) if examples.labels is None else examples.labels == 1
            first, second = (list(compress(column, same)) for column in examples.texts)
            builder.add_duplicates(first, second)
    return builder.finish()


def records(
    ours: Evaluation, theirs: Evaluation, in_8_bits: Evaluation, *, targets: dict[str, float]
) -> dict[str, Table]:
    """What results/small.json keeps of the evaluations."""
    measured, peer = ours.to_json()["suites"], theirs.to_json()["suites"]
    return {
        "shipped": {
            "columns": ["task", "mode", "metric", "value", "95 % interval"],
            "rows": task_rows(measured["tasks"]["tasks"]),
            "values": checked(measured["tasks"]["tasks"]["paraphrase"]),
        },
        "unseen": {
            "columns": ["task", "mode", "metric", "rows seen or implied", "all", "without them"],
            "rows": unseen_rows(measured["tasks"]["tasks"]),
        },
        "int8": {
            "columns": ["task", "mode", "metric", "value", "95 % interval"],
            "rows": task_rows(in_8_bits.to_json()["suites"]["tasks"]["tasks"]),
        },
        "calibration": {
            "columns": ["task", "mode", "error", "target"],
            "rows": calibration_rows(measured["tasks"]["tasks"], targets),
        },
        "order": {
            "columns": ["set", "task", "mode", "accuracy", "fooled", "right, by kind of change"],
            "rows": order_rows(measured["robustness"]["word_order"]),
        },
        "sts": sts(measured["sts"], peer["sts"]),
        "transfer": transfer(measured["transfer"], peer["transfer"]),
    }


def task_rows(tasks: dict[str, Any]) -> list[list[str]]:
    """The main metric of every task and mode."""
    lines = []
    for name, task in tasks.items():
        for mode, found in task["modes"].items():
            estimate = found["metrics"][task["metric"]]
            bounds = " to ".join(f"{bound:.4f}" for bound in estimate["interval"])
            lines.append([name, mode, task["metric"], f"{estimate['value']:.4f}", bounds])
    return lines


def unseen_rows(tasks: dict[str, Any]) -> list[list[str]]:
    """The main metric without the rows that training files contain, or that duplicates imply."""
    return [
        [name, mode, task["metric"], f"{sum(task['seen'].values()):,} of {task['rows']:,}"]
        + [f"{found[key][task['metric']]['value']:.4f}" for key in ("metrics", "without_seen_rows")]
        for name, task in tasks.items()
        for mode, found in task["modes"].items()
        if found["without_seen_rows"]
    ]


def checked(paraphrase: dict[str, Any]) -> dict[str, str]:
    """The accuracy of some rows, which a test measures again."""
    values = {"every": str(CHECKED)}
    for mode, found in paraphrase["modes"].items():
        said = np.asarray(found["predictions"]).argmax(axis=1)[::CHECKED]
        values[f"checked {mode}"] = f"{np.mean(said == found['labels'][::CHECKED]):.4f}"
    return values


def order_rows(sets: dict[str, Any]) -> list[list[str]]:
    """Accuracy of word order, the share of different pairs taken for the same, and kinds."""
    return [
        [name, task, mode, f"{found['accuracy']['value']:.4f}", f"{found['fooled']:.3f}"]
        + [", ".join(f"{kind} {each['right']:.2f}" for kind, each in found["kinds"].items())]
        for name, tasks in sets.items()
        for task, modes in tasks.items()
        for mode, found in modes.items()
    ]


def calibration_rows(tasks: dict[str, Any], targets: dict[str, float]) -> list[list[str]]:
    return [
        [name, mode, f"{found['calibration']['ece']:.3f}", f"{targets[f'{name}, {mode}']:.2f}"]
        for name, task in tasks.items()
        for mode, found in task["modes"].items()
        if found.get("calibration") and f"{name}, {mode}" in targets
    ]


def sts(ours: dict[str, Any], theirs: dict[str, Any]) -> Table:
    """Spearman on the pairs that no training file contains; both averages over all pairs."""
    left, right = ours["without_leaked_pairs"], theirs["without_leaked_pairs"]
    lines = [
        [name, f"{found['pairs']:,}"]
        + [_three(each[name]["spearman"]["value"]) for each in (left, right)]
        for name, found in left.items()
    ]
    averages = [_three(each["average_without_leaked_pairs"]) for each in (ours, theirs)]
    return {
        "columns": ["set", "pairs", "tercet/small", "all-MiniLM-L6-v2"],
        "rows": [*lines, ["average", "", *averages]],
        "values": {"all": _three(ours["average"]), "all, peer": _three(theirs["average"])},
    }


def transfer(ours: dict[str, Any], theirs: dict[str, Any]) -> Table:
    """Accuracy of SentEval's classifiers."""
    lines = [
        [name]
        + [_three(each["tasks"][name]["metrics"]["accuracy"]["value"]) for each in (ours, theirs)]
        for name in ours["tasks"]
    ]
    averages = {"average": _three(ours["average"]), "average, peer": _three(theirs["average"])}
    columns = ["task", "tercet/small", "all-MiniLM-L6-v2"]
    return {"columns": columns, "rows": lines, "values": averages}


def _three(value: float | None) -> str:
    """Averages are None where a set is missing."""
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
