"""The HTML report: one file that opens offline and makes no network request."""

from __future__ import annotations

import base64
import hashlib

from tercet.evaluation.presentation import ConfusionMatrix, Headline, decimal
from tercet.report.page import Page
from tercet.report.svg import plot
from tercet.report.templating import environment, source


def render_html(page: Page) -> str:
    script = source("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment().get_template("report.html.jinja")
    return template.render(
        page=page,
        style="".join(map(source, ("palette.css", "report.css", "chart.css"))),
        script=script,
        digest=digest,
        plot=plot,
        decimal=decimal,
        bar=bar,
        shares=shares,
        anchor=anchor,
    )


def anchor(title: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in title.lower())


def bar(headline: Headline) -> list[float]:
    """The value, and the bounds of its interval, in per cent of the bar."""
    value, interval = headline.estimate.value, headline.estimate.interval
    values = [] if value is None else [value, *(interval or ())]
    return [round(100.0 * min(1.0, max(0.0, each)), 1) for each in values]


def shares(matrix: ConfusionMatrix) -> list[list[tuple[int, float | None]]]:
    """Counts with their share of the expected class; None where the class never occurs."""
    return [
        [(int(count), float(count / row.sum()) if row.any() else None) for count in row]
        for row in matrix.counts
    ]
