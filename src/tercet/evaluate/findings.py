"""An evaluation in a few plain sentences: what a model is good at, and what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.evaluate.answers import Answers, Document, answers_of, tasks_of
from tercet.evaluate.details import confidence, confusion

TRUSTED = 0.02
"""A mean confidence that is no further from the accuracy counts as right."""
FELT = 0.005
"""Differences between modes that are smaller are not worth a word."""


def findings(document: Document) -> dict[str, str]:
    """What they are about, the model's own tasks first, and a sentence or more of each."""
    suites = document["suites"]
    found: dict[str, list[str]] = {}
    for task in tasks_of(document):
        every = [one for one in answers_of(document, {}, task) if len(one.labels)]
        if every:
            found[task] = [*_answered(every[0]), *_trusted(every[0]), *_modes(document, every)]
    if sts := suites.get("sts"):
        found["Nearness"] = [*_sts(sts)]
    if transfer := suites.get("transfer"):
        found["Other tasks"] = [*_transfer(transfer)]
    if robustness := suites.get("robustness"):
        found["Word order"] = [*_word_order(robustness)]
        found["Typing errors"] = [*_typos(robustness)]
    return {about: " ".join(told) for about, told in found.items() if told}


def _answered(answers: Answers) -> Iterator[str]:
    """What one mode of a task gets right, and what it mixes up."""
    if answers.classes is None:
        off = float(np.abs(answers.predictions - answers.labels).mean())
        yield f"Grades are off by {off:.2f} on average."
        return
    names = answers.classes
    counts = confusion(answers.labels, answers.said, classes=len(names))
    yield f"{counts.trace() / counts.sum():.0%} of rows are right."
    if len(names) == 2:
        yield from _found(counts, names[1])
        return
    wrong = counts - np.diag(counts.diagonal())
    if wrong.any():
        truth, taken = np.unravel_index(int(wrong.argmax()), wrong.shape)
        yield (
            f"Most often it takes {names[truth]} for {names[taken]}: "
            f"{wrong[truth, taken]:,} of {counts[truth].sum():,}."
        )


def _found(counts: NDArray[np.int64], name: str) -> Iterator[str]:
    """How much of the second class is found, and how much of what is called so is of it."""
    said, there = counts[:, 1].sum(), counts[1].sum()
    if not said:
        yield f"It never says {name}."
    elif there:
        yield (
            f"It finds {counts[1, 1] / there:.0%} of class {name}, and of those that it calls so "
            f"{counts[1, 1] / said:.0%} are."
        )


def _modes(document: Document, every: list[Answers]) -> Iterator[str]:
    """What it costs to compare stored vectors instead of reading a pair jointly."""
    if [one.mode for one in every] != ["cross", "bi"]:
        return
    metric, modes = every[0].metric, tasks_of(document)[every[0].task]["modes"]
    exact, fast = (modes[one.mode]["metrics"][metric]["value"] for one in every)
    if exact is None or fast is None or exact - fast < FELT:
        return
    yield (
        f"Mode bi, which compares stored vectors, reaches {metric} {fast:.3f} where cross, "
        f"which reads both sentences together, reaches {exact:.3f}."
    )


def _trusted(answers: Answers) -> Iterator[str]:
    """Whether a classifier's probabilities can be taken at their word."""
    if answers.classes is None:
        return
    sure = float(confidence(answers.predictions).mean())
    right = float((answers.said == answers.labels).mean())
    if abs(sure - right) <= TRUSTED:
        yield f"It is about as sure as it is right: {sure:.0%} on average."
        return
    yield (
        f"It is {'surer' if sure > right else 'less sure'} than it is right: {sure:.0%} on average."
    )


def _sts(suite: Mapping[str, Any]) -> Iterator[str]:
    average, unleaked = sts_average(suite), suite["without_leaked_pairs"]
    if average is not None:
        yield (
            "Cosines of vectors follow people's grades with a Spearman correlation of "
            f"{average:.3f}, the average of seven sets."
        )
    if unleaked:
        left, there = (
            sum(one["pairs"] for one in sets.values()) for sets in (unleaked, suite["sets"])
        )
        yield (
            f"Left out are {there - left:,} of the {there:,} pairs, which stand in the training or "
            "dev data of a task."
        )


def sts_average(suite: Mapping[str, Any]) -> float | None:
    """The average that leaks do not raise."""
    key = "average_without_leaked_pairs" if suite["without_leaked_pairs"] else "average"
    average: float | None = suite[key]
    return average


def _transfer(suite: Mapping[str, Any]) -> Iterator[str]:
    figures = {
        task: block["metrics"]["accuracy"]["value"] for task, block in suite["tasks"].items()
    }
    if suite["average"] is None:
        return
    best, worst = max(figures, key=figures.__getitem__), min(figures, key=figures.__getitem__)
    yield (
        f"A linear classifier on its vectors is right in {suite['average']:.0%} on "
        f"average, from {worst} ({figures[worst]:.0%}) to {best} ({figures[best]:.0%})."
    )


def _word_order(suite: Mapping[str, Any]) -> Iterator[str]:
    """The heads that word order fools most and least."""
    for name, tasks in suite["word_order"].items():
        shares = {
            f"{task} ({mode})": one["fooled"]
            for task, modes in tasks.items()
            for mode, one in modes.items()
            if one["fooled"] is not None
        }
        if not shares:
            continue
        most, least = (pick(shares, key=shares.__getitem__) for pick in (max, min))
        rest = "" if most == least else f"; {least} takes {shares[least]:.0%}"
        yield (
            f"Of {name}'s pairs that mean different things {most} takes {shares[most]:.0%} for "
            f"the same{rest}."
        )


def _typos(suite: Mapping[str, Any]) -> Iterator[str]:
    """How often typing errors change what the most exact mode of each task says."""
    moved = {
        task: rules["typos"]["moved"]
        for task, modes in suite["changes"].items()
        for rules in list(modes.values())[:1]
        if rules.get("typos", {}).get("moved") is not None
    }
    if moved:
        told = ", ".join(f"{share:.0%} of {task}" for task, share in moved.items())
        yield f"They change predictions that should stay: {told}."
