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

from matplotlib.figure import Figure
from variants import Tree, run_folder, train_all

from tercet.recipe import find_bundled

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
    draw(found, steps=steps).savefig(chosen.out / "forgetting.svg")
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


def draw(found: dict[str, list[Score]], *, steps: int) -> Figure:
    """A panel a schedule, a line a task; dotted where a third of the steps ends."""
    figure = Figure(figsize=(3.2 * len(found), 3.2), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for panel, (name, run) in zip(panels, found.items(), strict=True):
        panel.set_title(name)
        panel.set_xlabel("step")
        panel.grid(alpha=0.3)
        for task in ORDER:
            places = [step for step, _ in run]
            panel.plot(places, [figures[task] for _, figures in run], ".-", label=task)
        for third in (1, 2):
            panel.axvline(third * steps / 3, color="gray", linestyle=":")
    panels[0].set_ylabel("on dev: accuracy, Pearson")
    lines, tasks = panels[0].get_legend_handles_labels()
    figure.legend(lines, tasks, loc="outside lower center", ncols=len(tasks))
    return figure


if __name__ == "__main__":
    main()
