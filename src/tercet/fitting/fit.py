"""`tercet.fit`: labelled files or tables to a model that is measured, calibrated and reported."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tercet.data.examples import Examples, read_examples, read_groups
from tercet.data.files import bare_name
from tercet.data.look import LabelKind
from tercet.errors import ArgumentError, TercetError
from tercet.evaluation.answers import Answers
from tercet.evaluation.evaluation import Evaluation, describe, evaluate
from tercet.evaluation.suites.tasks import TaskResult, TasksResult
from tercet.evaluation.warnings import warnings_of
from tercet.files import read_json_object, write_json, write_text
from tercet.fitting.choosing import Folds, Judged, prefers
from tercet.fitting.following import Joined, joined
from tercet.fitting.planning import (
    BATCH,
    LEAST_STEPS,
    Judge,
    Settings,
    base_epochs,
    linear_recipe,
    tune_steps,
    tuned_recipe,
)
from tercet.fitting.sources import Given, Source, common_folder, gather
from tercet.fitting.trial import Trial
from tercet.folders.model_folder import INFO_FILE, read_info, update_info
from tercet.model import SHIPPED, Model, load
from tercet.recipe import Recipe
from tercet.report.report import Report
from tercet.specs import Long
from tercet.training.baselines import FILE, SimpleScores, majority_score
from tercet.training.distributed import World
from tercet.training.listener import Listener, listener_of
from tercet.training.run import RunResult, train_recipe

FOLDED_ROWS = 2000
"""Rows of all tasks up to which candidates are judged by cross-validation."""
FOLDS = 3
TRAINING = 3.5
"""How many times longer training on a row takes than encoding it."""
USED = 0.85
"""The share of the minutes that is planned with."""
LEAST_EPOCHS = 0.2
NO_TIME = "Not enough time to tune the encoder: heads are fitted to it as it is."
MAX_TOKENS = (32, 512)
LONG_SHARE = 0.05
"""The share of longer texts from which on they are read in windows."""
SUMMARY, EVALUATION, REPORT, DATA = "summary.json", "evaluation.json", "report.html", "data"


@dataclass(frozen=True, slots=True)
class TaskScore:
    """What a fitted model reaches in a task's main metric, beside the simplest models."""

    metric: str
    value: float | None
    interval: tuple[float, float] | None
    majority: float | None
    linear: float | None
    rows: int


class FitResult:
    """A fitted model, with its scores, recipe and report."""

    def __init__(
        self, folder: Path, evaluation: Evaluation, scores: Mapping[str, TaskScore], data: Path
    ) -> None:
        self.folder = folder
        self.evaluation = evaluation
        self.scores = dict(scores)
        self.data = data
        """The folder that the recipe's files are in."""

    @cached_property
    def model(self) -> Model:
        return load(self.folder)

    @cached_property
    def recipe(self) -> Recipe:
        """What was trained; edit it and train it again with `tercet.train`."""
        return Recipe.load(self.folder / "recipe.toml")

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the model, one sentence each."""
        return list(read_json_object(self.folder / SUMMARY)["warnings"])

    def report(self, file: str | Path) -> Path:
        """Write the HTML report to a file; the run folder has one too."""
        path = Path(file)
        write_text(path, Report([self.evaluation], run=self.folder).to_html())
        return path

    def __repr__(self) -> str:
        lines = [f"FitResult in {self.folder}"]
        for name, score in self.scores.items():
            value = "undefined" if score.value is None else f"{score.value:.3f}"
            simple = [] if score.linear is None else [f"linear model {score.linear:.3f}"]
            simple += [] if score.majority is None else [f"most frequent {score.majority:.3f}"]
            lines.append(f"  {name}: {score.metric} {value} ({', '.join(simple)})")
        return "\n".join([*lines, *(f"  Warning: {warning}" for warning in self.warnings)])


def fit(
    *sources: Any,
    text: str | Sequence[str] | Mapping[str, Any] | None = None,
    label: str | Mapping[str, str] | None = None,
    kind: LabelKind | Mapping[str, LabelKind] | None = None,
    task: str | Sequence[str] | None = None,
    dev: Any = None,
    group: str | Mapping[str, str] | None = None,
    encoder: str | Path | None = None,
    onto: str | Path | None = None,
    long: Long | None = None,
    minutes: float = 10.0,
    seed: int = 11711,
    out: str | Path | None = None,
    device: str | None = None,
    progress: bool | None = None,
    listener: Listener | None = None,
    **tables: Any,
) -> FitResult:
    """Train one encoder on labelled files or tables, each a task, within some minutes.

        result = tercet.fit("tickets.csv")
        result = tercet.fit(team=frame, same=pairs, minutes=5)
        result.model.predict("team", ["My invoice is wrong."])

    sources, tables: files, data frames, Arrow tables, `datasets` or lists of dicts; tasks are
        named by files or keywords
    text: the text column, or two of pairs; default: guessed
    label: the label column; kind: `classes`, `multi-label` or `grades`; default: guessed
    task: names of the tasks of `sources`
    dev: a file or table to measure on; default: rows are split off, or cross-validated
    group: a column whose equal values are never split up between training and measuring
        These take one value, or a mapping by task.
    encoder: what to start from: a name of `tercet weights`, a folder or a finished model; default:
        the model that comes with the package
    onto: a finished model to add the tasks to; its encoder and its answers stay as they are
    long: `truncate` texts that are longer than the encoder reads at once, or read all of them in
        `windows`; default: windows if more than a twentieth of the texts are longer
    out: the run folder; default: runs/TASK
    progress: whether to show it on stderr; default: in notebooks and terminals
    listener: what shows progress instead
    """
    given = Given(text=text, label=label, kind=kind, group=group)
    with _Inputs(sources, tables, task=task, dev=dev, given=given) as found:
        folder = Path(out) if out is not None else Path("runs") / found.sources[0].name
        if onto is not None and encoder is not None:
            raise ArgumentError(
                "`onto` keeps the encoder of that model: leave out `encoder`.", "encoder"
            )
        if onto is not None and long is not None:
            raise ArgumentError("`onto` keeps `long` of that model: leave out `long`.", "long")
        work = _Fit(
            found,
            encoder=str(encoder) if encoder is not None else SHIPPED,
            onto=None if onto is None else str(onto),
            long=long,
            seconds=60.0 * minutes,
            seed=seed,
            folder=folder,
            device=device,
            listener=listener_of(listener, progress=progress),
        )
        return work.run()


class _Inputs:
    """The tasks and the folder of their files; tables in memory get a temporary one."""

    def __init__(
        self,
        sources: Sequence[Any],
        tables: Mapping[str, Any],
        *,
        task: Any,
        dev: Any,
        given: Given,
    ) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="tercet-fit-"))
        try:
            self.sources = gather(
                sources, tables, task=task, dev=dev, given=given, folder=self._temporary
            )
            self.in_memory = any(self._temporary.iterdir())
            if self.in_memory:
                self.sources = [self._copied(source) for source in self.sources]
            self.folder = self._temporary if self.in_memory else common_folder(self.sources)
            self.folder = self.folder.resolve()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> _Inputs:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)

    def keep(self, folder: Path) -> Path:
        """The folder of the data from now on: tables in memory are kept in `folder`."""
        if not self.in_memory:
            return self.folder
        shutil.copytree(self._temporary, folder)
        return folder

    def _copied(self, source: Source) -> Source:
        """The same with files beside the tables, so that one folder has all data."""
        files = {source.name: source.path}
        files |= {} if source.dev is None else {f"{source.name}-dev": source.dev}
        copies = []
        for name, file in files.items():
            ending = file.name.removeprefix(Path(bare_name(file)).stem)
            copy = self._temporary / f"{name}{ending}"
            if file.resolve() != copy.resolve():
                shutil.copyfile(file, copy)
            copies.append(copy)
        look = replace(source.look, path=copies[0])
        return replace(source, look=look, dev=copies[1] if len(copies) > 1 else None)


class _Fit:
    """One call of `fit`."""

    def __init__(
        self,
        found: _Inputs,
        *,
        encoder: str,
        onto: str | None,
        long: Long | None,
        seconds: float,
        seed: int,
        folder: Path,
        device: str | None,
        listener: Listener,
    ) -> None:
        self.found = found
        self.sources = found.sources
        self.encoder = encoder
        self.onto = onto
        self.long = long
        self.seconds = seconds
        self.seed = seed
        self.folder = folder
        self.device = device
        self.listener = listener
        self.began = time.monotonic()

    def run(self) -> FitResult:
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ArgumentError(f"{self.folder}: already holds files; use another `out`.", "out")
        for source in self.sources:
            for sentence in source.look.sentences():
                self.listener.say(sentence)
        try:
            settings = self._settings()
            if settings.judge == "folds":
                evaluation, baselines = self._by_folds(settings)
            else:
                evaluation, baselines = self._by_dev(settings)
            shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)
            data = self.found.keep(self.folder / DATA)
            return self._finish(evaluation, baselines, data)
        except BaseException:
            # Half a run is of no use, and would be in the way of the next call.
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _settings(self) -> Settings:
        rows = sum(source.look.rows for source in self.sources)
        has_dev = [source.dev is not None for source in self.sources]
        judge: Judge = "files" if all(has_dev) else "share"
        if not any(has_dev) and rows <= FOLDED_ROWS:
            judge = "folds"
        name = self.onto or self.encoder
        body = load(name, device="cpu")
        encoder = {"name": name, "pooling": body.info.pooling, **self._reading(body)}
        return Settings(
            sources=self.sources,
            folder=self.found.folder,
            encoder=None if self.onto is not None else encoder,
            onto=self.onto,
            width=body.width,
            seed=self.seed,
            judge=judge,
            epochs=base_epochs(self.sources),
            decisions={},
        )

    def _reading(self, body: Model) -> dict[str, Any]:
        """`max_tokens`, enough for nearly all texts in steps of 16, and what is done with longer
        ones."""
        limit = min(MAX_TOKENS[1], body.network.encoder.config.max_tokens)
        texts = [text for source in self.sources for text in source.look.sample]
        lengths = body.tokenizer.pieces(texts, limit=limit).lengths + 2
        needed = -(-int(np.quantile(lengths, 0.99)) // 16) * 16
        most = int(np.clip(needed, MAX_TOKENS[0], limit))
        share = float(np.mean(lengths > most))
        if self.long is None and share > LONG_SHARE and self.onto is None:
            self.listener.say(
                f"{share:.0%} of the texts are longer than {most} tokens: they are read whole, "
                "in windows. `long` truncate reads their beginnings only, which is faster."
            )
            return {"max_tokens": most, "long": "windows"}
        return {"max_tokens": most, "long": self.long or "truncate"}

    @property
    def left(self) -> float:
        """Seconds that may still be planned with."""
        return USED * self.seconds - (time.monotonic() - self.began)

    def _by_folds(self, settings: Settings) -> tuple[Evaluation | None, dict[str, SimpleScores]]:
        """Judge candidates by cross-validation, and train the best on all rows."""
        world = World.join(self.device)
        linear_trial = Trial(linear_recipe(settings), data=self.found.folder, world=world)
        examples = {
            source.name: self._examples(linear_trial.recipe, source) for source in self.sources
        }
        folds = Folds(examples, folds=FOLDS, groups=self._groups(settings), seed=self.seed)
        began = time.monotonic()
        with joined(self.listener, "linear model", steps=FOLDS) as following:
            linear = folds.judge(linear_trial, following)
        # Each fold encodes all rows once.
        encoding = (time.monotonic() - began) / FOLDS
        baselines = self._baselines(linear)
        is_folded = self._epochs(settings, encoding, trainings=FOLDS) == settings.epochs
        if not is_folded and self._epochs(settings, encoding, trainings=1) > 0.0:
            # No time to train on every fold: one part of the rows judges instead.
            return self._by_dev(replace(settings, judge="share"), encoding=encoding)
        for name, scores in baselines.items():
            self.listener.say(scores.sentence(name))
        if is_folded:
            best = self._tune_by_folds(settings, folds, linear, baselines, world=world)
        else:
            self.listener.say(NO_TIME)
            best = linear
            with joined(self.listener, "heads", steps=1) as following:
                self._train(self._decided(linear_recipe, settings, best), baselines, following)
        results = {
            name: TaskResult(
                list(examples[name].skipped),
                [path.name for path in examples[name].files],
                {answers.mode: answers},  # type: ignore[dict-item]
            )
            for name in best.tasks
            for answers in [best.answers(name, examples[name])]
        }
        method = (
            f"{FOLDS}-fold cross-validation: each row is predicted by a model that was not trained "
            "on it. The model itself is trained on all rows."
        )
        result = TasksResult.of_rows(results, best.tasks, method=method)
        model = load(self.folder)
        evaluation = describe(
            model,
            {"tasks": result},
            data=self.found.folder.name,
            seconds=time.monotonic() - self.began,
        )
        self._note_metrics(result, baselines)
        return evaluation, baselines

    def _tune_by_folds(
        self,
        settings: Settings,
        folds: Folds,
        linear: Judged,
        baselines: Mapping[str, SimpleScores],
        *,
        world: World,
    ) -> Judged:
        """Judge the tuned candidate too, and train the better one on all rows."""
        steps = FOLDS * tune_steps(settings, share=1.0 - 1.0 / FOLDS) + tune_steps(settings)
        with joined(self.listener, "tuning", steps=steps) as following:
            trial = Trial(tuned_recipe(settings), data=self.found.folder, world=world)
            tuned = folds.judge(trial, following)
            is_tuned = prefers(tuned, linear)
            self._say_choice(tuned, linear, is_tuned=is_tuned)
            best, candidate = (tuned, tuned_recipe) if is_tuned else (linear, linear_recipe)
            following.note = "on all rows"
            self._train(self._decided(candidate, settings, best), baselines, following)
        return best

    def _decided(
        self, candidate: Callable[[Settings], Recipe], settings: Settings, best: Judged
    ) -> Recipe:
        return candidate(replace(settings, decisions=_decisions(best)))

    def _by_dev(
        self, settings: Settings, *, encoding: float | None = None
    ) -> tuple[Evaluation | None, dict[str, SimpleScores]]:
        """Train the tuned candidate, and the linear one if that is better on dev."""
        if encoding is None:
            encoding = self._encoding_seconds(settings)
        epochs = self._epochs(settings, encoding, trainings=1)
        chosen = replace(settings, epochs=round(epochs, 2))
        if epochs == 0.0:
            self.listener.say(NO_TIME)
        what, steps = ("heads", 1) if epochs == 0.0 else ("tuning", tune_steps(chosen))
        with joined(self.listener, what, steps=steps) as following:
            if epochs == 0.0:
                self._train(linear_recipe(chosen), None, following)
            else:
                tuned = self._train(tuned_recipe(chosen), None, following)
                self._replace_if_worse(chosen, tuned, following)
        return None, self._known_baselines()

    def _replace_if_worse(self, settings: Settings, tuned: RunResult, following: Joined) -> None:
        """Train the linear candidate instead, if the tuned one is below the linear baseline."""
        baselines = self._known_baselines()
        recipe = linear_recipe(settings)
        scores = {name: _main(tuned, recipe, name) for name in baselines}
        if np.mean([scores[n] - (b.linear or 0.0) for n, b in baselines.items()]) >= 0.0:
            return
        self.listener.say(
            "The tuned encoder is not better than a linear model on the encoder as it is: the "
            "linear model is kept."
        )
        shutil.rmtree(self.folder)
        self._train(recipe, baselines, following)

    def _train(
        self,
        recipe: Recipe,
        baselines: Mapping[str, SimpleScores] | None,
        following: Joined,
    ) -> RunResult:
        result = train_recipe(
            recipe,
            data=self.found.folder,
            out=self.folder,
            device=self.device,
            listener=following,
            baselines=baselines,
        )
        if result is None:
            raise TercetError("`fit` runs in one process; use `tercet train` with torchrun.")
        return result

    def _epochs(self, settings: Settings, encoding: float, *, trainings: int) -> float:
        """How many epochs fit into the time that is left, at most those of the settings; 0 if that
        is too few to tune the encoder.

        encoding: seconds to encode all rows once
        trainings: how often all rows are trained on; with folds, the last is on all of them
        """
        # Stages of fewer steps are made longer, whatever their epochs.
        shortest = LEAST_STEPS / sum(-(-source.look.rows // BATCH) for source in self.sources)
        possible = self.left / (TRAINING * encoding * trainings)
        if possible < max(LEAST_EPOCHS, shortest):
            return 0.0
        return min(settings.epochs, possible)

    def _encoding_seconds(self, settings: Settings) -> float:
        """How long it takes to encode all rows once, from a sample of them."""
        model = load(settings.onto or self.encoder, device=self.device)
        if settings.encoder is not None:
            reading = {key: settings.encoder[key] for key in ("max_tokens", "long")}
            model.info = model.info.model_copy(update=reading)
        sample, total = [], 0
        for source in self.sources:
            examples = self._examples(linear_recipe(settings), source)
            total += len(examples) * len(examples.texts)
            sample += [text for column in examples.texts for text in column[:256]]
        model.embed(sample[:16])
        began = time.monotonic()
        model.embed(sample)
        return (time.monotonic() - began) * total / len(sample)

    def _examples(self, recipe: Recipe, source: Source) -> Examples:
        return read_examples(recipe.tasks[source.name], "train", self.found.folder)

    def _groups(self, settings: Settings) -> dict[str, list[str | None]]:
        recipe = linear_recipe(settings)
        return {
            source.name: read_groups(recipe.tasks[source.name], source.group, self.found.folder)
            for source in self.sources
            if source.group is not None
        }

    def _baselines(self, linear: Judged) -> dict[str, SimpleScores]:
        """The linear candidate is itself the linear baseline, on the same folds."""
        return {
            name: SimpleScores(
                metric=task.chosen_metric,
                majority=majority_score(task, linear.labels[name], linear.labels[name]),
                linear=linear.score(name),
                rows=len(linear.labels[name]),
                method=f"{FOLDS}-fold cross-validation",
            )
            for name, task in linear.tasks.items()
        }

    def _known_baselines(self) -> dict[str, SimpleScores]:
        stored = read_json_object(self.folder / FILE)["tasks"]
        return {
            name: SimpleScores(
                each["metric"], each.get("majority"), each.get("linear"), each["rows"],
                each["method"],
            )
            for name, each in stored.items()
        }  # fmt: skip

    def _say_choice(self, tuned: Judged, linear: Judged, *, is_tuned: bool) -> None:
        for name in tuned.tasks:
            self.listener.say(
                f"{name}: tuned encoder {tuned.score(name):.3f}, linear model on the encoder as it "
                f"is {linear.score(name):.3f}, by {tuned.tasks[name].chosen_metric}."
            )
        kept = "tuned encoder" if is_tuned else "linear model"
        self.listener.say(f"The {kept} is kept and trained on all rows.")

    def _note_metrics(self, result: TasksResult, baselines: Mapping[str, SimpleScores]) -> None:
        """Put what cross-validation measured into the model folder and the summary."""
        folder = self.folder / "model"
        known = read_info(folder / INFO_FILE).metrics or {}
        update_info(folder, metrics={**known, **result.values})
        summary = read_json_object(self.folder / SUMMARY)
        warnings = _warnings(result, baselines)
        summary |= {"dev": result.values, "warnings": warnings, "method": result.method}
        write_json(self.folder / SUMMARY, summary)

    def _finish(
        self, evaluation: Evaluation | None, baselines: Mapping[str, SimpleScores], data: Path
    ) -> FitResult:
        if evaluation is None:
            evaluation = evaluate(load(self.folder), data, suites=["tasks"])
        report = Report([evaluation], run=self.folder)
        write_text(self.folder / REPORT, report.to_html())
        write_json(self.folder / EVALUATION, report.to_json())
        scores = {
            answers.task: _score(answers, baselines.get(answers.task))
            for answers in evaluation.suites["tasks"].answers()
            if answers.task in {source.name for source in self.sources}
        }
        result = FitResult(self.folder, evaluation, scores, data)
        for warning in result.warnings:
            self.listener.say(f"Warning: {warning}")
        return result


def _decisions(judged: Judged) -> dict[str, dict[str, Any]]:
    """The scaling and thresholds of each task, as a recipe gives them."""
    found: dict[str, dict[str, Any]] = {}
    for name in judged.tasks:
        scaling, thresholds = judged.decisions(name)
        part: dict[str, Any] = {}
        if scaling is not None:
            part["scaling"] = {
                "temperature": round(scaling.temperature, 4), "shift": round(scaling.shift, 4)
            }  # fmt: skip
        if thresholds is not None:
            part["thresholds"] = thresholds
        found[name] = part
    return found


def _warnings(result: TasksResult, baselines: Mapping[str, SimpleScores]) -> list[str]:
    return [
        warning
        for answers in result.answers()
        for warning in warnings_of(
            answers,
            majority=baselines[answers.task].majority,
            linear=baselines[answers.task].linear,
        )
    ]


def _main(result: RunResult, recipe: Recipe, name: str) -> float:
    """A task's main metric on dev, of its most accurate mode."""
    metrics = next(iter(result.dev[name].values()))
    return metrics[recipe.tasks[name].chosen_metric] or 0.0


def _score(answers: Answers, baseline: SimpleScores | None) -> TaskScore:
    estimate = answers.metrics[answers.metric]
    return TaskScore(
        metric=answers.metric,
        value=estimate.value,
        interval=estimate.interval,
        majority=None if baseline is None else baseline.majority,
        linear=None if baseline is None else baseline.linear,
        rows=len(answers.labels),
    )
