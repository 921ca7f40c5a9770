"""What schedules let an encoder forget: dev scores of all tasks on the way, on one budget of steps.

    python studies/forgetting.py --encoder NAME --data DIR --out DIR [--steps N] [--jobs N]

The tasks and heads are those of bertology/head-mod with mean pooling, batches of 32, a constant
learning rate of 2e-5. Sequential walks sentiment, similarity and paraphrase one after the other, a
third of the steps each, as SimCSE Lessens' all-tasks does; round-robin takes batches in
turn; random draws them equally likely; annealed draws by size at first and nearly equally in the
end. Prints a table of the scores after each third; DIR has these as forgetting.json, and
forgetting.svg draws all scores.
"""

from __future__ import annotations

import argparse
import copy
import json
import tomllib
from pathlib import Path
from typing import Any

from variants import Tree, run_folder, train_all

from tercet.evaluate.presentation import Axis, Chart, Series, padded
from tercet.recipe import find_bundled
from tercet.report.svg import Frame, to_svg

ORDER = ["sentiment", "similarity", "paraphrase"]
SCORES_A_THIRD = 4
Score = tuple[int, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=6000, help="of each schedule, by 12")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    steps = chosen.steps // (3 * SCORES_A_THIRD) * (3 * SCORES_A_THIRD)
    trees = schedules(chosen.encoder, steps=steps)
    ended = train_all(trees, data=chosen.data, out=chosen.out, jobs=chosen.jobs)
    found = {name: scores(run_folder(chosen.out, name)) for name, done in ended.items() if done}
    document = {"encoder": chosen.encoder, "steps": steps, "scores": found}
    (chosen.out / "forgetting.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    (chosen.out / "forgetting.svg").write_text(draw(found, steps=steps), "utf-8")
    print(f"{chosen.encoder}, {steps} steps each\n")
    print(table(found, steps=steps))
    if failed := [name for name, done in ended.items() if not done]:
        raise SystemExit(f"failed, see their log.txt: {', '.join(failed)}")


def schedules(encoder: str, *, steps: int) -> dict[str, Tree]:
    base = tomllib.loads(find_bundled("bertology/head-mod").text)
    base["encoder"] = {"name": encoder, "pooling": "mean"}
    base["evaluation"] = {"every": steps // (3 * SCORES_A_THIRD), "keep": "last"}
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
    stages: dict[str, list[Tree]] = {"sequential": thirds}
    for name, schedule in kinds.items():
        stages[name] = [{**stage, "steps": steps, "schedule": schedule}]
    return {name: {**copy.deepcopy(base), "stages": found} for name, found in stages.items()}


def scores(run: Path) -> list[Score]:
    """The steps at which dev was scored, and each task's figure there."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    return [(line["step"], first_figures(line["dev"])) for line in lines if "dev" in line]


def first_figures(dev: dict[str, Any]) -> dict[str, float]:
    return {task: next(iter(next(iter(modes.values())).values())) for task, modes in dev.items()}


def table(found: dict[str, list[Score]], *, steps: int) -> str:
    lines = ["| schedule | after | " + " | ".join(ORDER) + " |", "|---|---" + "|---" * 3 + "|"]
    for name, run in found.items():
        for step, figures in run:
            if step % (steps // 3) == 0:
                cells = " | ".join(f"{figures[task]:.3f}" for task in ORDER)
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
