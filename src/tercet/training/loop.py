"""The training loop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from types import FrameType
from typing import Any

from torch import Tensor

from tercet.folders.model_card import Metrics
from tercet.recipe import Recipe
from tercet.specs import StageSpec
from tercet.specs.registry import resolve
from tercet.training.average import Average
from tercet.training.backward import Backward
from tercet.training.checkpoint import (
    Checkpoint,
    KeepsWeights,
    optimiser_tensors,
    restore_optimiser,
)
from tercet.training.exemplars import fill_exemplars
from tercet.training.first_step import SHORT
from tercet.training.first_vectors import untouched_stages
from tercet.training.listener import Listener
from tercet.training.losses import Losses
from tercet.training.metrics_log import MetricsLog, StepRecord
from tercet.training.pace import Pace
from tercet.training.parts import choose_trainable, rate, scheduled_step, set_modes
from tercet.training.plan import StagePlan, Subset
from tercet.training.solve import solve_heads
from tercet.training.update import Update

# Reading a loss on a GPU waits for it, so losses are read in groups.
_STEPS_PER_FLUSH = {"cuda": 20}
# Seconds; torchrun passes a Ctrl-C on to processes that had it from the terminal already.
_SAME_INTERRUPT = 1.0


@dataclass(frozen=True, slots=True)
class Position:
    """How far a run is.

    stage, step: the stage, and how many of its steps are done
    total: how many steps of the whole run are done
    best, best_loss, best_step: the stage's best score so far, the loss on dev beside it and the
        total at which it was reached; of equal scores the one with the lower loss is better
    waited: how many scores since then
    ended: whether the stage ended early
    kept_steps: of each finished stage, the total whose weights it left
    switches: [step of the stage, index of the task that its schedule switched to] each
    """

    stage: int = 0
    step: int = 0
    total: int = 0
    best: float | None = None
    best_loss: float | None = None
    best_step: int = 0
    waited: int = 0
    ended: bool = False
    kept_steps: Sequence[int] = ()
    switches: Sequence[Sequence[int]] = ()

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Position:
        """A position from a checkpoint; those of version 0.1 have two other names in it."""
        names = {"kept": "kept_steps", "turns": "switches"}
        return cls(**{names.get(key, key): value for key, value in state.items()})

    def is_better(self, score: float, loss: float) -> bool:
        """Whether a score is better than the best so far."""
        if self.best is None or score > self.best:
            return True
        # Checkpoints of older versions have no loss.
        return score == self.best and self.best_loss is not None and loss < self.best_loss


@dataclass(frozen=True, slots=True)
class StageScore:
    """What a network reaches on the dev rows of a stage.

    score: the value of the metrics by which weights are chosen
    loss: the mean of the scored tasks' losses
    """

    dev: Metrics
    score: float
    loss: float


Limit = Callable[[int, int], int | None]
"""A lower number of steps for a stage, where it takes too long, of the steps done and planned."""


class Loop:
    """Trains a network through the stages of a recipe, from the start or a checkpoint."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        losses: Losses,
        log: MetricsLog,
        checkpoints: KeepsWeights,
        listener: Listener,
        score: Callable[[StageSpec], StageScore] | None,
        limit: Limit | None = None,
        note_recipe: Callable[[Recipe], None] | None = None,
    ) -> None:
        """`score` measures the network on the dev rows of a stage; None without dev.

        limit: what may shorten a stage while it trains, in one process only
        note_recipe: called with the recipe that says so
        """
        self.recipe = recipe
        self.losses = losses
        self.network = losses.network
        self.world = losses.world
        self.log = log
        self.checkpoints = checkpoints
        self.listener = listener
        self.score = score
        self.position = Position()
        self._limit = limit
        self._note_recipe = note_recipe

    def run(self, start: Checkpoint | None) -> Position:
        """Train to the end; Ctrl-C saves a checkpoint and is then raised."""
        if start is not None:
            self.position = Position.restore(start.state["position"])
            self.network.load_state_dict(start.network)
        with _interrupt_noticed() as interrupted:
            for number in range(self.position.stage, len(self.recipe.stages)):
                if self.position.stage != number:
                    self.position = Position(
                        stage=number, total=self.position.total, kept_steps=self.position.kept_steps
                    )
                    start = None
                if self._stage(self.recipe.stages[number], start, interrupted):
                    self.listener.interrupted(self.position.total)
                    raise KeyboardInterrupt
        return self.position

    def _stage(
        self, stage: StageSpec, start: Checkpoint | None, interrupted: Callable[[], bool]
    ) -> bool:
        """Train a stage; whether it was interrupted."""
        if stage.solve:
            self._solve_stage(stage)
            return self.world.any(interrupted())
        plan = self._plan(stage)
        self.listener.begin_stage(stage.name, steps=len(plan), done=self.position.step)
        try:
            return self._train_stage(stage, plan, start, interrupted)
        finally:
            self.listener.end_stage()

    def _train_stage(
        self,
        stage: StageSpec,
        plan: StagePlan,
        start: Checkpoint | None,
        interrupted: Callable[[], bool],
    ) -> bool:
        self.network.zero_grad(set_to_none=True)
        choose_trainable(self.network, stage, tasks=plan.tasks)
        if start is None:
            for task in plan.tasks:
                fill_exemplars(self.losses, task, seed=self.recipe.seed)
        set_modes(self.network)
        planned = plan.planned
        backward = Backward(self.recipe, stage, self.losses, short=planned < SHORT)
        update = Update(
            self.network, stage.optimiser, rows=backward.rows, after=backward.follow_weights
        )
        optimiser = update.optimiser
        if start is not None:
            restore_optimiser(self.network, optimiser, start.optimiser)
            if backward.surgery is not None:
                backward.surgery.restore(start.surgery)
        average = Average(optimiser, decay=stage.average) if stage.average is not None else None
        pace = Pace.on(self.world.device)
        while self.position.step < len(plan) and not self.position.ended:
            step = self.position.step
            place = scheduled_step(step, steps=planned, shortened=stage.shortened)
            factor = rate(stage.optimiser, step=place, steps=planned)
            draws = plan.draws(step)
            losses, angles = backward(draws, step=self.position.total)
            norm = update(factor=factor, tasks=frozenset(draw.task for draw in draws))
            if average is not None:
                average.update(step=step)
            pace.step()
            self.position = replace(self.position, step=step + 1, total=self.position.total + 1)
            self.log.step(
                StepRecord(
                    step=self.position.total,
                    stage=stage.name,
                    draws=draws,
                    losses=losses,
                    lr=stage.optimiser.lr * factor,
                    norm=norm,
                    cosines=angles,
                )
            )
            scoring, saving, flushing = self._due(plan)
            stop = flushing and self.world.any(interrupted())
            if scoring or saving or flushing:
                self._log_steps()
            if flushing:
                stage = self._shortened(stage, plan)
            if scoring:
                with average.applied() if average is not None else nullcontext():
                    dev = self._score(stage)
                if stage.schedule.after_score is not None:
                    self._switch_task(stage, plan, dev)
            if self.position.ended or self.position.step == len(plan):
                if average is not None:
                    average.leave()
                self._leave(stage)
            if saving or stop or self.position.ended:
                surgery = backward.surgery.state() if backward.surgery is not None else {}
                self._save(optimiser_tensors(self.network, optimiser), surgery)
            if stop:
                return True
        return False

    def _shortened(self, stage: StageSpec, plan: StagePlan) -> StageSpec:
        """The stage, with fewer steps if it would take too long."""
        done = self.position.step
        if self._limit is None or done == len(plan) or self.position.ended:
            return stage
        steps = self._limit(done, len(plan))
        if steps is None or not done < steps < len(plan):
            return stage
        plan.shorten(steps)
        self.recipe = self.recipe.with_shortened(self.position.stage, step=done, steps=steps)
        if self._note_recipe is not None:
            self._note_recipe(self.recipe)
        return self.recipe.stages[self.position.stage]

    def _solve_stage(self, stage: StageSpec) -> None:
        """Fit the last layers of heads, which counts as one step."""
        if self.position.step > 0:
            return
        self.listener.begin_stage(stage.name, steps=1, done=0)
        try:
            is_first = self.position.stage < untouched_stages(self.recipe.stages)
            losses = self.losses if is_first else replace(self.losses, encoded={})
            solve_heads(losses, self.recipe.stage_tasks(stage), seed=self.recipe.seed)
            self.position = replace(self.position, step=1, total=self.position.total + 1)
            if self.score is not None:
                self._score(stage)
            self._leave(stage)
            self._save({}, {})
        finally:
            self.listener.end_stage()

    def _log_steps(self) -> None:
        lines, rows = self.log.flush()
        self.listener.steps(lines, rows=rows)

    def _plan(self, stage: StageSpec) -> StagePlan:
        names = self.recipe.stage_tasks(stage)
        plan = StagePlan(
            stage.schedule,
            sizes={name: len(self.losses.tables[name]) for name in names},
            rows_per_visit={
                name: (self.recipe.tasks[name].batch or stage.batch) * stage.accumulate
                for name in names
            },
            epochs=stage.epochs,
            steps=stage.steps,
            seed=(self.recipe.seed, self.position.stage),
            subsets=self._subsets(names),
        )
        for step, task in self.position.switches:
            plan.switch_to(task, step=step)
        if stage.shortened:
            plan.shorten(stage.shortened[-1][1])
        return plan

    def _subsets(self, names: Sequence[str]) -> dict[str, Subset]:
        subsets = {}
        for name in names:
            table = self.losses.tables[name]
            subset = Subset.of_task(self.recipe.tasks[name], table.labels, rows=len(table))
            if subset is not None:
                subsets[name] = subset
        return subsets

    def _due(self, plan: StagePlan) -> tuple[bool, bool, bool]:
        """Whether, after a step, to score on dev, to save, and to read the losses."""
        done, total = self.position.step, self.position.total
        ends_stage = done == len(plan)
        every = self.recipe.evaluation_of(self.recipe.stages[self.position.stage]).every
        if every is None:
            scoring = plan.ends_epoch(done - 1)
        else:
            scoring = ends_stage or (every > 0 and done % every == 0)
        every = self.recipe.checkpoint.every
        saving = ends_stage or (every > 0 and total % every == 0)
        flushing = done % _STEPS_PER_FLUSH.get(self.world.device.type, 1) == 0
        return scoring and self.score is not None, saving, flushing

    def _score(self, stage: StageSpec) -> Metrics:
        """Measure the network on dev and note whether it is the best so far; the metrics."""
        measured = StageScore({}, 0.0, 0.0)
        evaluation = self.recipe.evaluation_of(stage)
        if self.score is not None and self.world.is_main:
            measured = self.score(stage)
        dev = measured.dev
        score, loss = self.world.from_main([measured.score, measured.loss])
        best = self.position.is_better(score, loss)
        total = self.position.total
        if best:
            self.position = replace(
                self.position, best=score, best_loss=loss, best_step=total, waited=0
            )
        else:
            self.position = replace(self.position, waited=self.position.waited + 1)
        if evaluation.patience is not None and self.position.waited >= evaluation.patience:
            self.position = replace(self.position, ended=True)
        if self.world.is_main:
            self.log.scores(step=total, stage=stage.name, dev=dev, score=score, dev_loss=loss)
            self.listener.scores(step=total, dev=dev, score=score, best=best)
            if best and evaluation.keep == "best":
                self.checkpoints.save_best(total, {"score": score}, self.network)
        return dev

    def _switch_task(self, stage: StageSpec, plan: StagePlan, dev: Metrics) -> None:
        """Train only the task that the schedule chooses by these scores."""
        index = 0
        if self.world.is_main:
            tasks = {name: self.recipe.tasks[name] for name in plan.tasks}
            choose = resolve(type(stage.schedule).after_score)
            index = plan.tasks.index(choose(stage.schedule, dev, tasks))
        step, index = self.position.step, int(self.world.from_main([index])[0])
        self.position = replace(self.position, switches=[*self.position.switches, [step, index]])
        plan.switch_to(index, step=step)

    def _leave(self, stage: StageSpec) -> None:
        """Choose the weights that a stage leaves: its best or its last."""
        step = self.position.total
        if self.recipe.evaluation_of(stage).keep == "best" and self.position.best is not None:
            step = self.position.best_step
        if step != self.position.total:
            self.world.wait()
            self.network.load_state_dict(self.checkpoints.best(step))
        self.position = replace(self.position, kept_steps=[*self.position.kept_steps, step])

    def _save(self, optimiser: dict[str, Tensor], surgery: dict[str, Tensor]) -> None:
        if self.world.is_main:
            checkpoint = Checkpoint(
                state={"position": asdict(self.position), "journal": self.log.sync()},
                network=self.network.state_dict(),
                optimiser=optimiser,
                surgery=surgery,
            )
            self.checkpoints.save(self.position.total, checkpoint)
        self.world.wait()


@contextmanager
def _interrupt_noticed() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C is noted, so that the step can end; a later one is raised.

    Only the main thread can handle signals: a training in another one runs to its end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    first: float | None = None
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if first is None:
            first = time.monotonic()
        elif time.monotonic() - first > _SAME_INTERRUPT:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: first is not None
    finally:
        signal.signal(signal.SIGINT, before)
