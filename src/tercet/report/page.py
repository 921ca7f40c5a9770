"""What a report says, before it has a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tercet.evaluation.compare import Comparison
from tercet.evaluation.evaluation import Evaluation
from tercet.evaluation.presentation import Headline, Section, enumeration
from tercet.evaluation.suite import Missing
from tercet.evaluation.suites import SUITES
from tercet.report.comparison import comparison_sections
from tercet.report.training import RunHistory, training_section


@dataclass(frozen=True, slots=True)
class Page:
    """facts: what each evaluation was made with; findings: subjects and sentences"""

    title: str
    lead: str
    facts: Sequence[dict[str, str]]
    headlines: Sequence[Headline]
    findings: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    missing: Sequence[Missing]


def evaluation_page(evaluation: Evaluation, run: RunHistory | None = None) -> Page:
    """One model; `run` is the history of the run that trained it."""
    results = evaluation.suites.values()
    sections = [
        section
        for name, result in evaluation.suites.items()
        for section in result.sections(SUITES[name])
    ]
    if run is not None:
        sections.append(training_section(run))
    return Page(
        title=f"Evaluation of {evaluation.name}",
        lead="What this model can and cannot do.",
        facts=[_facts(evaluation)],
        headlines=[headline for result in results for headline in result.headlines()],
        findings=[finding for result in results for finding in result.findings().items()],
        sections=[section for section in sections if not section.empty],
        missing=evaluation.missing,
    )


def comparison_page(evaluations: Sequence[Evaluation], comparison: Comparison) -> Page:
    """Models side by side."""
    return Page(
        title=f"Comparison of {enumeration(comparison.names)}",
        lead=(
            "Models side by side on the same rows. A difference is beyond chance if its interval "
            "excludes 0."
        ),
        facts=[_facts(evaluation) for evaluation in evaluations],
        headlines=[],
        findings=[],
        sections=comparison_sections(comparison),
        missing=list(dict.fromkeys(file for each in evaluations for file in each.missing)),
    )


def _facts(evaluation: Evaluation) -> dict[str, str]:
    model = evaluation.model
    facts = {
        "Model": model["name"],
        "Encoder": model["encoder"],
        "Recipe": model["recipe"],
        "Width": model["width"],
        "Data folder": evaluation.data,
        "Machine": _listed(evaluation.machine),
        "Versions": _listed(evaluation.versions),
        "Time": f"{evaluation.seconds:,.0f} seconds",
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value)
