"""The metadata of a model folder, and the model card made from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tercet.data.layouts import has_dev, resolve, split_files
from tercet.nn.architectures.record import EncoderConfig
from tercet.recipe import TaskName, check_like
from tercet.specs import Count, Long, Mode, Pooling, Scaling, Spec, TaskSpec, tasks_at_depth
from tercet.specs.parts import Part

MOST_EXAMPLES = 3
"""Per task."""
LONGEST_EXAMPLE = 200
"""Characters of a text."""
Example = Annotated[str, Field(min_length=1, max_length=LONGEST_EXAMPLE)]
Examples = Annotated[list[Example], Field(max_length=MOST_EXAMPLES)]
ExamplePair = Annotated[list[Example], Field(min_length=2, max_length=2)]
ExamplePairs = Annotated[list[ExamplePair], Field(max_length=MOST_EXAMPLES)]
Metrics = dict[str, dict[str, dict[str, float | None]]]
"""By task, mode and metric; None is undefined."""


ScalingsByTask = dict[str, dict[Mode, Scaling]]
ThresholdsByTask = dict[str, dict[Mode, list[Annotated[float, Field(ge=0.0, le=1.0)]]]]


class DepthInfo(Spec):
    """What differs at a lesser depth of a model: its heads, and what is known of them."""

    hidden: list[Count] | None = None
    """Widths of the hidden layers of its heads; default: as at the full depth."""
    metrics: Metrics | None = None
    scalings: ScalingsByTask | None = None
    thresholds: ThresholdsByTask | None = None


class ModelInfo(Spec):
    """What a model folder states besides the weights."""

    encoder: str
    """The weights that training started from."""
    pooling: Pooling
    max_tokens: Count
    """The most tokens that are read at once."""
    long: Long = "truncate"
    """How longer sentences and joined pairs are treated."""
    lower_case: bool = False
    """Whether texts are lower-cased before tokenizing."""
    tasks: dict[TaskName, TaskSpec] = Field(default_factory=dict)
    """By names as in recipes: files are named after them."""
    recipe: str | None = None
    """The recipe that trained it."""
    metrics: Metrics | None = None
    """Measured on dev."""
    scalings: ScalingsByTask | None = None
    """By task and mode, how the outputs of calibrated heads are scaled."""
    thresholds: ThresholdsByTask | None = None
    """By task and mode, of each label the least probability at which it is predicted, for tasks
    whose rows have several labels; default: one half."""
    widths: list[Count] | None = None
    """Shorter widths at which vectors can be used: their first numbers."""
    depths: dict[Count, DepthInfo] | None = None
    """By number of layers, the depths at which it answers besides its full one."""
    examples: dict[str, Examples | ExamplePairs] | None = None
    """By task, a few inputs to try: texts, or pairs of texts. They are shown to everyone who opens
    the model card or the server's page."""

    @property
    def plugins(self) -> dict[str, str]:
        """The parts that users' own files define, such as `head maxout`, with the file's name."""
        modes = [spec for task in self.tasks.values() for spec in task.modes.values()]
        parts: list[Part] = [part for spec in modes for part in (spec.head, spec.objective) if part]
        files = {
            f"{part.registry.sort} {part.kind}": part.registry.plugin(part.kind) for part in parts
        }
        return {part: file for part, file in files.items() if file is not None}

    def at(self, depth: int) -> Self:
        """What a model of one depth alone states; the full one is any that `depths` lacks."""
        own = (self.depths or {}).get(depth)
        if own is None:
            return self.model_copy(update={"depths": None})
        known = dict(own) | {"tasks": tasks_at_depth(self.tasks, own.hidden), "depths": None}
        known.pop("hidden")
        return self.model_copy(update=known)

    def tasks_by_depth(self) -> dict[int, dict[str, TaskSpec]]:
        """The tasks of each lesser depth."""
        return {depth: self.at(depth).tasks for depth in self.depths or ()}

    @property
    def side_tasks(self) -> list[str]:
        """The tasks that have side weights."""
        return [name for name, task in self.tasks.items() if task.side and task.like is None]

    def with_added(self, added: Self) -> Self:
        """The same with the tasks of another, and all that is known of them."""
        own, other = dict(self), dict(added)
        by_task = _joined(own, {key: it for key, it in other.items() if key != "depths"})
        if added.depths is not None and self.depths is not None:
            by_task["depths"] = {
                depth: DepthInfo(**dict(known) | _joined(dict(known), dict(added.depths[depth])))
                for depth, known in self.depths.items()
            }
        recipes = [info.recipe for info in (self, added) if info.recipe is not None]
        return type(self)(**own | by_task | {"recipe": ", then ".join(recipes) or None})

    @model_validator(mode="after")
    def _names_have_heads(self) -> Self:
        for name, task in self.tasks.items():
            if task.lacks is not None:
                raise ValueError(f"task `{name}` has no `{task.lacks}`")
            if task.like is not None:
                check_like(name, task, self.tasks)
        infos: list[ModelInfo | DepthInfo] = [self, *(self.depths or {}).values()]
        for known in infos:
            _check_scalings(known.scalings or {}, self.tasks)
            for name, chosen in (known.thresholds or {}).items():
                for mode, values in chosen.items():
                    _check_thresholds(name, mode, values, self.tasks.get(name))
        if self.depths and self.side_tasks:
            raise ValueError(f"`depths` do not fit the side weights of `{self.side_tasks[0]}`")
        for name, inputs in (self.examples or {}).items():
            _check_examples(name, inputs, self.tasks.get(name))
        return self


def _joined(own: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """What two infos know by task, together."""
    by_task = {key: value for key, value in added.items() if isinstance(value, dict)}
    return {key: {**(own[key] or {}), **value} for key, value in by_task.items()}


def _check_scalings(scalings: ScalingsByTask, tasks: Mapping[str, TaskSpec]) -> None:
    for name, modes in scalings.items():
        scaled = tasks.get(name)
        for mode in modes:
            if scaled is None or scaled.labels is None or mode not in scaled.modes:
                raise ValueError(f"`scalings` names {name}.{mode}, which is not a classifier")


def _check_thresholds(name: str, mode: Mode, values: list[float], task: TaskSpec | None) -> None:
    if task is None or not task.multi_label or mode not in task.modes:
        raise ValueError(f"`thresholds` names {name}.{mode}, which has one class per input")
    if len(values) != len(task.labels or ()):
        raise ValueError(
            f"`thresholds` has {len(values)} for the {len(task.labels or ())} labels of {name}"
        )


def _check_examples(name: str, inputs: Examples | ExamplePairs, task: TaskSpec | None) -> None:
    if task is None or not task.answers:
        raise ValueError(f"`examples` names {name}, which is not a task that predicts")
    if any(isinstance(each, str) != (task.single is not None) for each in inputs):
        reads = "texts" if task.single is not None else "pairs of texts"
        raise ValueError(f"`examples` of {name} should be {reads}")


def model_card(info: ModelInfo, *, config: EncoderConfig) -> str:
    """The README.md of a model folder."""
    sections = [
        _front_matter(info),
        _inert(_summary(info, config)),
        _inert(_tasks(info)) if info.tasks else "",
        _usage(info),
        _examples(info) if info.examples else "",
        _inert(_data(info)) if info.tasks else "",
        _limits(info),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _front_matter(info: ModelInfo) -> str:
    tags = ["tercet", "sentence-transformers", "sentence-similarity", "feature-extraction"]
    tags += ["text-classification"] if any(task.labels for task in info.tasks.values()) else []
    lines = ["---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity"]
    lines += ["tags:", *(f"- {tag}" for tag in tags), "---"]
    return "\n".join(lines)


def _summary(info: ModelInfo, config: EncoderConfig) -> str:
    does = "embeds sentences"
    if headed := [name for name, task in info.tasks.items() if task.answers]:
        does += f" and has heads for {_listed(headed)}"
    lines = [
        "# A Tercet model",
        "",
        f"One encoder that {does}.",
        "",
        f"- Encoder: {info.encoder} ({config.model_type}, {config.layers} layers, width "
        f"{config.width}), pooling {info.pooling}, at most {info.max_tokens} tokens.",
    ]
    if info.widths is not None:
        widths = _listed([str(width) for width in info.widths])
        lines.append(
            f"- Widths: vectors can be shortened to their first {widths} numbers: "
            "`embed(texts, width=...)` in Tercet, `SentenceTransformer(FOLDER, truncate_dim=...)` "
            "in sentence-transformers, where `encode` then needs `normalize_embeddings=True`."
        )
    if info.depths is not None:
        depths = _listed([str(depth) for depth in info.depths])
        lines.append(
            f"- Depths: it also answers after its first {depths} layers, faster and less "
            'accurately: `tercet.load("FOLDER", layers=...)`; `tercet export --layers` writes such '
            "a model for other libraries."
        )
    if info.recipe is not None:
        lines.append(f"- Recipe: {info.recipe}.")
    lines += [
        f"- It uses the {part} of {file}: load that plugin first."
        for part, file in info.plugins.items()
    ]
    return "\n".join(lines)


def _tasks(info: ModelInfo) -> str:
    lines = ["## Tasks", "", "| task | predicts | mode | on dev |", "|---|---|---|---|"]
    for name, task in info.tasks.items():
        if task.like is not None:
            continue
        for mode, spec in task.modes.items():
            measured = (info.metrics or {}).get(name, {}).get(mode, {})
            scores = ", ".join(f"{metric} {_score(value)}" for metric, value in measured.items())
            cells = _labels(task), mode, scores or "not measured"
            if not spec.predicts:
                cells = "nothing; it trains the vectors", mode, ""
            lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += _depths(info)
    lines += ["", "Mode `cross` encodes both sentences jointly; `bi` compares their vectors."]
    for name, modes in (info.thresholds or {}).items():
        for mode, values in modes.items():
            labels = zip(info.tasks[name].labels or (), values, strict=True)
            listed = ", ".join(f"{label} {value:.2f}" for label, value in labels)
            lines += ["", f"Least probabilities of predicted labels of {name} ({mode}): {listed}."]
    lines += [line for name in info.side_tasks for line in ("", side_cost(name))]
    return "\n".join(lines)


def _depths(info: ModelInfo) -> list[str]:
    """What each lesser depth reaches on dev."""
    if not any(known.metrics for known in (info.depths or {}).values()):
        return []
    lines = ["", "| layers | task | mode | on dev |", "|---:|---|---|---|"]
    for depth, known in (info.depths or {}).items():
        for name, modes in (known.metrics or {}).items():
            for mode, measured in modes.items():
                scores = ", ".join(f"{metric} {_score(it)}" for metric, it in measured.items())
                lines.append(f"| {depth} | {name} | {mode} | {scores} |")
    return lines


def side_cost(task: str) -> str:
    """What the side weights of a task cost."""
    return (
        f"Task `{task}` has side weights: its texts are encoded in a pass of their own, besides "
        "the one for vectors and other tasks."
    )


def _labels(task: TaskSpec) -> str:
    if task.labels is not None:
        listed = " / ".join(label.replace("|", "\\|") for label in task.labels)
        return f"any number of {listed}" if task.multi_label else listed
    low, high = task.range or (0.0, 1.0)
    return f"a grade from {low:g} to {high:g}"


def _score(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _usage(info: ModelInfo) -> str:
    calls = ['vectors = model.embed(["A first sentence.", "A second one."])']
    for name, task in info.tasks.items():
        if task.answers:
            inputs = '["A sentence."]' if "single" in task.modes else '[("A", "B")]'
            calls.append(f"model.predict({json.dumps(name)}, {inputs})")
    ours = ["import tercet", "", 'model = tercet.load("FOLDER")', *calls]
    theirs = [
        "from sentence_transformers import SentenceTransformer",
        "",
        'vectors = SentenceTransformer("FOLDER").encode(["A first sentence.", "A second one."])',
    ]
    return "\n\n".join(["## Usage", _code(ours), "Vectors without Tercet:", _code(theirs)])


def _examples(info: ModelInfo) -> str:
    lines = ["## Examples", ""]
    for name, inputs in (info.examples or {}).items():
        lines.append(f"- {name}:")
        rows = [[each] if isinstance(each, str) else each for each in inputs]
        lines += [f"  - {' / '.join(map(_plain, row))}" for row in rows]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text that Markdown shows unchanged on one line."""
    escaped = "".join(f"\\{mark}" if mark in "\\`*_[]<>|#~$&" else mark for mark in text)
    return " ".join(escaped.split())


def _inert(text: str) -> str:
    """Markdown whose names and labels no browser takes for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _code(lines: list[str]) -> str:
    return "\n".join(["```python", *lines, "```"])


def _data(info: ModelInfo) -> str:
    lines = ["## Data", ""]
    for name, task in info.tasks.items():
        taught = f"; teacher: {_listed(task.teacher.names)}" if task.teacher is not None else ""
        lines.append(f"- {name}: {_source(task)}{taught}")
    lines += ["", "The licences of the data may limit how the model may be used."]
    return "\n".join(lines)


def _source(task: TaskSpec) -> str:
    data = task.data
    train = split_files(data, "train")
    # A task that trains the heads of another is not measured itself.
    dev = _listed(split_files(data, "dev")) if task.like is None and has_dev(data) else ""
    share = resolve(data).dev_share
    if share is not None:
        dev = f"{share:.0%} of these rows" if dev else ""
    named = [f"layout {data.layout}"] if data.layout else []
    named += [f"trained on {_listed(train)}"] if train else []
    named += [f"measured on {dev}"] if dev else []
    return "; ".join(named)


def _limits(info: ModelInfo) -> str:
    lines = [
        "## Limits",
        "",
        _long(info),
        "- It fits the language and kinds of text of its training data; evaluate it on yours.",
        "- Probabilities are not calibrated for data with a different class balance.",
        "- It reproduces biases of its training texts.",
    ]
    return "\n".join(lines)


def _long(info: ModelInfo) -> str:
    if info.long == "windows":
        return (
            f"- Longer texts than {info.max_tokens} tokens are read in overlapping windows, which "
            "are averaged; sentence-transformers ignores the rest."
        )
    return (
        f"- Text beyond {info.max_tokens} tokens is ignored, unless it is loaded with "
        '`tercet.load("FOLDER", long="windows")`, which reads all of it.'
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
