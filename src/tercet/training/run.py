"""A run: from a recipe and a data folder to a folder with metrics, checkpoints and the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tercet.data.found import with_found_labels
from tercet.data.table import TaskTable
from tercet.errors import ArgumentError, ReportedElsewhereError, TercetError
from tercet.evaluation.simple_scores import Baselines, read_baselines, write_baselines
from tercet.folders.model_card import Metrics, ModelInfo
from tercet.folders.model_folder import Parts, save_model_folder
from tercet.recipe import Recipe
from tercet.training.assessment import Assessment
from tercet.training.baselines import measure_baselines
from tercet.training.checkpoint import Checkpoint, Checkpoints, NoCheckpoints
from tercet.training.distributed import World
from tercet.training.environment import describe_environment
from tercet.training.finished import complete
from tercet.training.first_vectors import FirstVectors
from tercet.training.listener import Listener, Silent
from tercet.training.loop import Limit, Loop, Position
from tercet.training.metrics_log import MetricsLog
from tercet.training.plan import Draw
from tercet.training.preparation import Prepared, prepare
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
    changed_data: bool = False,
    device: str | None = None,
    tensorboard: bool = False,
    listener: Listener,
    baselines: Baselines | None = None,
    limit: Limit | None = None,
    first: FirstVectors | None = None,
    resumable: bool = True,
) -> RunResult | None:
    """Train a recipe; the result is None on all processes but the main one.

    Labels and ranges that it does not list are found in the training files first.

    baselines: the scores of the simplest models; default: they are measured
    changed_data: whether a run may resume with other data than it was started with
    limit: what may shorten stages while they train; the run's recipe then says so
    first: what keeps the vectors of rows before training, for other trainings too
    resumable: whether checkpoints are written; without, stages keep their last weights
    """
    world = World.join(device)
    try:
        with world.all_or_none():
            recipe = with_found_labels(complete(recipe), data)
        run = Run(
            recipe,
            data=data,
            out=out,
            world=world,
            listener=listener,
            baselines=baselines,
            limit=limit,
            first=first,
            resumable=resumable,
        )
        return run.train(resume=resume, changed_data=changed_data, tensorboard=tensorboard)
    finally:
        world.leave()


class Run:
    """The training of one recipe into one folder."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        data: Path,
        out: Path,
        world: World,
        listener: Listener,
        baselines: Baselines | None = None,
        limit: Limit | None = None,
        first: FirstVectors | None = None,
        resumable: bool = True,
    ) -> None:
        self.recipe = recipe
        self._given_baselines = baselines
        self._limit = limit
        self._first = first
        self._resumable = resumable
        self.data = data
        self.folder = RunFolder(out, recipe)
        self.world = world
        self.listener = listener if world.is_main else Silent()

    @property
    def _uses_bf16(self) -> bool:
        return self.world.device.type == "cuda"

    def train(
        self, *, resume: bool, tensorboard: bool, changed_data: bool = False
    ) -> RunResult | None:
        with self.world.all_or_none():
            if self.world.is_main:
                self.folder.check(resume=resume)
        if resume and self.folder.is_finished:
            self.listener.say(f"{self.folder.path} is finished; there is nothing to resume.")
            dev = self.folder.summary().get("dev", {})
            return RunResult(self.folder.model, dev) if self.world.is_main else None
        prepared = prepare(self.recipe, data=self.data, world=self.world, listener=self.listener)
        with self._one_report(), ExitStack() as stack:
            with self.world.all_or_none():
                if self.world.is_main:
                    stack.enter_context(self.folder.locked(resume=resume))
                    self.folder.open(prepared.digests, changed_data=changed_data)
            return self._train(prepared, resume=resume, tensorboard=tensorboard)

    def _train(self, prepared: Prepared, *, resume: bool, tensorboard: bool) -> RunResult | None:
        """Everything that writes into the run folder."""
        losses = prepared.losses(self.world)
        if self._first is not None:
            losses = replace(losses, encoded=self._first.of(prepared))
        assessment = Assessment(
            prepared, data=self.data, bf16=self._uses_bf16, listener=self.listener
        )
        if self.world.is_main:
            self._note_baselines(prepared)
        self.world.wait()
        listener = self.listener
        if tensorboard and self.world.is_main:
            from tercet.training.curves import Curves

            listener = Curves(self.folder.curves, listener)
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
                checkpoints=checkpoints if self._resumable else NoCheckpoints(),
                listener=listener,
                score=assessment.score if assessment.scores_any_stage else None,
                limit=self._limit,
                note_recipe=self._note_recipe,
            )
            position = loop.run(start)
        return self._finish(prepared, assessment, position)

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

    def _note_recipe(self, recipe: Recipe) -> None:
        """Keep the recipe that trains to the model that this run leaves."""
        self.recipe = recipe
        self.folder.write_recipe(recipe)

    def _note_baselines(self, prepared: Prepared) -> None:
        """Measure the simplest models on the encoder as it is now, unless an earlier call did."""
        if read_baselines(self.folder.path):
            return
        engine = prepared.engine(bf16=self._uses_bf16)
        baselines = self._given_baselines
        if baselines is None:
            with self.listener.working("simple baselines"):
                baselines = measure_baselines(
                    engine, self.recipe.tasks, train=prepared.tables, dev=prepared.dev
                )
            for name, scores in baselines.items():
                self.listener.say(scores.sentence(name))
        write_baselines(self.folder.path, baselines)

    def _finish(
        self, prepared: Prepared, assessment: Assessment, position: Position
    ) -> RunResult | None:
        """Write the model folder, and then the summary, which marks the run as finished."""
        if not self.world.is_main:
            self.world.wait()
            return None
        step = position.kept_steps[-1]
        # The last step of a run has just been scored; only other weights need it now.
        info = assessment.final_info(just_scored=step == position.total)
        metrics = info.metrics or {}
        finished = prepared.finished
        if finished is not None:
            info = finished.info.with_added(info)
        save_model_folder(
            self.folder.model,
            Parts(prepared.network, prepared.tokenizer, info),
            types=finished.types if finished is not None else {},
            sketch=prepared.sketch,
        )
        warnings = assessment.warnings(info, read_baselines(self.folder.path))
        summary = {
            "steps": position.total,
            "warnings": warnings,
            "kept": step,
            "score": position.best,
            "dev": metrics,
            **_dev_by_depth(info),
            "rows": {name: len(table) for name, table in prepared.dev.items()},
            **({"left_out": prepared.left_out} if prepared.left_out else {}),
            "made_with": describe_environment(self.world.device, weights=prepared.weights),
        }
        self.folder.finish(summary, kept_steps=position.kept_steps)
        self.listener.say(f"The model is the one after step {step} of {position.total}.")
        for warning in warnings:
            self.listener.say(f"Warning: {warning}")
        self.world.wait()
        return RunResult(self.folder.model, metrics)


def _dev_by_depth(info: ModelInfo) -> dict[str, dict[int, Metrics | None]]:
    """The scores on dev of lesser depths, for the summary, where there are any."""
    depths = {depth: known.metrics for depth, known in (info.depths or {}).items()}
    return {"depths": depths} if depths else {}


def _describe_start(start: Checkpoint | None) -> str:
    if start is None:
        return "No checkpoint to resume from: the run starts again."
    return f"Resuming after step {start.state['position']['total']}."


def _describe(tables: Mapping[str, TaskTable], draw: Draw) -> str:
    """Where the first and the last rows of a batch are, for messages."""
    first, last = (tables[draw.task].where(int(draw.rows[place])) for place in (0, -1))
    return f"a batch of {len(draw.rows)} rows from {first} to {last}"
