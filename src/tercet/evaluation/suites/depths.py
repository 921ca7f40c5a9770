"""The suite `depths`: accuracy against speed, for a model that answers at several depths."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tercet.evaluation import presentation as show
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate
from tercet.evaluation.speed import RUNS, Encode, generated_texts, sentence_rates
from tercet.evaluation.suite import Context, Missing, Suite, SuiteResult
from tercet.evaluation.suites.tasks import Tasks, TasksResult
from tercet.model import Model, load

SENTENCES = 1_000
INT8 = "ONNX int8"


@dataclass(frozen=True, slots=True)
class DepthResult:
    """One depth.

    rates: sentences per second by engine
    """

    tasks: TasksResult
    rates: dict[str, float]

    def scores(self) -> dict[tuple[str, str], tuple[str, Estimate]]:
        """By task and mode, the name and value of the task's main metric."""
        return {
            (name, mode): (answers.metric, answers.metrics[answers.metric])
            for name, task in self.tasks.tasks.items()
            for mode, answers in task.modes.items()
        }

    def best(self) -> dict[str, tuple[str, Estimate]]:
        """The same of each task's most accurate mode."""
        return {
            answers.task: (answers.metric, answers.metrics[answers.metric])
            for answers in self.tasks.answers()
        }

    def to_json(self) -> dict[str, Any]:
        tasks: dict[str, dict[str, Any]] = {}
        for (name, mode), (metric, value) in self.scores().items():
            tasks.setdefault(name, {})[mode] = {metric: value.to_json()}
        return {"tasks": tasks, "sentences_per_second": self.rates}


@dataclass(frozen=True, slots=True)
class DepthsResult(SuiteResult):
    """All depths by their number of layers, the full one last."""

    depths: Mapping[int, DepthResult]
    sentences: int
    missing: list[Missing] = field(default_factory=list)

    @property
    def _engines(self) -> list[str]:
        return list(self._full.rates)

    @property
    def _full(self) -> DepthResult:
        return list(self.depths.values())[-1]

    def metrics(self) -> dict[str, Estimate]:
        """The main metric of each task, and the rates, of each depth."""
        found: dict[str, Estimate] = {}
        for layers, depth in self.depths.items():
            for task, (metric, value) in depth.best().items():
                found[f"{layers} layers, {task} {metric}"] = value
            for engine, rate in depth.rates.items():
                found[f"{layers} layers, sentences/s, {engine}"] = Estimate(rate)
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "sentences": self.sentences,
            "depths": {str(layers): depth.to_json() for layers, depth in self.depths.items()},
        }

    def tables(self) -> list[show.Table]:
        scores = self._full.scores()
        named = [f"{task} {metric}, {mode}" for (task, mode), (metric, _) in scores.items()]
        speeds = [f"{what}, {each}" for each in self._engines for what in ("sentences/s", "ratio")]
        rows = [
            [
                show.Cell(f"{layers} layers", layers),
                *(show.number(depth.scores()[key][1].value) for key in scores),
                *self._speed_cells(depth),
            ]
            for layers, depth in self.depths.items()
        ]
        caption = (
            f"The main metric of each task and mode, and the median of {RUNS} runs in turns over "
            f"{self.sentences:,} generated sentences; ratios are to the full depth"
        )
        return [show.Table(caption, ["Depth", *named, *speeds], rows)]

    def _speed_cells(self, depth: DepthResult) -> Iterator[show.Cell]:
        for engine in self._engines:
            rate = depth.rates[engine]
            yield show.count(round(rate))
            yield show.number(rate / self._full.rates[engine], digits=2)

    def charts(self) -> list[show.Chart]:
        return [self._chart(engine) for engine in self._engines]

    def _chart(self, engine: str) -> show.Chart:
        """A line per task through its depths."""
        rates = {layers: depth.rates[engine] for layers, depth in self.depths.items()}
        series, values = [], []
        for task, (metric, _) in self._full.best().items():
            points = [
                (rates[layers], value)
                for layers, depth in self.depths.items()
                if (value := depth.best()[task][1].value) is not None
            ]
            values += [value for _, value in points]
            series.append(show.Series(f"{task}, {metric}", points, kind="marked"))
        return show.Chart(
            title=f"Accuracy against speed, {engine}",
            alternative=(
                f"The main metric of each task over sentences per second with {engine}, for "
                f"{show.enumeration([str(layers) for layers in rates])} layers."
            ),
            x=show.Axis("sentences per second", 0.0, 1.06 * max(rates.values())),
            y=show.Axis("metric", *show.padded(values)),
            series=series,
            note="Right is faster, up is more accurate; a line joins the depths of a task.",
            marks=[(rate, f"{layers} layers") for layers, rate in rates.items()],
        )

    def findings(self) -> dict[str, str]:
        engine = self._engines[-1]
        shallowest, depth = next(iter(self.depths.items()))
        ratio = depth.rates[engine] / self._full.rates[engine]
        losses = [
            f"{task} {show.decimal(value.value)} instead of {show.decimal(full.value)}"
            for (task, (_, value)), (_, full) in zip(
                depth.best().items(), self._full.best().values(), strict=True
            )
        ]
        return {
            "Depths": f"{shallowest} layers embed {ratio:.1f} times as fast as all ({engine}), "
            f"with {show.enumeration(losses)}."
        }


class Depths(Suite):
    name = "depths"
    title = "Depths"
    description = "accuracy against speed of each depth that a model was trained for"
    intro = (
        "The same model, ended after fewer layers. Speeds hold for this machine: compare them with "
        "each other only."
    )
    needs_heads = True

    @classmethod
    def lacks(cls, model: Model) -> str | None:
        return super().lacks(model) or ("lesser depths" if len(model.depths) < 2 else None)

    def run(self, context: Context) -> DepthsResult:
        """Measure the tasks at every depth, and how fast each embeds."""
        models = {layers: context.model.at(layers) for layers in context.model.depths}
        tasks = {layers: self._tasks(context, model) for layers, model in models.items()}
        texts = generated_texts(SENTENCES)
        with tempfile.TemporaryDirectory() as place, context.texts.phases("speed") as progress:
            encoders = _encoders(models, Path(place))
            flat = {
                f"{engine} {n}": run for engine, by in encoders.items() for n, run in by.items()
            }
            rates = sentence_rates(flat, texts, progress=progress)
        results = {
            layers: DepthResult(
                tasks[layers], {engine: rates[f"{engine} {layers}"] for engine in encoders}
            )
            for layers in models
        }
        return DepthsResult(results, len(texts), list(tasks[max(models)].missing))

    def _tasks(self, context: Context, model: Model) -> TasksResult:
        texts = EncodedTexts(model, context.texts.phases)
        if model.depths[-1] == context.model.depths[-1]:
            texts = context.texts
        return Tasks().run(replace(context, texts=texts))


def _encoders(models: Mapping[int, Model], place: Path) -> dict[str, dict[int, Encode]]:
    """By engine and number of layers, what embeds: the model's own and, on a CPU, its 8-bit
    export, where ONNX is installed."""
    any_model = next(iter(models.values()))
    device = str(any_model.engine.machine()["device"])
    encoders: dict[str, dict[int, Encode]] = {
        f"torch, {device}": {layers: model.embed for layers, model in models.items()}
    }
    installed = all(map(importlib.util.find_spec, ("onnx", "onnxruntime")))
    if device != "cpu" or not installed or not any_model.network.encoder.config.architecture.onnx:
        return encoders
    from tercet.folders.model_folder import Parts
    from tercet.folders.onnx_folder import export_onnx

    for layers, model in models.items():
        parts = Parts(model.network, model.tokenizer, model.info)
        export_onnx(place / str(layers), parts, precision="int8")
    encoders[INT8] = {layers: load(place / str(layers)).embed for layers in models}
    return encoders
