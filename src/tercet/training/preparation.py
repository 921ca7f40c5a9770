"""What a run has before its first step: the network, the rows that train and the dev rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from tercet import weights
from tercet.data.examples import Examples, describe_skipped, read_once
from tercet.data.layouts import Split
from tercet.data.table import TaskTable, load_table
from tercet.errors import TercetError
from tercet.infer.engine import Engine
from tercet.network.network import Network
from tercet.nn.fingerprint import fingerprint
from tercet.nn.folder import load_encoder
from tercet.recipe import Recipe
from tercet.text.tokenizer import Tokenizer
from tercet.training.distributed import World
from tercet.training.head_loss import Targets
from tercet.training.listener import Listener
from tercet.training.losses import Losses, prior_shifts
from tercet.training.masking import Masking
from tercet.training.parts import choose_trainable
from tercet.training.surgery import GradientSurgery
from tercet.training.training_rows import TrainingRows


@dataclass(frozen=True, slots=True)
class Prepared:
    """A recipe's network and data.

    tables: the rows that train, of each task that trains
    targets: of tasks with a teacher, what it gives for these rows
    dev: the dev rows of each task that is scored; on the main process only
    weights: the name of the encoder and the fingerprint of its weights
    """

    recipe: Recipe
    network: Network
    tokenizer: Tokenizer
    tables: Mapping[str, TaskTable]
    targets: Mapping[str, Targets]
    dev: Mapping[str, TaskTable]
    weights: str

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
            widths=recipe.encoder.widths or (),
        )

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
        network, tokenizer, name = _build(recipe)
        network.to(world.device)
        tables = load("train", tokenizer)
        dev = load("dev", tokenizer) if world.is_main else {}
        _check_stages(recipe, network)
    bf16 = world.device.type == "cuda"
    engine = Engine(network, tokenizer.template, recipe.encoder.max_tokens, bf16=bf16)
    rows = TrainingRows(recipe, read=read, engine=engine, listener=listener)
    targets: dict[str, Targets] = {}
    # The other processes find in the cache what the main process has made.
    for is_main in (True, False):
        with world.all_or_none():
            if world.is_main == is_main:
                tables, targets = rows.choose(tables)
    return Prepared(recipe, network, tokenizer, tables, targets, dev, name)


def _build(recipe: Recipe) -> tuple[Network, Tokenizer, str]:
    """The network, its tokenizer, and the name and fingerprint of the encoder's weights."""
    spec = recipe.encoder
    folder = weights.resolve(spec.name)
    tokenizer = Tokenizer.load(folder)
    encoder = load_encoder(folder, dropout=spec.dropout, attention_dropout=spec.attention_dropout)
    identity = fingerprint(encoder)
    weights.check_known(spec.name, fingerprint=identity)
    tokenizer.check_fits(encoder.config.vocabulary)
    if spec.max_tokens > encoder.config.max_tokens:
        raise TercetError(
            f"`encoder.max_tokens` is {spec.max_tokens}, but {spec.name} takes "
            f"{encoder.config.max_tokens} at most."
        )
    if spec.widths is not None and spec.widths[-1] >= encoder.config.width:
        raise TercetError(
            f"`encoder.widths` has {spec.widths[-1]}, but vectors of {spec.name} are only "
            f"{encoder.config.width} wide."
        )
    if spec.pooling == "pooler" and encoder.pooler is None:
        raise TercetError(
            f"`encoder.pooling` is pooler, but {spec.name} has no pooler; use mean or cls."
        )
    torch.manual_seed(recipe.seed)
    network = Network(encoder, pooling=spec.pooling, tasks=recipe.tasks)
    return network, tokenizer, f"{spec.name} {identity}"


def _check_stages(recipe: Recipe, network: Network) -> None:
    """Raise what would stop a later stage before anything is written."""
    for stage in recipe.stages:
        choose_trainable(network, stage, tasks=recipe.stage_tasks(stage))
        if stage.surgery is not None:
            GradientSurgery(stage.surgery)


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
    limit = recipe.encoder.max_tokens
    names: set[str] = set()
    for stage in recipe.stages:
        scored = recipe.scored_tasks(recipe.evaluation_of(stage))
        names |= set(recipe.stage_tasks(stage) if split == "train" else scored)
    tables = {}
    for name, task in recipe.tasks.items():
        if name in names:
            table = load_table(
                task, split, data, tokenizer, limit=limit, read=partial(read, name, split)
            )
            listener.say(_describe_table(name, split, table, limit=limit))
            tables[name] = table
    return tables


def _describe_table(name: str, split: str, table: TaskTable, *, limit: int) -> str:
    cut = sum(int((column.lengths > limit).sum()) for column in table.columns)
    notes = [f"{name} {split}: {len(table):,} rows"]
    notes += [f"{cut:,} texts are longer than {limit} tokens and are cut"] if cut else []
    return "; ".join(notes) + f". {describe_skipped(table.skipped)}".rstrip()
