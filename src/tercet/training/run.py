"""A run: from a recipe and a data folder to a folder with metrics, checkpoints and the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tercet.data.found import with_found_labels
from tercet.data.sketch import Sketch
from tercet.data.table import TaskTable
from tercet.errors import ArgumentError, ReportedElsewhereError, TercetError
from tercet.evaluation.scaling import with_scalings
from tercet.evaluation.scoring import DevScores, score_of, score_tables
from tercet.folders.model_card import Metrics, ModelInfo
from tercet.folders.model_folder import Parts, save_model_folder
from tercet.model import Model
from tercet.recipe import Recipe
from tercet.specs import Scalings, StageSpec, Thresholds
from tercet.training.checkpoint import Checkpoint, Checkpoints
from tercet.training.distributed import World
from tercet.training.environment import describe_environment
from tercet.training.finished import complete
from tercet.training.listener import Listener, Silent
from tercet.training.loop import Loop, Position, StageScore
from tercet.training.metrics_log import MetricsLog
from tercet.training.plan import Draw
from tercet.training.preparation import Prepared, prepare, scored_tasks
from tercet.training.run_folder import RunFolder


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
    """Train a recipe; the result is None on all processes but the main one.

    Labels and ranges that it does not list are found in the training files first.
    """
    world = World.join(device)
    try:
        with world.all_or_none():
            recipe = with_found_labels(complete(recipe), data)
        run = Run(recipe, data=data, out=out, world=world, listener=listener)
        return run.train(resume=resume, tensorboard=tensorboard)
    finally:
        world.leave()


class Run:
    """The training of one recipe into one folder."""

    def __init__(
        self, recipe: Recipe, *, data: Path, out: Path, world: World, listener: Listener
    ) -> None:
        self.recipe = recipe
        self.data = data
        self.folder = RunFolder(out, recipe)
        self.world = world
        self.listener = listener if world.is_main else Silent()
        self._newest: Metrics | None = None
        """The last scores, if of all dev rows."""

    def train(self, *, resume: bool, tensorboard: bool) -> RunResult | None:
        with self.world.all_or_none():
            if self.world.is_main:
                self.folder.check(resume=resume)
        if resume and self.folder.is_finished:
            self.listener.say(f"{self.folder.path} is finished; there is nothing to resume.")
            dev = self.folder.summary()["dev"]
            return RunResult(self.folder.model, dev) if self.world.is_main else None
        prepared = prepare(self.recipe, data=self.data, world=self.world, listener=self.listener)
        with self._one_report():
            return self._train(prepared, resume=resume, tensorboard=tensorboard)

    def _train(self, prepared: Prepared, *, resume: bool, tensorboard: bool) -> RunResult | None:
        """Everything that writes into the run folder."""
        losses = prepared.losses(self.world)
        listener = self.listener
        if tensorboard and self.world.is_main:
            from tercet.training.curves import Curves

            listener = Curves(self.folder.curves, listener)
        if self.world.is_main:
            self.folder.open()
        self.world.wait()
        checkpoints = Checkpoints(
            self.folder.checkpoints, keep=self.recipe.checkpoint.keep, say=self.listener.say
        )
        start = checkpoints.newest() if resume else None
        if resume:
            self.listener.say(_describe_start(start))
        length = int(start.state["journal"]) if start is not None else 0
        with self.folder.open_metrics(length=length, is_main=self.world.is_main) as stream:
            loop = Loop(
                self.recipe,
                losses=losses,
                log=MetricsLog(stream, describe=lambda draw: _describe(losses.tables, draw)),
                checkpoints=checkpoints,
                listener=listener,
                score=self._scorer(prepared),
            )
            position = loop.run(start)
        return self._finish(prepared, position)

    @contextmanager
    def _one_report(self) -> Iterator[None]:
        """Only the main process reports an error: losses are the same on all, and it alone writes.

        An error while writing names the path.
        """
        try:
            yield
        except OSError as error:
            where, why = error.filename or self.folder.path, error.strerror or error
            raise ArgumentError(
                f"{where}: cannot be written ({why}); correct that and continue with `resume`.",
                "resume",
            ) from error
        except TercetError as error:
            if self.world.is_main:
                raise
            raise ReportedElsewhereError from error

    def _scorer(self, prepared: Prepared) -> Callable[[StageSpec], StageScore] | None:
        stages = map(self.recipe.evaluation_of, self.recipe.stages)
        if not any(scored_tasks(self.recipe, evaluation) for evaluation in stages):
            return None

        def score(stage: StageSpec) -> StageScore:
            evaluation = self.recipe.evaluation_of(stage)
            names = scored_tasks(self.recipe, evaluation)
            scores = self._scores(prepared, names, rows=evaluation.rows)
            metrics = scores.metrics
            whole = evaluation.rows is None and metrics.keys() == prepared.dev.keys()
            self._newest = metrics if whole else None
            value = score_of(metrics, self.recipe.tasks, evaluation.score)
            return StageScore(metrics, score=value, loss=scores.loss)

        return score

    def _scores(
        self,
        prepared: Prepared,
        names: Sequence[str] | None = None,
        *,
        rows: int | None = None,
        scalings: Scalings | None = None,
        thresholds: Thresholds | None = None,
    ) -> DevScores:
        """Of some tasks on dev; default: all that are scored."""
        return score_tables(
            prepared.network,
            {name: prepared.dev[name] for name in (prepared.dev if names is None else names)},
            self.recipe.tasks,
            prepared.tokenizer.template,
            self.recipe.encoder.max_tokens,
            rows,
            scalings=scalings,
            thresholds=thresholds,
            bf16=self.world.device.type == "cuda",
        )

    def _finish(self, prepared: Prepared, position: Position) -> RunResult | None:
        """Write the model folder, and then the summary, which marks the run as finished."""
        if not self.world.is_main:
            self.world.wait()
            return None
        step = position.kept_steps[-1]
        # The last step of a run has just been scored; only other weights need it now.
        metrics = self._newest if step == position.total else None
        if metrics is None:
            metrics = self._scores(prepared).metrics
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
        if held_out := [name for name, task in self.recipe.tasks.items() if task.held_out > 0.0]:
            self.listener.say(f"Calibrating {' and '.join(held_out)} on held-out rows.")
            model = Model(prepared.network, prepared.tokenizer, info)
            info = with_scalings(model, held_out, self.data)
            metrics = self._scores(
                prepared, scalings=info.scalings, thresholds=info.thresholds
            ).metrics
            info = info.model_copy(update={"metrics": metrics})
        finished = prepared.finished
        if finished is not None:
            info = finished.info.with_added(info)
        save_model_folder(
            self.folder.model,
            Parts(prepared.network, prepared.tokenizer, info),
            types=finished.types if finished is not None else {},
            sketch=_joined(prepared.sketch, finished.sketch if finished is not None else None),
        )
        summary = {
            "steps": position.total,
            "kept": step,
            "score": position.best,
            "dev": metrics,
            "rows": {name: len(table) for name, table in prepared.dev.items()},
            "made_with": describe_environment(self.world.device, weights=prepared.weights),
        }
        self.folder.finish(summary, kept_steps=position.kept_steps)
        self.listener.say(f"The model is the one after step {step} of {position.total}.")
        self.world.wait()
        return RunResult(self.folder.model, metrics)


def _joined(*sketches: Sketch | None) -> Sketch | None:
    parts = [part for sketch in sketches if sketch is not None for part in sketch.parts]
    return Sketch(tuple(parts)) if parts else None


def _describe_start(start: Checkpoint | None) -> str:
    if start is None:
        return "No checkpoint to resume from: the run starts again."
    return f"Resuming after step {start.state['position']['total']}."


def _describe(tables: Mapping[str, TaskTable], draw: Draw) -> str:
    """Where the first and the last rows of a batch are, for messages."""
    first, last = (tables[draw.task].where(int(draw.rows[place])) for place in (0, -1))
    return f"a batch of {len(draw.rows)} rows from {first} to {last}"
