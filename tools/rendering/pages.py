"""A page of results/: the template tools/pages/NAME.md, filled from results/NAME.json.

A record is what one command measured: `command`, `commit`, `machine`, further facts such as
`encoder` and `data`, a table in `columns` and `rows`, and single figures in `values`. In the
template `{record}` is its table and `{record.key}` one of its facts or values; `{key}` is one of
the document's own `values`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tercet.files import read_json_object, write_text
from tercet.reproduce.table import markdown_table

TEMPLATES = Path(__file__).resolve().parents[1] / "pages"
_PLACE = re.compile(r"\{([a-z0-9][\w ,.-]*)\}")

Parts = Mapping[str, str]


def page_names(results: Path) -> list[str]:
    """Every page that has a template and a JSON file."""
    names = (template.stem for template in sorted(TEMPLATES.glob("*.md")))
    return [name for name in names if (results / f"{name}.json").is_file()]


def render_page(results: Path, name: str, more: Parts | None = None) -> None:
    """Write a page; `more`: parts that are not in its own JSON file as they are."""
    document = read_json_object(results / f"{name}.json")
    write_text(results / f"{name}.md", fill(f"{name}.md", {**parts_of(document), **(more or {})}))


def parts_of(document: Mapping[str, Any]) -> dict[str, str]:
    """What the places of a template can name."""
    parts = {key: _shown(value) for key, value in document.get("values", {}).items()}
    for name, record in document.get("records", {}).items():
        if "rows" in record:
            rows = [[str(cell) for cell in row] for row in record["rows"]]
            parts[name] = "\n".join(markdown_table(record["columns"], rows))
        facts = {key: fact for key, fact in record.items() if key not in ("rows", "columns")}
        for key, value in {**facts, **record.get("values", {})}.items():
            parts[f"{name}.{key}"] = _shown(value)
    return parts


def _shown(value: Any) -> str:
    """A fact in words: versions as `package number`, lists by commas."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def fill(page: str, parts: Parts) -> str:
    """A page of tools/pages with its places filled.

    A place without a part is an error, except a table of its own line: that is not measured yet.
    """

    def part(place: re.Match[str]) -> str:
        if (name := place[1]) in parts:
            return parts[name]
        if place[0] in lines:
            return "*Not measured yet.*"
        raise SystemExit(f"tools/pages/{page}: {{{name}}} is not in its records.")

    template = (TEMPLATES / page).read_text("utf-8")
    lines = set(template.splitlines())
    return _PLACE.sub(part, template)
