"""The recipe: an encoder, tasks, stages and an evaluation, from one TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from tercet.errors import TercetError
from tercet.recipe.checks import check_recipe
from tercet.recipe.defaults import complete
from tercet.recipe.mistakes import explain
from tercet.recipe.overrides import apply
from tercet.recipe.sources import read
from tercet.specs import (
    CheckpointSpec,
    EncoderSpec,
    EvaluationSpec,
    Spec,
    StageSpec,
    TaskSpec,
    UnseenSpec,
)

_DESCRIPTIVE = ("name", "summary", "report", "published", "published_train", "published_test")
TaskName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class Recipe(Spec):
    """Everything that decides a run except the data folder and the output folder.

    >>> recipe = tercet.Recipe.load("tercet/demo")
    >>> recipe.encoder.name, list(recipe.tasks), recipe.stages[1].epochs
    ('all-minilm-l6-v2', ['sentiment', 'paraphrase', 'similarity'], 3.0)
    """

    name: str
    """Name in lists, runs and model cards. Example: `"team"`."""
    summary: str
    """One line for the list of recipes. Example: `"Which team a ticket belongs to."`."""
    report: str | None = None
    """The public report whose experiment this is. Example: `"robust"`."""
    published: dict[TaskName, float] | None = None
    """The score on dev that the report gives for each task. Example: `{ sentiment = 0.388 }`."""
    published_train: dict[TaskName, float] | None = None
    """The scores that it gives on the training rows, if any. Example: `{ sentiment = 0.393 }`."""
    published_test: dict[TaskName, float] | None = None
    """The scores that it gives on the test rows, whose labels are not public, if any. Example: `{
    sentiment = 0.534 }`."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 11711
    """Seed of everything random: fresh weights, dropout, the order of rows and the like. Example:
    `7`."""
    onto: str | None = None
    """A finished model (a run, a model folder or `tercet/small`) that these tasks are added to. Its
    encoder is the recipe's and stays frozen; its own tasks are kept as they are. Example:
    `"runs/best"`."""
    encoder: EncoderSpec
    """The encoder that all tasks share. Example: `{ name = "all-minilm-l6-v2" }`."""
    tasks: Annotated[dict[TaskName, TaskSpec], Field(min_length=1)]
    """The tasks by name, of letters, digits, `_` and `-`. Example: `{ team = { data = { train =
    "tickets.csv", texts = "text", label = "team" }, single = { head = { kind = "mlp" }, objective =
    { kind = "cross-entropy" } } } }`."""
    stages: Annotated[list[StageSpec], Field(min_length=1)]
    """Stages of training, in order. Example: `[{ epochs = 3 }]`."""
    record_rows: bool = False
    """Whether the model folder gets a sketch of the training rows, by which `tercet evaluate` knows
    rows that the model has seen. Anyone who has a row can find out whether it was among them.
    Example: `true`."""
    unseen: UnseenSpec | None = None
    """Evaluation rows that training rows neither contain nor imply; default: rows of tasks that are
    like another leave out dev rows of that task, and nothing else is left out. Example: `{ sets =
    ["STS-B"] }`."""
    evaluation: EvaluationSpec = EvaluationSpec()
    """What is scored on dev during training, and which weights are kept. Example: `{ every = 200
    }`."""
    checkpoint: CheckpointSpec = CheckpointSpec()
    """How often a run is saved, so that it can be resumed. Example: `{ every = 1000 }`."""

    @classmethod
    def load(cls, source: str | Path, overrides: Sequence[str] = ()) -> Self:
        """Read a bundled recipe by its name or a TOML file, with `a.b=c` overrides on top.

        >>> tercet.Recipe.load("tercet/demo", ["encoder.pooling=cls"]).encoder.pooling
        'cls'
        """
        text, where = read(source)
        try:
            tree = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also for a number of 5,000 digits
            raise TercetError(f"{where}: not valid TOML: {error}.") from error
        for override in overrides:
            apply(tree, override)
        return cls.from_tree(tree, where=where)

    @classmethod
    def from_tree(cls, tree: dict[str, Any], *, where: str) -> Self:
        """Check a parsed recipe; an error names the path of the first mistake.

        >>> tree = recipe.model_dump(mode="json", exclude_none=True)
        >>> tercet.Recipe.from_tree(tree, where="my recipe") == recipe
        True
        """
        try:
            # Through JSON, where strictness still lets a list be a tuple and 1 be 1.0.
            return cls.model_validate_json(json.dumps(complete(tree), default=str), strict=True)
        except ValidationError as error:
            tasks = map(str, tree["tasks"]) if isinstance(tree.get("tasks"), dict) else ()
            raise TercetError(f"{where}: {explain(cls, error.errors(), tasks=tasks)}") from error
        except (ValueError, RecursionError) as error:  # what JSON cannot hold
            raise TercetError(f"{where}: cannot be read as a recipe: {error}.") from error

    def to_toml(self) -> str:
        """The whole recipe, defaults included, as TOML that `load` reads back.

        >>> print(recipe.to_toml().splitlines()[0])
        name = "tercet/demo"
        """
        import tomli_w  # only runs write recipes

        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    def with_shortened(self, stage: int, *, step: int, steps: int) -> Recipe:
        """The recipe whose stage, by its index, is shortened after a step to so many in all.

        >>> recipe.with_shortened(1, step=5, steps=20).stages[1].shortened
        [(5, 20)]
        """
        stages = list(self.stages)
        before = stages[stage]
        cuts = [*(before.shortened or ()), (step, steps)]
        stages[stage] = before.model_copy(update={"shortened": cuts})
        return self.model_copy(update={"stages": stages})

    def trains_as(self, other: Recipe) -> bool:
        """Whether both make the same run: they may differ in name and in published scores.

        >>> recipe.trains_as(recipe.model_copy(update={"name": "mine"}))
        True
        """
        return self.training() == other.training()

    def training(self) -> dict[str, Any]:
        """All keys that decide the run, as in the TOML file.

        >>> list(recipe.training())[:3]
        ['seed', 'encoder', 'tasks']
        """
        return self.model_dump(mode="json", exclude_none=True, exclude=set(_DESCRIPTIVE))

    @field_validator("tasks")
    @classmethod
    def _objectives_fit(cls, tasks: dict[str, TaskSpec]) -> dict[str, TaskSpec]:
        """A new recipe gets the defaults that its heads ask for; model folders stay as they are."""
        fitting = {}
        for name, task in tasks.items():
            try:
                fitting[name] = task.with_fitting_objectives()
            except ValueError as error:
                raise ValueError(f"task `{name}`, {error}") from error
        return fitting

    @model_validator(mode="after")
    def _blocks_fit(self) -> Self:
        check_recipe(self)
        return self

    def stage_tasks(self, stage: StageSpec) -> list[str]:
        """Names of the tasks that train in a stage.

        >>> recipe.stage_tasks(recipe.stages[0])
        ['sentiment', 'paraphrase', 'similarity']
        """
        return stage.tasks if stage.tasks is not None else list(self.tasks)

    def evaluation_of(self, stage: StageSpec) -> EvaluationSpec:
        """What is scored in a stage, and which weights it keeps.

        >>> recipe.evaluation_of(recipe.stages[0]).keep
        'best'
        """
        return stage.evaluation or self.evaluation

    def scored_tasks(self, evaluation: EvaluationSpec) -> list[str]:
        """Names of the tasks that are scored on dev.

        >>> recipe.scored_tasks(recipe.evaluation)
        ['sentiment', 'paraphrase', 'similarity']
        """
        predicting = [name for name, task in self.tasks.items() if task.answers]
        return evaluation.tasks if evaluation.tasks is not None else predicting
