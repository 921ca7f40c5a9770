"""The recipe: an encoder, tasks, stages and an evaluation, from one TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from tercet.errors import ArgumentError, TercetError, nearest, shorten
from tercet.specs import (
    CheckpointSpec,
    EncoderSpec,
    EvaluationSpec,
    Mode,
    SharedSpec,
    Spec,
    StageSpec,
    TaskSpec,
    UnseenSpec,
)
from tercet.specs.parts import Part

BUNDLED_FOLDER = Path(__file__).with_name("recipes")
_DESCRIPTIVE = ("name", "summary", "report", "published", "published_train", "published_test")
TaskName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class Recipe(Spec):
    """Everything that decides a run except the data folder and the output folder.

    >>> recipe = tercet.Recipe.load("tercet/demo")
    >>> recipe.encoder.name, list(recipe.tasks), recipe.stages[0].epochs
    ('all-minilm-l6-v2', ['sentiment', 'paraphrase', 'similarity'], 4.0)
    """

    name: str
    """What lists, runs and model cards call it. Example: `"team"`."""
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
    """Of everything random in a run, such as fresh weights, dropout and the order of rows. Example:
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
        text, where = _read(source)
        try:
            tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise TercetError(f"{where}: not valid TOML: {error}.") from error
        for override in overrides:
            _apply(tree, override)
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
            return cls.model_validate_json(json.dumps(_complete(tree), default=str), strict=True)
        except ValidationError as error:
            raise TercetError(f"{where}: {_explain(cls, _first(error.errors()))}") from error

    def to_toml(self) -> str:
        """The whole recipe, defaults included, as TOML that `load` reads back.

        >>> print(recipe.to_toml().splitlines()[0])
        name = "tercet/demo"
        """
        import tomli_w  # only runs write recipes

        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    def with_shortened(self, stage: int, *, step: int, steps: int) -> Recipe:
        """The recipe whose stage, by its index, is shortened after a step to so many in all.

        >>> recipe.with_shortened(0, step=5, steps=20).stages[0].shortened
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
    def _names_exist(self) -> Self:
        for key in ("published", "published_train", "published_test"):
            _check_names(f"`{key}`", getattr(self, key) or {}, self.tasks)
        for name, task in self.tasks.items():
            if task.like is not None:
                check_like(name, task, self.tasks)
        modes = [spec for task in self.tasks.values() for spec in task.modes.values()]
        if self.encoder.widths is not None and not any(spec.narrows for spec in modes):
            raise ValueError(
                "encoder.widths needs a task with a `cosine` head without projection, or with a "
                "contrastive objective"
            )
        sided = [name for name, task in self.tasks.items() if task.side is not None]
        if self.encoder.depths is not None and sided:
            raise ValueError(
                f"task `{sided[0]}` has `side` weights, which fit one depth: leave out `side` or "
                "encoder.depths"
            )
        if self.onto is not None and self.encoder.name != self.onto:
            raise ValueError(
                f"encoder.name is {self.encoder.name!r}, but `onto` adds tasks to the encoder of "
                f"{self.onto!r}: leave encoder.name out"
            )
        if self.unseen is not None:
            _check_names("unseen.keep", self.unseen.keep, self.tasks)
        shared = self._shared_layers()
        for stage in self.stages:
            where = f"stage `{stage.name}`"
            if self.onto is not None and "encoder" not in stage.freeze:
                raise ValueError(
                    f"{where} trains the encoder, which `onto` keeps as it is: put `encoder` into "
                    "its `freeze`"
                )
            frozen = [part.removeprefix("shared.") for part in stage.freeze if "shared." in part]
            if unknown := [name for name in frozen if name not in shared]:
                raise ValueError(f"{where} freezes unknown shared layers `{unknown[0]}`")
            frozen = [
                part.removeprefix("heads.").removeprefix("sides.")
                for part in stage.freeze
                if part.startswith(("heads.", "sides."))
            ]
            _check_names(where, [*(stage.tasks or []), *frozen], self.tasks)
            training = self.stage_tasks(stage)
            order, weights = stage.schedule.order, stage.schedule.weights
            _check_names(f"the order of {where}", order or [], training)
            _check_names(f"the weights of {where}", weights or {}, training)
            if order is not None and (missing := [task for task in training if task not in order]):
                raise ValueError(f"the order of {where} leaves out {', '.join(missing)}")
            _check_names(f"the goals of {where}", stage.schedule.goals or {}, training)
            self._check_evaluation(self.evaluation_of(stage))
            if stage.schedule.after_score is not None:
                scored = self.scored_tasks(self.evaluation_of(stage))
                _check_names(f"schedule `{stage.schedule.kind}` of {where}", training, scored)
        return self

    def _shared_layers(self) -> set[str]:
        """Names of all shared layers; layers of the same name must have the same keys."""
        specs: dict[str, SharedSpec] = {}
        for name, task in self.tasks.items():
            for mode, spec in task.modes.items():
                shared = spec.shared
                if shared is not None and specs.setdefault(shared.name, shared) != shared:
                    raise ValueError(
                        f"shared layers `{shared.name}` of task `{name}`, mode `{mode}`, differ "
                        "from earlier ones of the same name"
                    )
        return set(specs)

    def _check_evaluation(self, evaluation: EvaluationSpec) -> None:
        predicting = [name for name, task in self.tasks.items() if task.answers]
        _check_names("evaluation.tasks", evaluation.tasks or [], predicting)
        scores = [
            f"{name}.{metric}"
            for name in self.scored_tasks(evaluation)
            for metric in self.tasks[name].metrics
        ]
        if evaluation.score not in ("mean", "mean-shifted", *scores):
            raise ValueError(
                f"evaluation.score {evaluation.score!r} should be one of mean, mean-shifted, "
                f"{', '.join(scores)}"
            )

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


def _check_names(where: str, names: Iterable[str], tasks: Iterable[str]) -> None:
    known = list(tasks)
    for name in names:
        if name not in known:
            raise ValueError(
                f"{where} names task `{name}`, but the tasks are {', '.join(known)}"
                f"{nearest(name, known)}"
            )


_LIKE_KEYS = ("labels", "range", "prior", "multi_label", "class_weights", "side", *get_args(Mode))


def _complete(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with what its other keys imply: the encoder of the model in `onto`, and for a task
    that is like another its labels, their weights, its side weights and its modes."""
    if isinstance(tree.get("onto"), str) and isinstance(tree.get("encoder", {}), dict):
        tree = {**tree, "encoder": {"name": tree["onto"], **tree.get("encoder", {})}}
    tasks = tree.get("tasks")
    if not isinstance(tasks, dict):
        return tree
    return {**tree, "tasks": {name: _with_defaults(task, tasks) for name, task in tasks.items()}}


def _with_defaults(task: Any, tasks: dict[str, Any]) -> Any:
    other = tasks.get(str(task.get("like"))) if isinstance(task, dict) else None
    if not isinstance(other, dict):
        return task
    return {**{key: other[key] for key in _LIKE_KEYS if other.get(key) is not None}, **task}


def check_like(name: str, task: TaskSpec, tasks: Mapping[str, TaskSpec]) -> None:
    """Raise a ValueError unless the heads that a task trains are those of the task it is like."""
    other = tasks.get(task.like or "")
    if other is None or not other.answers:
        known = [known for known, spec in tasks.items() if spec.answers]
        _check_names(f"task `{name}` is like another, and `like`", [task.like or ""], known)
        return
    needs = f"task `{name}` trains the heads of `{task.like}` and needs the same"
    if (task.labels, task.label_space) != (other.labels, other.label_space):
        raise ValueError(f"{needs} labels")
    if task.side != other.side:
        raise ValueError(f"{needs} side weights")
    for mode, spec in task.modes.items():
        own = other.modes.get(mode)
        same = own is not None and (spec.head, spec.shared) == (own.head, own.shared)
        if own is None or not same or spec.objective.kind != own.objective.kind:
            raise ValueError(f"{needs} head, shared layers and kind of objective in mode `{mode}`")


@dataclass(frozen=True, slots=True)
class BundledRecipe:
    """A recipe that comes with the package: its name and its text, comments included."""

    name: str
    text: str

    def parse(self) -> Recipe:
        return Recipe.from_tree(tomllib.loads(self.text), where=f"recipe {self.name}")


def bundled() -> list[BundledRecipe]:
    """All recipes of the package, by name."""
    return [BundledRecipe(name, file.read_text("utf-8")) for name, file in sorted(_files().items())]


def find_bundled(name: str) -> BundledRecipe:
    """The bundled recipe of that name, or an error with the nearest names."""
    files = _files()
    if name not in files:
        raise TercetError(
            f"{name}: no such recipe file, and no bundled recipe of that name"
            f"{nearest(name, sorted(files))}; `tercet recipes` lists them."
        )
    return BundledRecipe(name, files[name].read_text("utf-8"))


def _files() -> dict[str, Path]:
    files = BUNDLED_FOLDER.rglob("*.toml")
    return {file.relative_to(BUNDLED_FOLDER).with_suffix("").as_posix(): file for file in files}


def _read(source: str | Path) -> tuple[str, str]:
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        if path.is_dir():
            raise TercetError(f"{source}: is a folder; give a recipe's name or its TOML file.")
        recipe = find_bundled(str(source))
        return recipe.text, f"recipe {recipe.name}"
    try:
        return path.read_text("utf-8"), str(path)
    except FileNotFoundError as error:
        raise TercetError(f"{path}: no such recipe file.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TercetError(f"{path}: cannot be read as a recipe: {error}.") from error


_OTHER_LENGTH = {"steps": "epochs", "epochs": "steps"}


def _apply(tree: dict[str, Any], override: str) -> None:
    """Set one value of a parsed recipe in place; a stage's `steps` replace its `epochs`."""
    key, equals, text = override.partition("=")
    path = key.strip().split(".")
    if not equals or not all(path):
        raise _wrong(override, "write it as KEY=VALUE, such as stages.0.epochs=1")
    node: Any = tree
    for part in path[:-1]:
        node = _descend(node, part, override)
    last = path[-1]
    if isinstance(node, list):
        node[_position(node, last, override)] = _value(text)
    elif isinstance(node, dict):
        node[last] = _value(text)
        if path[0] == "stages" and len(path) == 3:
            node.pop(_OTHER_LENGTH.get(last), None)
    else:
        raise _wrong(override, f"`{path[-2]}` is a value and has no keys")


def _descend(node: Any, part: str, override: str) -> Any:
    if isinstance(node, list):
        return node[_position(node, part, override)]
    if isinstance(node, dict):
        return node.setdefault(part, {})
    raise _wrong(override, f"`{part}` is inside a value that has no keys")


def _position(items: list[Any], part: str, override: str) -> int:
    """Stages are addressed by number from 0 or by their name."""
    names = [item["name"] for item in items if isinstance(item, dict) and "name" in item]
    if part in names and len(names) == len(items):
        return names.index(part)
    if part.isdecimal() and int(part) < len(items):
        return int(part)
    named = f" nor one of the names {', '.join(names)}" if names else ""
    raise _wrong(override, f"`{part}` is not a number from 0 to {len(items) - 1}{named}")


def _wrong(override: str, reason: str) -> ArgumentError:
    return ArgumentError(f"`overrides` {override}: {reason}.", "overrides")


def _value(text: str) -> Any:
    """A TOML value; anything else is a plain string, so that quotes are optional."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _explain(model: type[BaseModel], error: ErrorDetails) -> str:
    path = _path(error["loc"])
    key = f"`{'.'.join(map(str, path))}`" if path else "the recipe"
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key {key}{nearest(str(path[-1]), _keys_at(model, path[:-1]))}."
        case "missing":
            return f"key {key} is missing."
        case "kind_missing":
            return f"{key} needs a `kind`."
        case "kind_unknown":
            return f"{key}: {error['msg']}"
        case "value_error":
            return f"{key}: {context['error']}."
    shown = shorten(json.dumps(error["input"]), 60)
    return f"{key} is {shown}: {error['msg'][0].lower()}{error['msg'][1:]}."


def _first(errors: Sequence[ErrorDetails]) -> ErrorDetails:
    """The first mistake; of a value that may have several types, by the type that fits it best."""
    first = _path(errors[0]["loc"])
    same_value = [error for error in errors if _path(error["loc"])[: len(first)] == first]
    return max(same_value, key=lambda error: len(error["loc"]))


def _path(places: tuple[int | str, ...]) -> list[int | str]:
    """Where a mistake is in the file: without the levels that only the types have."""
    return [
        place
        for depth, place in enumerate(places)
        # A key of the file itself may look like such a level.
        if not (depth and str(place).startswith(("literal[", "list[")))
        and (depth < 4 or place not in ("constrained-str", "constrained-int"))
    ]


def _keys_at(model: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """The keys that a block at this path may have, over all kinds of it."""
    models: list[type[BaseModel]] = [model]
    for part in path:
        inner = [
            m.model_fields[str(part)].annotation for m in models if str(part) in m.model_fields
        ]
        models = [each for note in inner for each in _models_in(note)] or models
    return [key for each in models for key in each.model_fields]


def _models_in(note: Any) -> list[type[BaseModel]]:
    if isinstance(note, type) and issubclass(note, Part):
        return [note.registry[kind] for kind in note.registry]
    if isinstance(note, type) and issubclass(note, BaseModel):
        return [note]
    return [each for inner in get_args(note) for each in _models_in(inner)]
