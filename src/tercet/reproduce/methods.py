"""The methods of the reports, one by one: their own words, the recipe, and what differs.

All of it is in the headers of the recipes, in paragraphs that begin with `Report, PLACE:`,
`Sizes`, `Differs:` and `Left open`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tercet.recipe import BundledRecipe, bundled

_STARTS = ("Report, ", "Sizes, ours / theirs: ", "Differs: ", "Left open by the report; ")
_QUOTE = re.compile(r'Report, (?P<place>[^:]+): "(?P<words>.*)"')
_PAGE = """# Every method of the five reports

Generated from the headers of the recipes by `make results`. The reports begin with
bert-base-uncased, and so do the recipes; our tables use other encoders ([why](README.md)). Sizes
are training rows, ours and then theirs. *Assumed* is what a report leaves open. Recipes that a
report proposes but does not run, and variants of ours, have no published score.
"""


@dataclass(frozen=True, slots=True)
class Method:
    """What the header of a recipe says.

    quotes: where in the report, and its words
    """

    recipe: str
    report: str
    quotes: tuple[tuple[str, str], ...]
    sizes: str
    differs: str
    assumed: str


def methods() -> list[Method]:
    """One per recipe of a report, by name."""
    reports = ((recipe, recipe.parse().report) for recipe in bundled())
    return [_method(recipe, report) for recipe, report in reports if report is not None]


def _method(recipe: BundledRecipe, report: str) -> Method:
    paragraphs = _paragraphs(recipe.text)
    found = {start: _with_start(paragraphs, start) for start in _STARTS}
    quotes = [_QUOTE.fullmatch(f"Report, {words}") for words in found["Report, "]]
    return Method(
        recipe=recipe.name,
        report=report,
        quotes=tuple((quote["place"], quote["words"]) for quote in quotes if quote is not None),
        sizes=" ".join(found["Sizes, ours / theirs: "]),
        differs=" ".join(found["Differs: "]),
        assumed=" ".join(found["Left open by the report; "]).removeprefix("assumed here: "),
    )


def _paragraphs(text: str) -> list[str]:
    """The header, a paragraph for each line that begins one."""
    paragraphs = [""]
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words = line.removeprefix("#").strip()
        if words.startswith(_STARTS):
            paragraphs.append(words)
        else:
            paragraphs[-1] = f"{paragraphs[-1]} {words}"
    return paragraphs


def _with_start(paragraphs: Sequence[str], start: str) -> list[str]:
    return [words.removeprefix(start) for words in paragraphs if words.startswith(start)]


def methods_page() -> str:
    """methods.md: a table for each report."""
    every = methods()
    lines = [_PAGE]
    for report in dict.fromkeys(method.report for method in every):
        lines += [f"## {report}", "", "| recipe | the report | what differs |", "|---|---|---|"]
        lines += [_line(method) for method in every if method.report == report]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(method: Method) -> str:
    quotes = "<br>".join(f'{place}: "{words}"' for place, words in method.quotes)
    sizes = f"Sizes: {method.sizes}" if method.sizes else ""
    assumed = f"*Assumed:* {method.assumed}" if method.assumed else ""
    differs = method.differs[:1].upper() + method.differs[1:]
    cells = [method.recipe, quotes, " ".join(filter(None, (differs, sizes, assumed)))]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
