"""What each ingredient of tercet/base, tercet/small and their second round contributes: the recipe
without it.

    python studies/ingredients.py base|small|base2|small2 --data DIR --out DIR [--steps N]
        [--jobs N] [--teachers FOLDER...] [--only NAME...]

Every variant is trained in a process of its own, `jobs` at a time, with the recipe's own seed, and
scored on dev. Finished variants are not trained again; a failed one is a row of the table. The last
stage has the recipe's number of steps by default; learning rates decay over these steps. If a task
is left out, its share of the steps goes to the others. Prints a table; DIR/ingredients.json has all
scores. With TERCET_RECORD=results/base.json or small.json the table goes into that file for
`make results`.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from variants import Tree, read_summary, run_folder, train_all

from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.suites.robustness.word_order import measure_order, read_order_set
from tercet.model import load
from tercet.recipe import find_bundled

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from records import record

Edit = Callable[[Tree], None]
COLUMNS = [
    ("sentiment", "single"),
    ("paraphrase", "cross"),
    ("paraphrase", "bi"),
    ("similarity", "cross"),
    ("similarity", "bi"),
]
ORDER = [("PAWS", "cross"), ("PAWS", "bi")]
WHOLE = "full recipe"


def without_task(name: str) -> Edit:
    def edit(tree: Tree) -> None:
        del tree["tasks"][name]
        del tree["stages"][-1]["schedule"]["weights"][name]

    return edit


def without_average(tree: Tree) -> None:
    del tree["stages"][-1]["average"]


def without_r_drop(tree: Tree) -> None:
    for task in tree["tasks"].values():
        for mode in ("single", "bi", "cross"):
            task.get(mode, {}).pop("r_drop", None)


def with_default_dropout(tree: Tree) -> None:
    for key in ("dropout", "attention_dropout"):
        del tree["encoder"][key]


def without_prior(tree: Tree) -> None:
    del tree["tasks"]["paraphrase"]["prior"]


def with_plain_grades(tree: Tree) -> None:
    for task in tree["tasks"].values():
        if "range" in task or task.get("like") == "similarity":
            task.pop("weight", None)
    tree["tasks"]["similarity"]["bi"].pop("weight", None)


def with_linear_bi_head(tree: Tree) -> None:
    del tree["tasks"]["paraphrase"]["bi"]["head"]["hidden"]


def with_one_teacher(tree: Tree) -> None:
    for task in tree["tasks"].values():
        if "recipe" in task.get("teacher", {}):
            task["teacher"]["folder"] = task["teacher"]["folder"][:1]


def with_labels_alone(tree: Tree) -> None:
    """No teacher at all; tasks without labels of their own are removed too."""
    for name, task in list(tree["tasks"].items()):
        if task.get("teacher", {}).get("weight") == 1.0:
            without_task(name)(tree)
        elif name != "vectors":
            task.pop("teacher", None)


def without_tasks(*names: str) -> Edit:
    def edit(tree: Tree) -> None:
        for name in names:
            without_task(name)(tree)

    return edit


def with_all_rows(tree: Tree) -> None:
    del tree["unseen"]


def without_first_stage(tree: Tree) -> None:
    del tree["stages"][0]


def from_minilm(tree: Tree) -> None:
    tree["encoder"]["name"] = "all-minilm-l6-v2"
    del tree["encoder"]["layers"]


def from_gte(tree: Tree) -> None:
    tree["encoder"]["name"] = "gte-small"


EDITS: dict[str, dict[str, Edit]] = {
    "base": {
        "no phrases": without_task("phrases"),
        "no R-Drop": without_r_drop,
        "no average of weights": without_average,
        "no prior": without_prior,
        "no extra weight for grades": with_plain_grades,
        "linear bi head": with_linear_bi_head,
    },
    "small": {
        "no teacher": with_labels_alone,
        "one teacher instead of three": with_one_teacher,
        "no phrases": without_task("phrases"),
        "no sentences of reviews": without_task("reviews"),
        "no nearest pairs of questions": without_task("questions"),
        "no additional duplicates": without_task("duplicates"),
        "no nearest pairs of STS's sentences": without_task("joined"),
        "no NLI pairs": without_task("nli"),
        "no pairs of plain sentences": without_task("made"),
        "no teacher for vectors": without_task("vectors"),
        "no average of weights": without_average,
        "default dropout": with_default_dropout,
        "no prior": without_prior,
    },
    "base2": {
        "no word order": without_tasks("order", "order-grades"),
        "no grades of word order": without_task("order-grades"),
        "rows that imply evaluation rows": with_all_rows,
    },
    "small2": {
        "no word order": without_tasks(
            "order", "order-grades", "changed", "changed-plain", "changed-grades", "contradictions"
        ),
        "no sentences changed by rule": without_tasks("changed", "changed-plain", "changed-grades"),
        "no grades of word order": without_tasks("order-grades", "changed-grades"),
        "no contradictions": without_task("contradictions"),
        "no ranking": without_task("ranking"),
        "vectors not learned first": without_first_stage,
        "rows that imply evaluation rows": with_all_rows,
        "from all-MiniLM-L6-v2": from_minilm,
        "from gte-small": from_gte,
        "one teacher instead of three": with_one_teacher,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", choices=list(EDITS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--teachers", nargs="+", help="model folders instead of the recipe's teachers"
    )
    parser.add_argument("--only", nargs="+", help="names of ingredients; default: all")
    arguments = parser.parse_args()
    out = arguments.out
    edits: dict[str, Edit] = {WHOLE: lambda tree: None, **EDITS[arguments.recipe]}
    names = [WHOLE, *arguments.only] if arguments.only else list(edits)
    recipe = find_bundled(f"tercet/{arguments.recipe}")
    base = tomllib.loads(recipe.text)
    prepare(base, steps=arguments.steps, teachers=arguments.teachers)
    variants = {name: edited(base, edits[name]) for name in names}
    finished = train_all(variants, data=arguments.data, out=out, jobs=arguments.jobs)
    results = {
        name: read_summary(out, name)["dev"] if done else None for name, done in finished.items()
    }
    if arguments.recipe.endswith("2"):
        for name, dev in results.items():
            if dev is not None:
                dev["PAWS"] = word_order(run_folder(out, name), arguments.data)
    steps = base["stages"][-1]["steps"]
    document = {"recipe": base["name"], "steps": steps, "dev": results}
    (out / "ingredients.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    columns, lines = table(results)
    steps_of = {"recipe": base["name"], "steps": steps, "seeds": [recipe.parse().seed]}
    record("ingredients", columns=columns, rows=lines, **steps_of)


def prepare(tree: Tree, *, steps: int | None, teachers: list[str] | None) -> None:
    if steps is not None:
        tree["stages"][-1]["steps"] = steps
    for task in tree["tasks"].values():
        if teachers is not None and "recipe" in task.get("teacher", {}):
            task["teacher"]["folder"] = teachers


def word_order(run: Path, data: Path) -> Tree:
    """The accuracy of paraphrase on the rows of PAWS that no recipe trains on."""
    model = load(run)
    pairs = read_order_set("paws", data, rows=None)
    found = measure_order(EncodedTexts(model), "paraphrase", model.tasks["paraphrase"], pairs)
    return {mode: {"accuracy": result.accuracy.value} for mode, result in found.items()}


def edited(base: Tree, edit: Edit) -> Tree:
    tree = copy.deepcopy(base)
    edit(tree)
    return tree


def table(results: dict[str, Tree | None]) -> tuple[list[str], list[list[str]]]:
    """The columns and lines of all variants: scores of the full recipe, differences of others."""
    has_order = any(dev is not None and "PAWS" in dev for dev in results.values())
    scored = COLUMNS + (ORDER if has_order else [])
    columns = ["", *(f"{task} {mode}" for task, mode in scored), "mean"]
    whole = metrics(results[WHOLE] or {})
    lines = []
    for name, dev in results.items():
        own = metrics(dev or {})
        if dev is None:
            cells = ["failed"] * len(own)
        elif name == WHOLE:
            cells = [f"{value:.4f}" for value in own]
        else:
            cells = [f"{value - other:+.4f}" for value, other in zip(own, whole, strict=True)]
        lines.append([name, *cells])
    return columns, lines


def metrics(dev: Tree) -> list[float]:
    """The metric of each column, and the mean over the tasks in their most accurate mode."""
    scored = COLUMNS + (ORDER if "PAWS" in dev else [])
    columns = [
        next(iter(dev.get(task, {}).get(mode, {}).values()), math.nan) for task, mode in scored
    ]
    return [*columns, (columns[0] + columns[1] + columns[3]) / 3]


if __name__ == "__main__":
    main()
