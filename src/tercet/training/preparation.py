"""What a run has before its first step: the network, the rows that train and the dev rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from tercet import weights
from tercet.data.examples import Examples, describe_skipped, read_once
from tercet.data.layouts import Split, has_dev
from tercet.data.sketch import Sketch
from tercet.data.table import TaskTable, load_table
from tercet.errors import TercetError
from tercet.folders.model_card import side_cost
from tercet.folders.model_folder import is_model_folder
from tercet.infer.engine import Engine
from tercet.model import find_folder
from tercet.network.network import Network
from tercet.nn.encoder import Encoder
from tercet.nn.fingerprint import fingerprint
from tercet.nn.folder import load_encoder
from tercet.nn.layout import arrange_for_training
from tercet.recipe import Recipe
from tercet.specs import EncoderSpec, EvaluationSpec, StageSpec, tasks_by_depth
from tercet.text.tokenizer import Tokenizer
from tercet.training.distributed import World
from tercet.training.finished import Finished, build_onto, known_rows
from tercet.training.first_step import start_ahead
from tercet.training.head_loss import Targets
from tercet.training.listener import Listener
from tercet.training.losses import Losses, prior_shifts, weights_of_classes
from tercet.training.masking import Masking
from tercet.training.parts import choose_trainable
from tercet.training.solve import check_solvable
from tercet.training.surgery import GradientSurgery
from tercet.training.training_rows import TrainingRows


@dataclass(frozen=True, slots=True)
class Prepared:
    """A recipe's network and data.

    tables: the rows that train, of each task that trains
    targets: of tasks with a teacher, what it gives for these rows
    dev: the dev rows of each task that is scored; on the main process only
    weights: the name of the encoder and the fingerprint of its weights
    digests: of the rows of each task and split as they were read, and of the weights; on the main
        process only
    finished: the model that the recipe's tasks are added to, if any
    sketch: of the rows that train, where the recipe records them, and of those that the model to
        start from was trained on, where that is known; on the main process only
    left_out: how many rows of each task were left out so that others stay unseen, by the reason
    """

    recipe: Recipe
    network: Network
    tokenizer: Tokenizer
    tables: Mapping[str, TaskTable]
    targets: Mapping[str, Targets]
    dev: Mapping[str, TaskTable]
    weights: str
    digests: Mapping[str, str]
    finished: Finished | None = None
    sketch: Sketch | None = None
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def losses(self, world: World) -> Losses:
        recipe = self.recipe
        return Losses(
            network=self.network,
            tasks=recipe.tasks,
            tables=self.tables,
            template=self.tokenizer.template,
            max_tokens=recipe.encoder.max_tokens,
            world=world,
            masking=self._masking(),
            targets=self.targets,
            shifts=prior_shifts(recipe.tasks, self.tables),
            class_weights=weights_of_classes(recipe.tasks, self.tables, world.device),
            widths=lesser_widths(recipe.encoder, self.network) or (),
            depths=recipe.encoder.depths,
        )

    def engine(self, *, bf16: bool) -> Engine:
        """Runs the network as it is now."""
        limit = self.recipe.encoder.max_tokens
        return Engine(self.network, self.tokenizer.template, limit, bf16=bf16)

    def _masking(self) -> Masking | None:
        if not self.network.masked_objectives:
            return None
        if self.tokenizer.mask_id is None:
            raise TercetError(
                f"objective `masked-language-model`: the tokenizer of {self.recipe.encoder.name} "
                "has no mask token."
            )
        return Masking(
            mask_id=self.tokenizer.mask_id,
            special_ids=self.tokenizer.special_ids,
            vocabulary=self.network.encoder.config.vocabulary,
        )


def prepare(recipe: Recipe, *, data: Path, world: World, listener: Listener) -> Prepared:
    """Load the encoder, build the network, read the data and query teachers."""
    read = read_once(recipe.tasks, data)
    load = partial(_load_tables, recipe, data=data, read=read, listener=listener)
    with world.all_or_none():
        network, tokenizer, finished, name, published = _build(recipe)
        network.to(world.device)
        arrange_for_training(network.encoder)
        start_ahead(recipe, network, world.device)
        if finished is not None and (kept := ", ".join(finished.info.tasks)):
            listener.say(f"{recipe.onto} keeps its tasks as they are: {kept}.")
        if finished is not None and finished.left_out:
            depths = ", ".join(map(str, finished.left_out))
            listener.say(
                f"{recipe.onto} also answers after {depths} layers, which the new model does not: "
                "`encoder.depths` would keep them."
            )
        for task in network.sides:
            listener.say(side_cost(task))
        tables = load("train", tokenizer)
        dev = load("dev", tokenizer) if world.is_main else {}
        _check_stages(recipe, network)
        digests = {"encoder": name}
        if world.is_main:
            for split, read_tables in (("train", tables), ("dev", dev)):
                digests |= {f"{task} {split}": t.digest() for task, t in read_tables.items()}
    bf16 = world.device.type == "cuda"
    # Vectors of an encoder that is cut to its first layers say little about what is near.
    whole = Network(published, pooling=network.pooling, tasks={}).to(world.device)
    engine = Engine(whole, tokenizer.template, recipe.encoder.max_tokens, bf16=bf16)
    rows = TrainingRows(recipe, read=read, engine=engine, listener=listener, data=data)
    targets: dict[str, Targets] = {}
    # The other processes find in the cache what the main process has made.
    for is_main in (True, False):
        with world.all_or_none():
            if world.is_main == is_main:
                tables = rows.choose(tables)
                targets = rows.targets()
    sketch = None
    if world.is_main:
        recorded = rows.record() if recipe.record_rows else None
        sketch = _joined(recorded, known_rows(recipe))
    return Prepared(
        recipe,
        network,
        tokenizer,
        tables,
        targets,
        dev,
        name,
        digests,
        finished,
        sketch,
        rows.left_out,
    )


def _joined(*sketches: Sketch | None) -> Sketch | None:
    parts = [part for sketch in sketches if sketch is not None for part in sketch.parts]
    return Sketch(tuple(parts)) if parts else None


def _identify(recipe: Recipe, encoder: Encoder) -> str:
    """The encoder's name and the fingerprint of its weights, which must be those of the name."""
    identity = fingerprint(encoder)
    weights.check_known(recipe.encoder.name, fingerprint=identity)
    return f"{recipe.encoder.name} {identity}"


class _Built(NamedTuple):
    """finished: the model that the recipe's tasks are added to
    name: the name and fingerprint of the encoder
    published: the encoder before it was cut to its first layers; both share these
    """

    network: Network
    tokenizer: Tokenizer
    finished: Finished | None
    name: str
    published: Encoder


def _build(recipe: Recipe) -> _Built:
    if recipe.onto is not None:
        network, tokenizer, finished = build_onto(recipe)
        name = _identify(recipe, network.encoder)
        return _Built(network, tokenizer, finished, name, network.encoder)
    spec = recipe.encoder
    folder, _ = find_folder(spec.name)
    encoder = load_encoder(folder, dropout=spec.dropout, attention_dropout=spec.attention_dropout)
    name, published = _identify(recipe, encoder), encoder
    if spec.layers is not None:
        encoder = _first_layers(encoder, spec.layers, name=spec.name)
        name = f"{name}, first {spec.layers} layers"
    tokenizer = Tokenizer.load(folder, is_saved=is_model_folder(folder))
    tokenizer.check_fits(encoder.config.vocabulary, token_types=encoder.config.token_types)
    if spec.max_tokens > encoder.config.max_tokens:
        raise TercetError(
            f"`encoder.max_tokens` is {spec.max_tokens}, but {spec.name} takes "
            f"{encoder.config.max_tokens} at most."
        )
    if spec.widths is not None and spec.widths[-1] > encoder.config.width:
        raise TercetError(
            f"`encoder.widths` has {spec.widths[-1]}, but vectors of {spec.name} are only "
            f"{encoder.config.width} wide."
        )
    if spec.pooling == "pooler" and encoder.pooler is None:
        raise TercetError(
            f"`encoder.pooling` is pooler, but {spec.name} has no pooler; use mean or cls."
        )
    if spec.depths is not None and spec.depths.layers[-1] > encoder.config.layers:
        raise TercetError(
            f"`encoder.depths` has {spec.depths.layers[-1]}, but {spec.name} has only "
            f"{encoder.config.layers} layers."
        )
    torch.manual_seed(recipe.seed)
    depths = tasks_by_depth(spec.depths, recipe.tasks, full=encoder.config.layers)
    network = Network(encoder, pooling=spec.pooling, tasks=recipe.tasks, depths=depths)
    return _Built(network, tokenizer, None, name, published)


def _first_layers(encoder: Encoder, count: int, *, name: str) -> Encoder:
    if count > encoder.config.layers:
        raise TercetError(
            f"`encoder.layers` is {count}, but {name} has only {encoder.config.layers} layers."
        )
    return encoder.first(count)


def lesser_widths(spec: EncoderSpec, network: Network) -> list[int] | None:
    """The widths to which vectors can be cut; None: no other than the full one."""
    full = network.encoder.config.width
    return [width for width in spec.widths or () if width < full] or None


def _check_stages(recipe: Recipe, network: Network) -> None:
    """Raise what would stop a later stage before anything is written."""
    for stage in recipe.stages:
        _check_scored(recipe, stage)
        choose_trainable(network, stage, tasks=recipe.stage_tasks(stage))
        if stage.solve:
            names = recipe.stage_tasks(stage)
            check_solvable(network, {name: recipe.tasks[name] for name in names})
        if stage.surgery is not None:
            GradientSurgery(stage.surgery)


def scored_tasks(recipe: Recipe, evaluation: EvaluationSpec) -> list[str]:
    """Names of the tasks that are scored and have dev rows."""
    return [name for name in recipe.scored_tasks(evaluation) if has_dev(recipe.tasks[name].data)]


def _check_scored(recipe: Recipe, stage: StageSpec) -> None:
    """Raise if the recipe names a task that cannot be scored, for lack of dev rows."""
    evaluation = recipe.evaluation_of(stage)
    named = dict.fromkeys(evaluation.tasks or (), "evaluation.tasks")
    if "." in evaluation.score:
        named[evaluation.score.partition(".")[0]] = "evaluation.score"
    if stage.schedule.after_score is not None:
        named |= dict.fromkeys(recipe.stage_tasks(stage), f"schedule `{stage.schedule.kind}`")
    for task, key in named.items():
        if not has_dev(recipe.tasks[task].data):
            raise TercetError(
                f"{key} needs dev rows of task `{task}`; name files with `data.dev`, or set a "
                "share such as `dev = 0.15`."
            )


def _load_tables(
    recipe: Recipe,
    split: Split,
    tokenizer: Tokenizer,
    *,
    data: Path,
    read: Callable[[str, Split], Examples],
    listener: Listener,
) -> dict[str, TaskTable]:
    """The tables of all tasks that train, or of all that are scored."""
    limit, long = recipe.encoder.max_tokens, recipe.encoder.long
    names: set[str] = set()
    for stage in recipe.stages:
        scored = recipe.scored_tasks(recipe.evaluation_of(stage))
        names |= set(recipe.stage_tasks(stage) if split == "train" else scored)
    tables = {}
    for name, task in recipe.tasks.items():
        if name in names and split == "dev" and not has_dev(task.data):
            listener.say(f"{name} has no dev rows and is not scored; `data.dev` names them.")
        elif name in names:
            table = load_table(
                task,
                split,
                data,
                tokenizer,
                limit=limit,
                long=long,
                read=partial(read, name, split),
            )
            listener.say(_describe_table(name, split, table, recipe.encoder))
            tables[name] = table
    return tables


def _describe_table(name: str, split: str, table: TaskTable, encoder: EncoderSpec) -> str:
    limit = encoder.max_tokens
    cut = sum(int((column.lengths > limit).sum()) for column in table.columns)
    notes = [f"{name} {split}: {len(table):,} rows"]
    if cut:
        windows = "read in windows" if split == "dev" else "read in windows, but for training steps"
        how = "truncated" if encoder.long == "truncate" else windows
        notes.append(f"{cut:,} texts are longer than {limit} tokens and are {how}")
    further = f" {describe_skipped(table.skipped)} {table.remark}"
    return f"{'; '.join(notes)}.{further.rstrip()}"
