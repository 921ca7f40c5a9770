"""The parts of results/long.md and results/encoders.md, from what their benchmarks wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import linear_regression
from typing import Any

from tercet.evaluation.presentation import Axis, Chart, Series
from tercet.report.svg import Frame, to_svg
from tercet.reproduce.table import markdown_table

MODELS = {
    "shipped": "`tercet/small` as it comes. A review is positive if `positive` and `somewhat "
    "positive` have together more probability than `negative` and `somewhat negative`. It was "
    "trained on sentences, among them those of CFIMDB's training reviews without their labels, and "
    "on no row of dev.",
    "linear": "a logistic regression on the shipped model's vectors of the training reviews, read "
    "in the same way as dev.",
    "fitted": "one model of `tercet fit` on the training reviews, read in other ways afterwards.",
}
"""The models whose accuracy on reviews is measured, and what they are."""
Document = Mapping[str, Any]


def long_parts(document: Document) -> dict[str, str]:
    """Accuracy by reading, and memory by tokens."""
    models = {name: document[name] for name in MODELS if name in document}
    cells = [
        _reading(name, [each.get(name) for each in models.values()]) for name in document["shipped"]
    ]
    columns = ["reading", "reviews longer", "of their tokens dropped", *models]
    points = memory_points(document)
    logarithms = [(math.log(tokens), math.log(size)) for tokens, size in points]
    power, _ = linear_regression(*zip(*logarithms, strict=True))
    rows = [
        [f"{tokens:,.0f}", f"{size:,.0f}", f"{1000 * size / tokens:,.0f}"]
        for tokens, size in points
    ]
    parts = [*models.values(), document["memory"]]
    return {
        "models": "\n".join(f"- *{name}*: {_about(name, document)}" for name in models),
        "rows": str(next(iter(document["shipped"].values()))["rows"]),
        "reviews": "\n".join(markdown_table(columns, cells)),
        "memory": "\n".join(markdown_table(["tokens", "MiB", "MiB per 1,000 tokens"], rows)),
        "power": f"{power:.2f}",
        "made": _made([each["made_with"] for part in parts for each in part.values()]),
    }


def _about(name: str, document: Document) -> str:
    return " ".join([MODELS[name], *document.get("notes", {}).get(name, [])])


def _reading(name: str, found: Sequence[Document | None]) -> list[str]:
    """A line of the table: what is read, and the accuracy of each model that was measured so."""
    first = next(each for each in found if each is not None)
    scores = ["" if e is None else f"{e['accuracy']:.3f} ± {e['error']:.3f}" for e in found]
    return [name, f"{first['long'] / first['rows']:.0%}", f"{first['lost']:.0%}", *scores]


def _made(records: Sequence[Document]) -> str:
    commits = ", ".join(sorted({each["commit"] for each in records}))
    machines = sorted({f"{each['processor']}, threads: {each['threads']}" for each in records})
    return f"Measured at commit {commits}; {'; '.join(machines)}; torch {records[0]['torch']}."


def memory_points(document: Document) -> list[tuple[float, float]]:
    """Tokens and MiB, rising."""
    memory = document["memory"]
    return sorted((float(tokens), each["bytes"] / 2**20) for tokens, each in memory.items())


def memory_chart(document: Document) -> str:
    """The SVG chart of memory against tokens."""
    points = memory_points(document)
    chart = Chart(
        title="Memory beyond the weights",
        alternative="Memory that ModernBERT-base takes for one text, by its tokens.",
        x=Axis("tokens", 0.0, points[-1][0]),
        y=Axis("MiB", 0.0, 1.1 * max(size for _, size in points)),
        series=[Series("ModernBERT-base", points, kind="marked")],
    )
    return to_svg([chart], title=chart.title, frames=[Frame(width=460.0)])


def encoders_parts(document: Document) -> dict[str, str]:
    """A table for each machine and precision."""
    lines: list[str] = []
    for title, found in document.items():
        families = found["families"]
        first = next(iter(families.values()))
        columns = ["architecture", "layers", "tokens per text", "Tercet, sentences/s"]
        columns += ["sentence-transformers", "ratio", "its setting", "lowest cosine"]
        cells = [_family(name, each) for name, each in families.items()]
        versions = ", ".join(f"{part} {number}" for part, number in first["versions"].items())
        commits = ", ".join(sorted({each["commit"] for each in families.values()}))
        lines += [f"## {title}", "", *markdown_table(columns, cells), ""]
        lines += [f"{first['sentences']:,} texts; commit {commits}; {versions}.", ""]
    return {"tables": "\n".join(lines).rstrip()}


def _family(name: str, found: Document) -> list[str]:
    rates = [f"{found[side]:,.0f}" for side in ("ours", "peer")]
    ratio = f"{found['ratio']:.2f}"
    # Rows copied from the benchmark's printed table have no cosine.
    cosine = f"{found['lowest_cosine']:.5f}" if "lowest_cosine" in found else ""
    shape = [str(found["layers"]), f"{found['tokens_per_text']:.1f}"]
    return [name, *shape, *rates, ratio, found["peer_setting"], cosine]
