"""From what files are about to a recipe: heads, objectives, stages, learning rates and epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tercet.fitting.sources import Source
from tercet.recipe import Recipe
from tercet.specs.stages import Precision

Judge = Literal["folds", "share", "files"]
"""How candidates are judged: by cross-validation, on a share of the rows, or on dev files."""

CONTRAST = "-contrast"
"""The end of the name of a task that trains vectors by the labels of another."""
FEW = 100
"""Rows up to which the encoder is tuned gently."""
SQUARED = 200
"""Rows up to which texts are compared by squared distances of cosines: on draws of 128 rows this
was better than a softmax over the batch, on draws of 320 and more worse."""
CONTRASTED = 5000
"""Rows up to which single texts are tuned by contrast; with more, a head learns as well."""
FEATURES = ["u", "v", "absdiff", "product", "cosine"]
BATCH = 32
LEAST_STEPS = 50
RATE, GENTLE_RATE, HEAD_RATE = 1e-4, 5e-5, 1e-3
WIDTH = 384
"""The width for which these rates were chosen; wider encoders need lower ones."""
SIDE_RATE = 1e-3
DEV_SHARE, HELD_OUT = 0.15, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all candidates share.

    encoder: `name`, `max_tokens` and so on; None with `onto`
    width: of the encoder's vectors
    epochs: over the rows that train
    precision: of the stage that tunes
    decisions: by task, `scaling` and `thresholds` that are already known
    """

    sources: Sequence[Source]
    folder: Path
    encoder: Mapping[str, Any] | None
    onto: str | None
    width: int
    seed: int
    judge: Judge
    epochs: float
    precision: Precision
    decisions: Mapping[str, Mapping[str, Any]]

    @property
    def body(self) -> str:
        """The model to start from."""
        return str(self.onto if self.encoder is None else self.encoder["name"])

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sources)

    @property
    def batches(self) -> int:
        """Of all rows, each once."""
        return sum(-(-source.rows // BATCH) for source in self.sources)

    @property
    def is_lengthened(self) -> bool:
        """Whether the epochs are too few steps to tune the encoder."""
        return self.epochs * self.batches < LEAST_STEPS


def base_epochs(sources: Sequence[Source]) -> float:
    """How often to walk through the rows, where time allows."""
    rows = max(source.rows for source in sources)
    for most, epochs in ((FEW, 20.0), (1000, 10.0), (4000, 5.0), (20_000, 3.0)):
        if rows <= most:
            return epochs
    return 2.0


def tune_steps(settings: Settings, *, share: float = 1.0) -> int:
    """About how many steps the tuned recipe has on a share of the rows."""
    solved = 2
    if settings.is_lengthened:
        return _least_steps(share) + solved
    if settings.judge != "folds":
        share *= 1.0 - HELD_OUT
    if settings.judge == "share":
        share *= 1.0 - DEV_SHARE
    batches = sum(math.ceil(share * source.rows / BATCH) for source in settings.sources)
    return math.ceil(settings.epochs * batches) + solved


def _least_steps(share: float) -> int:
    """With fewer rows also fewer steps, so that each is trained on as often."""
    return math.ceil(share * LEAST_STEPS)


def linear_recipe(settings: Settings) -> Recipe:
    """The encoder as it is, with heads that are fitted exactly."""
    stages = [_solve("heads", [source.name for source in settings.sources])]
    return _recipe(settings, "a linear model on the encoder", _tasks(settings, tuned=False), stages)


def tuned_recipe(settings: Settings, *, share: float = 1.0) -> Recipe:
    """The encoder tuned on all tasks together, then heads that are fitted exactly.

    share: of the rows, on which it will be trained
    """
    tasks = _tasks(settings, tuned=True)
    solved = [source.name for source in settings.sources if not _is_cosine(source)]
    stages = [
        *([_solve("first heads", solved)] if solved else []),
        _tune(settings, tasks, share=share),
        *([_solve("heads", solved)] if solved else []),
    ]
    return _recipe(settings, "the encoder tuned on all tasks", tasks, stages)


def _recipe(
    settings: Settings, how: str, tasks: Mapping[str, Any], stages: Sequence[Mapping[str, Any]]
) -> Recipe:
    tree: dict[str, Any] = {
        "name": "-".join(source.name for source in settings.sources),
        "summary": f"Fitted to {', '.join(source.path.name for source in settings.sources)}: {how}",
        "seed": settings.seed,
        "tasks": dict(tasks),
        "stages": list(stages),
        "evaluation": {"every": 0, "keep": "last"},
        "checkpoint": {"every": 0, "keep": 1},
    }
    if settings.onto is not None:
        tree["onto"] = settings.onto
    else:
        tree["encoder"] = dict(settings.encoder or {})
    return Recipe.from_tree(tree, where="the fitted recipe")


def _tasks(settings: Settings, *, tuned: bool) -> dict[str, Any]:
    tasks: dict[str, Any] = {}
    for source in settings.sources:
        tree = _data(settings, source)
        mode = "bi" if source.look.is_pair else "single"
        part = {**_head(source, tuned=tuned), **settings.decisions.get(source.name, {})}
        tasks[source.name] = {**tree, mode: part}
        if tuned and settings.onto is not None and not _is_cosine(source):
            tasks[source.name]["side"] = {"rank": 8}
        if tuned and _is_contrasted(settings, source):
            form = "squared" if source.rows <= SQUARED else "softmax"
            objective = {"kind": "supervised-contrastive", "form": form}
            tasks[source.name + CONTRAST] = {**tree, "single": {"objective": objective}}
    return tasks


def _data(settings: Settings, source: Source) -> dict[str, Any]:
    """The keys of a task that say what its rows are."""
    look = source.look
    data: dict[str, Any] = {
        "train": [source.path.resolve().relative_to(settings.folder).as_posix()],
        "texts": list(look.texts),
        "label": look.label,
        "on_bad_row": "skip",
    }
    if source.dev is not None:
        data["dev"] = [source.dev.resolve().relative_to(settings.folder).as_posix()]
    elif settings.judge == "share":
        data["dev"] = DEV_SHARE
        data |= {} if source.group is None else {"group": source.group}
    if source.draw is not None:
        data["draw"] = source.draw
    if look.separator is not None:
        data["label_separator"] = look.separator
    tree: dict[str, Any] = {"data": data}
    if look.kind == "grades":
        assert look.range is not None
        return {**tree, "range": list(look.range)}
    tree |= {"labels": look.names}
    tree |= {"multi_label": True} if look.kind == "multi-label" else {}
    return tree if settings.judge == "folds" else {**tree, "held_out": HELD_OUT}


def _head(source: Source, *, tuned: bool) -> dict[str, Any]:
    objectives: dict[str, dict[str, Any]] = {
        "classes": {"kind": "cross-entropy"},
        "multi-label": {"kind": "binary-cross-entropy"},
        "grades": {"kind": "mean-squared-error", "targets": [0, 1]},
    }
    objective = objectives[source.look.kind]
    if tuned and _is_cosine(source):
        return {"head": {"kind": "cosine"}, "objective": objective}
    head: dict[str, Any] = {"kind": "mlp"}
    if source.look.is_pair:
        head = {"kind": "features", "features": FEATURES}
    return {"head": {**head, "normalise": True, "dropout": 0.0}, "objective": objective}


def _is_cosine(source: Source) -> bool:
    """Whether the tuned model answers by a cosine, which has nothing to fit."""
    return source.look.is_pair and source.look.kind == "grades"


def _is_contrasted(settings: Settings, source: Source) -> bool:
    """Whether single texts are tuned by comparing them with each other."""
    look = source.look
    single = look.kind == "classes" and not look.is_pair and settings.onto is None
    return single and source.rows <= CONTRASTED


def _solve(name: str, tasks: Sequence[str]) -> dict[str, Any]:
    return {"name": name, "tasks": list(tasks), "solve": True, "freeze": ["encoder"]}


def _tune(settings: Settings, tasks: Mapping[str, Any], *, share: float) -> dict[str, Any]:
    trained = [
        source.name + CONTRAST if source.name + CONTRAST in tasks else source.name
        for source in settings.sources
    ]
    rate = (GENTLE_RATE if settings.rows <= FEW else RATE) * min(1.0, WIDTH / settings.width)
    stage: dict[str, Any] = {
        "name": "tune",
        "tasks": trained,
        "schedule": {"kind": "proportional"},
        "batch": BATCH,
        # Word embeddings are half of the parameters, and hardly change in so few steps.
        "freeze": ["embeddings"],
        "optimiser": {"lr": rate, "head_lr": HEAD_RATE},
        "precision": settings.precision,
    }
    if settings.onto is not None:
        stage |= {"freeze": ["encoder"], "optimiser": {"lr": rate, "head_lr": SIDE_RATE}}
    if settings.is_lengthened:
        return {**stage, "steps": _least_steps(share)}
    return {**stage, "epochs": settings.epochs}
