"""Evaluations of one or several models, in every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tercet.evaluation.compare import Comparison, compare
from tercet.evaluation.evaluation import SCHEMA, Evaluation
from tercet.evaluation.presentation import Table
from tercet.evaluation.suites import SUITES
from tercet.report.html import render_html
from tercet.report.markdown import render_markdown
from tercet.report.mistakes import MistakesFile, mistakes_file
from tercet.report.page import Page, comparison_page, evaluation_page
from tercet.report.training import read_run


class Report:
    """What evaluations leave: of several models, all of them and their comparison."""

    def __init__(
        self,
        evaluations: Sequence[Evaluation],
        *,
        run: Path | None = None,
        other_rows: bool = False,
    ) -> None:
        """run: the run folder of a single model, if it has one
        other_rows: whether other rows are measured than in the run, whose simple baselines and
            warnings then say nothing about them
        """
        self.evaluations = evaluations
        self.run = run
        self.other_rows = other_rows

    @cached_property
    def comparison(self) -> Comparison:
        return compare(self.evaluations)

    @cached_property
    def page(self) -> Page:
        if len(self.evaluations) > 1:
            return comparison_page(self.evaluations, self.comparison)
        history = None if self.run is None else read_run(self.run)
        if history is not None and self.other_rows:
            history = replace(history, baselines={}, warnings=[])
        return evaluation_page(self.evaluations[0], history)

    def to_json(self) -> dict[str, Any]:
        documents = [evaluation.to_json() for evaluation in self.evaluations]
        if len(documents) == 1:
            return documents[0]
        return {"schema": SCHEMA, "models": documents, "comparison": self.comparison.to_json()}

    def to_html(self) -> str:
        return render_html(self.page)

    def to_markdown(self) -> str:
        return render_markdown(self.page)

    @property
    def warnings(self) -> Sequence[str]:
        """What is wrong with a model; comparisons have none."""
        return self.page.warnings

    @property
    def verdict(self) -> str:
        """Which model is better on what; empty for one model."""
        return self.page.verdict

    def mistakes(self) -> MistakesFile:
        """All mistakes of all tasks, each by its most accurate mode."""
        return mistakes_file(self.evaluations)

    def tables(self) -> list[tuple[str, Table]]:
        """The tables without sentences, with their titles, for a terminal."""
        if len(self.evaluations) > 1:
            titled = [(part.title, table) for part in self.page.sections for table in part.tables]
        else:
            results = self.evaluations[0].suites
            titled = [
                (SUITES[name].title, table)
                for name, result in results.items()
                for table in result.tables()
            ]
        return [(title, table) for title, table in titled if not table.filters]
