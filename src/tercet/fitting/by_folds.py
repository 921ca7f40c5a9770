"""Candidates judged by cross-validation, and the best trained on all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tercet.data.examples import Examples, read_groups
from tercet.evaluation.contamination import Contamination
from tercet.evaluation.evaluation import describe
from tercet.evaluation.simple_scores import Baselines, SimpleScores
from tercet.evaluation.suites.tasks import TaskResult, TasksResult
from tercet.evaluation.warnings import warnings_of
from tercet.files import read_json_object, write_json
from tercet.fitting.budget import NO_TIME, UNTUNED, USED
from tercet.fitting.by_dev import fit_by_dev
from tercet.fitting.choosing import Comparison, Folds, Judged, prefers_tuned, typical
from tercet.fitting.deadline import Deadline, OutOfTimeError
from tercet.fitting.following import joined
from tercet.fitting.planning import Settings, linear_recipe, tune_steps, tuned_recipe
from tercet.fitting.result import SUMMARY
from tercet.fitting.trial import Trial
from tercet.fitting.work import Fitted, Work
from tercet.folders.model_folder import INFO_FILE, read_info, update_info
from tercet.model import Model, load
from tercet.recipe import Recipe
from tercet.training.baselines import majority_score
from tercet.training.distributed import World
from tercet.training.first_vectors import FirstVectors

FOLDS = 3
SPLITS = 3
"""How often rows are dealt out where the first folds speak against tuning: few rows err easily."""
LEAST_SHARED = 60
"""Rows of a task of which a part may judge: of fewer, it would be a handful, which say nothing."""
METHOD = f"{FOLDS}-fold cross-validation"
SHORTENED = (
    "The last training, on all rows, was shortened to end in time; the scores are those of longer "
    "ones: allow more minutes."
)
AGAIN = (
    "Tuning is worse than the linear model on these folds, which is rare: rows are dealt out twice "
    "more, and the scores in the middle are shown."
)
UNFOLDED = (
    "a part of the rows judged the model and was not trained on, instead of cross-validation with "
    "a last training on all rows"
)
UNSURE = "folds that spoke against tuning were not dealt out again"
SLOW = "Training is slower than planned: there is no time to judge it by cross-validation."


def fit_by_folds(work: Work, settings: Settings) -> Fitted:
    """Judge candidates by cross-validation, and train the best on all rows; on a share of the rows
    if that takes too long."""
    world = World.join(work.device)
    # All trainings begin with the same encoder: it reads the rows once for all of them.
    first = FirstVectors(lambda: work.budget.spent)
    linear_trial = Trial(linear_recipe(settings), data=work.data, world=world, first=first)
    examples = {
        source.name: work.examples(linear_trial.recipe, source) for source in settings.sources
    }
    groups = _groups(work, settings)
    splits = [
        Folds(
            examples,
            folds=FOLDS,
            groups=groups,
            seed=settings.seed + split,
        )
        for split in range(SPLITS)
    ]
    with joined(work.listener, "linear model", steps=FOLDS) as following:
        linear = splits[0].judge(linear_trial, following)
    # Fitting the heads, and what that imports, would be most of the time with few rows.
    encoding = splits[0].batch_seconds(linear_trial) * settings.batches
    needed = work.budget.full_seconds(settings, encoding, trainings=FOLDS)
    baselines = _baselines(linear)
    is_folded = work.budget.epochs(settings, encoding, trainings=FOLDS) == settings.epochs
    if is_folded:
        _say_baselines(work, baselines)
        try:
            best, compared = _tune(
                work, settings, splits, linear_trial, linear, world=world, first=first
            )
            return _measured(work, best, examples, _baselines(compared.linear))
        except OutOfTimeError as late:
            encoding, needed = late.encoding, late.needed
            work.listener.say(SLOW)
    is_enough = min(source.look.rows for source in settings.sources) >= LEAST_SHARED
    if is_enough and work.budget.epochs(settings, encoding, trainings=1) > 0.0:
        # No time to train on every fold: one part of the rows judges instead.
        work.budget.leave_out(UNFOLDED, needed=needed)
        return fit_by_dev(work, replace(settings, judge="share"), encoding=encoding)
    if not is_folded:
        _say_baselines(work, baselines)
    work.listener.say(NO_TIME)
    work.budget.leave_out(UNTUNED, needed=needed)
    with joined(work.listener, "heads", steps=1) as following:
        recipe = _decided(linear_recipe, settings, linear)
        work.train(recipe, baselines, following, first=first)
    return _measured(work, linear, examples, baselines)


def _say_baselines(work: Work, baselines: Baselines) -> None:
    for name, scores in baselines.items():
        work.listener.say(scores.sentence(name))


def _tune(
    work: Work,
    settings: Settings,
    splits: Sequence[Folds],
    linear_trial: Trial,
    linear: Judged,
    *,
    world: World,
    first: FirstVectors,
) -> tuple[Judged, Comparison]:
    """Judge the tuned candidate too, and train the better one on all rows; what was measured of it,
    and the comparison that this belongs to.

    linear: what `linear_trial` gave on the first of the splits
    """
    share = 1.0 - 1.0 / FOLDS
    folded = FOLDS * tune_steps(settings, share=share)
    steps = folded + tune_steps(settings)
    deadline = Deadline(work.budget, settings)
    with joined(work.listener, "tuning", steps=steps) as following:
        recipe = tuned_recipe(settings, share=share)
        trial = Trial(recipe, data=work.data, world=world, first=first)

        def limit(done: int, planned: int) -> None:
            deadline.check(done, planned, total=steps)

        began = work.budget.spent
        compared = [Comparison(splits[0].judge(trial, following, limit=limit), linear)]
        seconds = work.budget.spent - began
        # As long again for the last training, which is on all rows.
        if compared[0].gain < 0.0 and len(splits) * seconds >= work.budget.left:
            needed = (work.budget.spent + len(splits) * seconds) / USED
            work.budget.leave_out(UNSURE, needed=needed)
        elif compared[0].gain < 0.0:
            following.tell(AGAIN)
            following.lengthen((len(splits) - 1) * folded)
            compared += [
                Comparison(again.judge(trial, following), again.judge(linear_trial, following))
                for again in splits[1:]
            ]
        is_tuned, shown = prefers_tuned(compared), typical(compared)
        _say_choice(work, shown, is_tuned=is_tuned)
        candidate = tuned_recipe if is_tuned else linear_recipe
        best = shown.tuned if is_tuned else shown.linear
        following.note = "on all rows"
        recipe = _decided(candidate, settings, best)
        last = Deadline(work.budget, settings)
        baselines = _baselines(shown.linear)
        work.train(recipe, baselines, following, deadline=last, first=first)
    return best, shown


def _say_choice(work: Work, compared: Comparison, *, is_tuned: bool) -> None:
    tuned, linear = compared.tuned, compared.linear
    for name in tuned.tasks:
        work.listener.say(
            f"{name}: tuned encoder {tuned.score(name):.3f}, linear model on the encoder as it "
            f"is {linear.score(name):.3f}, by {tuned.tasks[name].chosen_metric}."
        )
    kept = "tuned encoder" if is_tuned else "linear model"
    work.listener.say(f"The {kept} is kept and trained on all rows.")


def _decided(candidate: Callable[[Settings], Recipe], settings: Settings, best: Judged) -> Recipe:
    """The recipe of a candidate with the scalings and thresholds that were found."""
    return candidate(replace(settings, decisions=_decisions(best)))


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


def _groups(work: Work, settings: Settings) -> dict[str, list[str | None]]:
    recipe = linear_recipe(settings)
    return {
        source.name: read_groups(recipe.tasks[source.name], source.group, work.data)
        for source in settings.sources
        if source.group is not None
    }


def _baselines(linear: Judged) -> dict[str, SimpleScores]:
    """The linear candidate is itself the linear baseline, on the same folds."""
    return {
        name: SimpleScores(
            metric=task.chosen_metric,
            majority=majority_score(task, linear.labels[name], linear.labels[name]),
            linear=linear.score(name),
            rows=len(linear.labels[name]),
            method=METHOD,
        )
        for name, task in linear.tasks.items()
    }


def _measured(
    work: Work, best: Judged, examples: Mapping[str, Examples], baselines: Baselines
) -> Fitted:
    """What cross-validation measured of the candidate that was trained."""
    model = load(work.folder, device=work.device)
    results = {name: _result(model, best, name, examples[name]) for name in best.tasks}
    method = (
        f"{METHOD}: each row is predicted by a model that was not trained on it. The model itself "
        "is trained on all rows."
    )
    result = TasksResult.of_rows(results, best.tasks, method=method)
    evaluation = describe(
        model,
        {"tasks": result},
        data=work.data.name,
        seconds=work.budget.spent,
    )
    _note_metrics(work, result, baselines)
    return Fitted(baselines, evaluation)


def _result(model: Model, best: Judged, name: str, examples: Examples) -> TaskResult:
    found = Contamination.of(model, examples.texts)
    answers = best.answers(name, examples, found=found)
    files = [path.name for path in examples.files]
    return TaskResult(list(examples.skipped), files, {answers.mode: answers}, found)  # type: ignore[dict-item]


def _note_metrics(work: Work, result: TasksResult, baselines: Baselines) -> None:
    """Put what cross-validation measured into the model folder and the summary."""
    folder = work.folder / "model"
    known = read_info(folder / INFO_FILE).metrics or {}
    update_info(folder, metrics={**known, **result.values})
    summary = read_json_object(work.folder / SUMMARY)
    summary |= {"dev": result.values, "method": result.method}
    summary["warnings"] = [
        warning
        for answers in result.answers()
        for warning in warnings_of(
            answers,
            majority=baselines[answers.task].majority,
            linear=baselines[answers.task].linear,
        )
    ]
    if any(stage.shortened for stage in Recipe.load(work.folder / "recipe.toml").stages):
        summary["warnings"].append(SHORTENED)
    write_json(work.folder / SUMMARY, summary)
