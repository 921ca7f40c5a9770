"""How good a run's network is: scores on dev, calibration, lesser depths, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tercet.evaluation.measure import measure_outputs
from tercet.evaluation.scaling import with_scalings
from tercet.evaluation.scoring import DevScores, Outputs, best_mode, score_of, score_tables
from tercet.evaluation.simple_scores import Baselines
from tercet.evaluation.warnings import warnings_of
from tercet.folders.model_card import DepthInfo, ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.specs import Scalings, StageSpec, TaskSpec, Thresholds
from tercet.training.listener import Listener
from tercet.training.loop import StageScore
from tercet.training.preparation import Prepared, lesser_widths, scored_tasks


class Assessment:
    """Measures the network of a run as it is at the time of each call."""

    def __init__(self, prepared: Prepared, *, data: Path, bf16: bool, listener: Listener) -> None:
        self._prepared = prepared
        self._recipe = prepared.recipe
        self._data = data
        self._bf16 = bf16
        self._listener = listener
        self._newest: DevScores | None = None
        """The last scores, if of all dev rows."""
        self._final: DevScores | None = None
        """Those of the final weights, as yet without calibration."""

    @property
    def scores_any_stage(self) -> bool:
        evaluations = map(self._recipe.evaluation_of, self._recipe.stages)
        return any(scored_tasks(self._recipe, evaluation) for evaluation in evaluations)

    def score(self, stage: StageSpec) -> StageScore:
        """The score of a stage, by its `evaluation`."""
        evaluation = self._recipe.evaluation_of(stage)
        names = scored_tasks(self._recipe, evaluation)
        scores = self._scores(names, rows=evaluation.rows)
        metrics = scores.metrics
        whole = evaluation.rows is None and metrics.keys() == self._prepared.dev.keys()
        self._newest = scores if whole else None
        value = score_of(metrics, self._recipe.tasks, evaluation.score)
        return StageScore(metrics, score=value, loss=scores.loss)

    def final_info(self, *, just_scored: bool) -> ModelInfo:
        """What the model folder says of the run's tasks, calibrated, at every depth.

        just_scored: whether these are the weights that were scored last
        """
        newest = self._newest if just_scored else None
        self._final = newest or self._scores()
        spec, network = self._recipe.encoder, self._prepared.network
        info = ModelInfo(
            encoder=spec.name,
            pooling=spec.pooling,
            max_tokens=spec.max_tokens,
            long=spec.long,
            tasks={name: task.without_places() for name, task in self._recipe.tasks.items()},
            recipe=self._recipe.name,
            metrics=self._final.metrics,
            widths=lesser_widths(spec, network),
        )
        return self._with_depths(self._calibrated(network, info, self._final.outputs))

    def warnings(self, info: ModelInfo, baselines: Baselines) -> list[str]:
        """What is wrong with the model on dev, one sentence each."""
        final = self._final or self._scores()
        found: list[str] = []
        for name, table in self._prepared.dev.items():
            task, known = self._recipe.tasks[name], baselines.get(name)
            mode = best_mode(task)
            assert table.labels is not None  # since dev rows are scored
            answers = measure_outputs(
                name,
                mode,
                task,
                final.outputs[name, mode],
                table.labels,
                scaling=(info.scalings or {}).get(name, {}).get(mode),
                thresholds=(info.thresholds or {}).get(name, {}).get(mode),
            )
            found += warnings_of(
                answers,
                majority=None if known is None else known.majority,
                linear=None if known is None else known.linear,
            )
        return found

    def _scores(
        self,
        names: Sequence[str] | None = None,
        *,
        rows: int | None = None,
        network: Network | None = None,
        scalings: Scalings | None = None,
        thresholds: Thresholds | None = None,
        known: Outputs | None = None,
    ) -> DevScores:
        """Of some tasks on dev; default: all that are scored.

        network: that of a lesser depth; default: of the full one
        known: what the network gives for the rows, if that is known
        """
        dev = self._prepared.dev
        return score_tables(
            network or self._prepared.network,
            {name: dev[name] for name in (dev if names is None else names)},
            self._recipe.tasks,
            self._prepared.tokenizer.template,
            self._recipe.encoder.max_tokens,
            rows,
            scalings=scalings,
            thresholds=thresholds,
            known=known,
            bf16=self._bf16,
        )

    def _with_depths(self, info: ModelInfo) -> ModelInfo:
        """The info with what each lesser depth reaches on dev, and its own calibration."""
        spec, depths = self._recipe.encoder.depths, self._prepared.network.lesser_depths
        if spec is None or not depths:
            return info
        hidden = DepthInfo(hidden=spec.hidden)
        info = info.model_copy(update={"depths": dict.fromkeys(depths, hidden)})
        known = {}
        for depth in depths:
            network, own = self._prepared.network.at(depth), info.at(depth)
            with self._listener.working(f"{depth} layers"):
                scores = self._scores(network=network)
                own = own.model_copy(update={"metrics": scores.metrics})
                own = self._calibrated(network, own, scores.outputs, fitted_only=True)
            known[depth] = DepthInfo(
                hidden=spec.hidden,
                metrics=own.metrics,
                scalings=own.scalings,
                thresholds=own.thresholds,
            )
        return info.model_copy(update={"depths": known})

    def _calibrated(
        self, network: Network, info: ModelInfo, outputs: Outputs, *, fitted_only: bool = False
    ) -> ModelInfo:
        """The info with the scalings and thresholds of the recipe, or fitted on held-out rows.

        outputs: what the network gives for the dev rows
        fitted_only: those of the recipe are for another depth
        """
        tasks = {name: task for name, task in self._recipe.tasks.items() if task.answers}
        held_out = [name for name, task in tasks.items() if task.held_out > 0.0]
        if held_out:
            if not fitted_only:
                self._listener.say(f"Calibrating {' and '.join(held_out)} on held-out rows.")
            model = Model(network, self._prepared.tokenizer, info)
            info = with_scalings(model, held_out, self._data)
        info = info if fitted_only else with_given_decisions(info, tasks)
        if not (info.scalings or info.thresholds):
            return info
        scores = self._scores(
            network=network, scalings=info.scalings, thresholds=info.thresholds, known=outputs
        )
        return info.model_copy(update={"metrics": scores.metrics})


def with_given_decisions(info: ModelInfo, tasks: Mapping[str, TaskSpec]) -> ModelInfo:
    """The info with the `scaling` and `thresholds` that recipes give, before fitted ones."""
    scalings = {name: dict(modes) for name, modes in (info.scalings or {}).items()}
    thresholds = {name: dict(modes) for name, modes in (info.thresholds or {}).items()}
    for name, task in tasks.items():
        for mode, spec in task.predicting_modes.items():
            if spec.scaling is not None:
                scalings.setdefault(name, {})[mode] = spec.scaling
            if spec.thresholds is not None:
                thresholds.setdefault(name, {})[mode] = spec.thresholds
    update = {"scalings": scalings or None, "thresholds": thresholds or None}
    return info.model_copy(update=update)
