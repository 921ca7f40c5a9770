"""Forgetting by schedule: dev scores of all tasks during training, with one budget of steps.

    python studies/forgetting.py --encoder NAME --data DIR --out DIR [--steps N] [--jobs N]

The tasks and heads are those of bertology/head-mod with mean pooling, batches of 32 and a constant
learning rate of 2e-5. Sequential trains sentiment, similarity and paraphrase one after the other,
a third of the steps each, as SimCSE Lessens' all-tasks does; round-robin takes batches in turn;
random draws them uniformly; annealed draws by size at first and nearly uniformly at the end. Prints
a table of the scores after each third. DIR gets all scores as forgetting.json, and a chart,
forgetting.svg.
"""

from __future__ import annotations

import argparse
import copy
import json
import tomllib
from pathlib import Path
from typing import Any

from variants import Tree, run_folder, train_all

from tercet.evaluation.presentation import Axis, Chart, Series, padded
from tercet.recipe import find_bundled
from tercet.report.svg import Frame, to_svg

ORDER = ["sentiment", "similarity", "paraphrase"]
SCORES_PER_THIRD = 4
Score = tuple[int, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--steps", type=int, default=6000, help="for each schedule, a multiple of 12"
    )
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    out = arguments.out
    steps = arguments.steps // (3 * SCORES_PER_THIRD) * (3 * SCORES_PER_THIRD)
    trees = schedules(arguments.encoder, steps=steps)
    finished = train_all(trees, data=arguments.data, out=out, jobs=arguments.jobs)
    runs = {name: scores(run_folder(out, name)) for name, done in finished.items() if done}
    document = {"encoder": arguments.encoder, "steps": steps, "scores": runs}
    (out / "forgetting.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    (out / "forgetting.svg").write_text(draw(runs, steps=steps), "utf-8")
    print(f"{arguments.encoder}, {steps} steps each\n")
    print(table(runs, steps=steps))
    if failed := [name for name, done in finished.items() if not done]:
        raise SystemExit(f"failed, see their log.txt: {', '.join(failed)}")


def schedules(encoder: str, *, steps: int) -> dict[str, Tree]:
    base = tomllib.loads(find_bundled("bertology/head-mod").text)
    base["encoder"] = {"name": encoder, "pooling": "mean"}
    base["evaluation"] = {"every": steps // (3 * SCORES_PER_THIRD), "keep": "last"}
    stage = {"batch": 32, "optimiser": base["stages"][0]["optimiser"]}
    thirds = [
        {**stage, "name": task, "tasks": [task], "steps": steps // 3,
         "evaluation": {**base["evaluation"], "tasks": ORDER}}
        for task in ORDER
    ]  # fmt: skip
    kinds: dict[str, Tree] = {
        "round-robin": {"kind": "round-robin", "order": ORDER, "walk": "cycle"},
        "random": {"kind": "random"},
        "annealed": {"kind": "annealed"},
    }
    variants: dict[str, list[Tree]] = {"sequential": thirds}
    for name, schedule in kinds.items():
        variants[name] = [{**stage, "steps": steps, "schedule": schedule}]
    return {name: {**copy.deepcopy(base), "stages": stages} for name, stages in variants.items()}


def scores(run: Path) -> list[Score]:
    """The steps at which dev was scored, and each task's main metric there."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    return [(line["step"], main_metrics(line["dev"])) for line in lines if "dev" in line]


def main_metrics(dev: dict[str, Any]) -> dict[str, float]:
    return {task: next(iter(next(iter(modes.values())).values())) for task, modes in dev.items()}


def table(runs: dict[str, list[Score]], *, steps: int) -> str:
    lines = ["| schedule | after | " + " | ".join(ORDER) + " |", "|---|---" + "|---" * 3 + "|"]
    for name, run in runs.items():
        for step, metrics in run:
            if step % (steps // 3) == 0:
                cells = " | ".join(f"{metrics[task]:.3f}" for task in ORDER)
                lines.append(f"| {name} | {step} | {cells} |")
    return "\n".join(lines)


def draw(found: dict[str, list[Score]], *, steps: int) -> str:
    """One panel per schedule, one line per task; dotted where a third of the steps ends."""
    values = [value for run in found.values() for _, scores in run for value in scores.values()]
    charts = [
        Chart(
            title=name,
            alternative=f"Scores on dev of {', '.join(ORDER)} over {steps} steps, {name}.",
            x=Axis("step", 0.0, float(steps)),
            y=Axis("" if place else "on dev: accuracy, Pearson", *padded(values)),
            series=[
                Series(task, [(step, scores[task]) for step, scores in run], kind="marked")
                for task in ORDER
            ],
            marks=[(third * steps / 3, "") for third in (1, 2)],
        )
        for place, (name, run) in enumerate(found.items())
    ]
    frames = [Frame(width=300.0)] * len(charts)
    return to_svg(charts, title="Scores on dev by schedule", frames=frames)


if __name__ == "__main__":
    main()
