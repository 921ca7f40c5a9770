"""A run: from a recipe and a data folder to a folder with metrics, checkpoints and the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tercet import weights
from tercet.data.examples import describe_skipped
from tercet.data.table import TaskTable, load_table
from tercet.errors import TercetError
from tercet.evaluate.scaling import with_scalings
from tercet.evaluate.scoring import score_of, score_tables
from tercet.folders.model_card import Metrics, ModelInfo
from tercet.folders.model_folder import Parts, save_model_folder
from tercet.infer.engine import Engine
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.fingerprint import fingerprint
from tercet.nn.folder import load_encoder
from tercet.recipe import Recipe
from tercet.specs import Scalings, StageSpec
from tercet.text.tokenizer import Tokenizer
from tercet.train.checkpoint import Checkpoint, Checkpoints
from tercet.train.distributed import World
from tercet.train.head_loss import Targets
from tercet.train.journal import Journal
from tercet.train.listener import Listener, Silent
from tercet.train.loop import Loop, Position
from tercet.train.losses import Losses, prior_shifts
from tercet.train.made_with import made_with
from tercet.train.masking import Masking
from tercet.train.parts import choose_trainable
from tercet.train.plan import Draw
from tercet.train.preparation import Preparation
from tercet.train.run_folder import RunFolder
from tercet.train.surgery import GradientSurgery


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a finished run leaves."""

    model: Path
    dev: Metrics


def train_recipe(
    recipe: Recipe,
    *,
    data: Path,
    out: Path,
    resume: bool = False,
    device: str | None = None,
    tensorboard: bool = False,
    listener: Listener,
) -> RunResult | None:
    """Train a recipe; what it leaves, on the process that leads."""
    world = World.join(device)
    try:
        run = Run(recipe, data=data, out=out, world=world, listener=listener)
        return run.train(resume=resume, tensorboard=tensorboard)
    finally:
        world.leave()


class Run:
    """One recipe on its way to a model."""

    def __init__(
        self, recipe: Recipe, *, data: Path, out: Path, world: World, listener: Listener
    ) -> None:
        self.recipe = recipe
        self.data = data
        self.folder = RunFolder(out, recipe)
        self.world = world
        self.listener = listener if world.leads else Silent()
        self._newest: Metrics | None = None
        """The last scores of all dev rows."""
        self._weights = ""
        """The encoder's name, and the fingerprint of the weights that the run began with."""

    def train(self, *, resume: bool, tensorboard: bool) -> RunResult | None:
        with self.world.in_step():
            if self.world.leads:
                self.folder.check(resume=resume)
        if resume and self.folder.is_finished:
            self.listener.say(f"{self.folder.path} is finished; there is nothing to resume.")
            return self._finished()
        with self.world.in_step():
            network, tokenizer = self._build()
            tables = self._tables("train", tokenizer)
            dev = self._tables("dev", tokenizer) if self.world.leads else {}
            self._check_stages(network)
        tables, targets = self._prepare(network, tokenizer, tables)
        with self._told():
            losses = self._losses(network, tokenizer, tables, targets)
            return self._train(losses, tokenizer, dev, resume=resume, tensorboard=tensorboard)

    def _train(
        self,
        losses: Losses,
        tokenizer: Tokenizer,
        dev: dict[str, TaskTable],
        *,
        resume: bool,
        tensorboard: bool,
    ) -> RunResult | None:
        """All that writes into the run folder."""
        network, tables = losses.network, losses.tables
        listener = self._with_curves(self.listener) if tensorboard else self.listener
        if self.world.leads:
            self.folder.open()
        self.world.wait()
        checkpoints = Checkpoints(
            self.folder.checkpoints, keep=self.recipe.checkpoint.keep, say=self.listener.say
        )
        start = checkpoints.newest() if resume else None
        if resume:
            self.listener.say(_where(start))
        length = int(start.state["journal"]) if start is not None else 0
        with self.folder.journal(length=length, leads=self.world.leads) as stream:
            loop = Loop(
                self.recipe,
                losses=losses,
                journal=Journal(stream, describe=lambda draw: _describe(tables[draw.task], draw)),
                checkpoints=checkpoints,
                listener=listener,
                score=self._scorer(network, tokenizer, dev),
            )
            position = loop.run(start)
        return self._finish(network, tokenizer, dev, position)

    def _build(self) -> tuple[Network, Tokenizer]:
        spec = self.recipe.encoder
        folder = weights.resolve(spec.name)
        tokenizer = Tokenizer.load(folder)
        encoder = load_encoder(
            folder, dropout=spec.dropout, attention_dropout=spec.attention_dropout
        )
        found = fingerprint(encoder)
        weights.check_known(spec.name, fingerprint=found)
        self._weights = f"{spec.name} {found}"
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
        torch.manual_seed(self.recipe.seed)
        network = Network(encoder, pooling=spec.pooling, tasks=self.recipe.tasks)
        return network.to(self.world.device), tokenizer

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong while training is told once, a full disk with the place."""
        try:
            yield
        except OSError as error:
            where, why = error.filename or self.folder.path, error.strerror or error
            raise TercetError(
                f"{where}: cannot be written ({why}); when that is mended, go on with --resume."
            ) from error
        except TercetError as error:
            # Losses are the same on every process, and only the one that leads writes.
            if self.world.leads:
                raise
            raise TercetError("") from error

    def _check_stages(self, network: Network) -> None:
        """Find out before anything is written what would stop a stage."""
        for stage in self.recipe.stages:
            choose_trainable(network, stage, tasks=self.recipe.stage_tasks(stage))
            if stage.surgery is not None:
                GradientSurgery(stage.surgery)

    def _tables(self, split: Any, tokenizer: Tokenizer) -> dict[str, TaskTable]:
        """The tables of a split: of all tasks that train, or of all that are scored."""
        wanted: set[str] = set()
        for stage in self.recipe.stages:
            evaluation = self.recipe.evaluation_of(stage)
            trains = split == "train"
            wanted |= set(
                self.recipe.stage_tasks(stage) if trains else self.recipe.scored_tasks(evaluation)
            )
        tables = {}
        for name, task in self.recipe.tasks.items():
            if name in wanted:
                table = load_table(
                    task, split, self.data, tokenizer, limit=self.recipe.encoder.max_tokens
                )
                self.listener.say(self._table_line(name, split, table))
                tables[name] = table
        return tables

    def _table_line(self, name: str, split: str, table: TaskTable) -> str:
        limit = self.recipe.encoder.max_tokens
        cut = sum(int((column.lengths > limit).sum()) for column in table.columns)
        notes = [f"{name} {split}: {len(table):,} rows"]
        notes += [f"{cut:,} texts are longer than {limit} tokens and are cut"] if cut else []
        return "; ".join(notes) + f". {describe_skipped(table.skipped)}".rstrip()

    def _prepare(
        self, network: Network, tokenizer: Tokenizer, tables: dict[str, TaskTable]
    ) -> tuple[dict[str, TaskTable], dict[str, Targets]]:
        """The rows that train, and what teachers say of them."""
        engine = Engine(
            network,
            tokenizer.template,
            self.recipe.encoder.max_tokens,
            bf16=self.world.device.type == "cuda",
        )
        prepare = Preparation(self.recipe, data=self.data, engine=engine, listener=self.listener)
        prepared: tuple[dict[str, TaskTable], dict[str, Targets]] = {}, {}
        # What the process that leads makes, the others find in the cache.
        for turn in (True, False):
            with self.world.in_step():
                if self.world.leads == turn:
                    prepared = prepare(tables)
        return prepared

    def _losses(
        self,
        network: Network,
        tokenizer: Tokenizer,
        tables: dict[str, TaskTable],
        targets: dict[str, Targets],
    ) -> Losses:
        return Losses(
            network=network,
            tasks=self.recipe.tasks,
            tables=tables,
            template=tokenizer.template,
            max_tokens=self.recipe.encoder.max_tokens,
            world=self.world,
            masking=self._masking(network, tokenizer),
            targets=targets,
            shifts=prior_shifts(self.recipe.tasks, tables),
            widths=self.recipe.encoder.widths or (),
        )

    def _masking(self, network: Network, tokenizer: Tokenizer) -> Masking | None:
        if not network.masked_objectives:
            return None
        if tokenizer.mask_id is None:
            raise TercetError(
                f"objective `masked-language-model`: the tokenizer of {self.recipe.encoder.name} "
                "has no mask token."
            )
        return Masking(
            mask_id=tokenizer.mask_id,
            special_ids=tokenizer.special_ids,
            vocabulary=network.encoder.config.vocabulary,
        )

    def _scorer(
        self, network: Network, tokenizer: Tokenizer, dev: dict[str, TaskTable]
    ) -> Callable[[StageSpec], tuple[Metrics, float]] | None:
        if not any(task.answers for task in self.recipe.tasks.values()):
            return None

        def score(stage: StageSpec) -> tuple[Metrics, float]:
            evaluation = self.recipe.evaluation_of(stage)
            chosen = {name: dev[name] for name in self.recipe.scored_tasks(evaluation)}
            metrics = self._metrics(network, tokenizer, chosen, rows=evaluation.rows)
            whole = evaluation.rows is None and metrics.keys() == dev.keys()
            self._newest = metrics if whole else None
            return metrics, score_of(metrics, self.recipe.tasks, evaluation.score)

        return score

    def _metrics(
        self,
        network: Network,
        tokenizer: Tokenizer,
        dev: dict[str, TaskTable],
        *,
        rows: int | None = None,
        scalings: Scalings | None = None,
    ) -> Metrics:
        return score_tables(
            network,
            dev,
            self.recipe.tasks,
            tokenizer.template,
            self.recipe.encoder.max_tokens,
            rows,
            scalings=scalings,
            bf16=self.world.device.type == "cuda",
        )

    def _finish(
        self,
        network: Network,
        tokenizer: Tokenizer,
        dev: dict[str, TaskTable],
        position: Position,
    ) -> RunResult | None:
        """Write the model folder, and last the summary that says that the run is done."""
        if not self.world.leads:
            self.world.wait()
            return None
        kept = position.kept_steps[-1]
        # The last step of a run has just been scored; only other weights need it now.
        metrics = self._newest if kept == position.total else None
        if metrics is None:
            metrics = self._metrics(network, tokenizer, dev)
        spec = self.recipe.encoder
        info = ModelInfo(
            encoder=spec.name,
            pooling=spec.pooling,
            max_tokens=spec.max_tokens,
            tasks={name: task.without_places() for name, task in self.recipe.tasks.items()},
            recipe=self.recipe.name,
            metrics=metrics,
            widths=spec.widths,
        )
        if kept_apart := [name for name, task in self.recipe.tasks.items() if task.held_out > 0.0]:
            self.listener.say(f"Calibrating {' and '.join(kept_apart)} on held-out rows.")
            model = Model(network, tokenizer, info)
            info = with_scalings(model, kept_apart, self.data)
            metrics = self._metrics(network, tokenizer, dev, scalings=info.scalings)
            info = info.model_copy(update={"metrics": metrics})
        save_model_folder(self.folder.model, Parts(network, tokenizer, info))
        summary = {
            "steps": position.total,
            "kept": kept,
            "score": position.best,
            "dev": metrics,
            "rows": {name: len(table) for name, table in dev.items()},
            "made_with": made_with(self.world.device, weights=self._weights),
        }
        self.folder.finish(summary, kept=position.kept_steps)
        self.listener.say(f"The model is the one after step {kept} of {position.total}.")
        self.world.wait()
        return RunResult(self.folder.model, metrics)

    def _finished(self) -> RunResult | None:
        if not self.world.leads:
            return None
        return RunResult(self.folder.model, self.folder.summary()["dev"])

    def _with_curves(self, listener: Listener) -> Listener:
        if not self.world.leads:
            return listener
        from tercet.train.curves import Curves

        return Curves(self.folder.curves, listener)


def _where(start: Checkpoint | None) -> str:
    if start is None:
        return "No checkpoint to resume from: the run begins anew."
    return f"Resuming after step {start.state['position']['total']}."


def _describe(table: TaskTable, draw: Draw) -> str:
    """Where the first and the last rows of a batch stand, for messages."""
    return f"a batch of {len(draw.rows)} rows from {table.where(int(draw.rows[0]))} to " + (
        table.where(int(draw.rows[-1]))
    )
