"""What a report says, before it has a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tercet.evaluation import presentation as show
from tercet.evaluation.answers import Answers
from tercet.evaluation.compare import Comparison
from tercet.evaluation.evaluation import Evaluation
from tercet.evaluation.per_class import majority_accuracy
from tercet.evaluation.simple_scores import Baselines
from tercet.evaluation.suite import Missing
from tercet.evaluation.suites import SUITES
from tercet.evaluation.warnings import warnings_of
from tercet.report.baselines import baselines_table
from tercet.report.comparison import comparison_sections, verdict
from tercet.report.training import RunHistory, training_section


@dataclass(frozen=True, slots=True)
class Page:
    """What a report says.

    facts: what each evaluation was made with
    findings: subjects and sentences
    verdict: which model is better on what, in one sentence
    warnings: what is wrong with a model, one sentence each
    """

    title: str
    lead: str
    facts: Sequence[dict[str, str]]
    headlines: Sequence[show.Headline]
    findings: Sequence[tuple[str, str]]
    sections: Sequence[show.Section]
    missing: Sequence[Missing]
    verdict: str = ""
    warnings: Sequence[str] = ()


def evaluation_page(evaluation: Evaluation, run: RunHistory | None = None) -> Page:
    """One model; `run` is the history of the run that trained it."""
    results = evaluation.suites.values()
    answers = [each for result in results for each in result.answers()]
    baselines = {} if run is None else run.baselines
    table = baselines_table(baselines, answers)
    sections = [show.Section("Simple baselines", tables=[table])] if table.rows else []
    sections += [
        section
        for name, result in evaluation.suites.items()
        for section in result.sections(SUITES[name])
    ]
    if run is not None:
        sections.append(training_section(run))
    warnings = [warning for each in answers for warning in _warnings(each, baselines)]
    return Page(
        title=f"Evaluation of {evaluation.name}",
        lead=_lead(evaluation.model["tasks"]),
        facts=[_facts(evaluation)],
        headlines=[
            _with_baseline(headline, baselines)
            for result in results
            for headline in result.headlines()
        ],
        findings=[finding for result in results for finding in result.findings().items()],
        sections=[section for section in sections if not section.empty],
        missing=evaluation.missing,
        warnings=_all_warnings(warnings, run),
    )


def _all_warnings(warnings: Sequence[str], run: RunHistory | None) -> list[str]:
    """Those of the rows measured here and those of the run, without repetition; that time limited
    the model comes first, since it may explain the others."""
    if run is None:
        return list(dict.fromkeys(warnings))
    first = [] if run.shortage is None else [run.shortage]
    # Those of the run are the same sentences where it was measured on the same rows.
    return list(dict.fromkeys([*first, *warnings, *run.warnings]))


def _lead(tasks: Sequence[str]) -> str:
    does = f": {show.enumeration(tasks)}" if tasks else ""
    return f"What this model can and cannot do{does}."


def _with_baseline(headline: show.Headline, baselines: Baselines) -> show.Headline:
    """The main metric of a task with the scores of its baselines in that metric."""
    baseline = baselines.get(headline.subject)
    if baseline is None or headline.metric.partition(",")[0] != baseline.metric:
        return headline
    return replace(headline, note=baseline.note)


def _warnings(answers: Answers, baselines: Baselines) -> list[str]:
    baseline = baselines.get(answers.task)
    if baseline is None or baseline.metric != answers.metric:
        return warnings_of(answers, majority=majority_accuracy(answers), linear=None)
    return warnings_of(answers, majority=baseline.majority, linear=baseline.linear)


def comparison_page(evaluations: Sequence[Evaluation], comparison: Comparison) -> Page:
    """Models side by side."""
    return Page(
        title=f"Comparison of {show.enumeration(comparison.names)}",
        lead=(
            "Models side by side on the same rows. A difference is beyond chance if its interval "
            "excludes 0."
        ),
        facts=[_facts(evaluation) for evaluation in evaluations],
        headlines=[],
        findings=[],
        sections=comparison_sections(comparison),
        verdict=verdict(comparison),
        missing=list(dict.fromkeys(file for each in evaluations for file in each.missing)),
    )


def _facts(evaluation: Evaluation) -> dict[str, str]:
    model = evaluation.model
    facts = {
        "Model": model["name"],
        "Encoder": model["encoder"],
        "Recipe": model["recipe"],
        "Layers": model.get("layers"),
        "Width": model["width"],
        "Data folder": evaluation.data,
        "Machine": _listed(evaluation.machine),
        "Versions": _listed(evaluation.versions),
        "Time": f"{evaluation.seconds:,.0f} seconds",
        "Long texts": " ".join(evaluation.long) or None,
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value)
