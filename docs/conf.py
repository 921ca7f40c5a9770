"""The documentation site: `make docs`.

The source folder is the repository, so that links between docs/, results/ and the files beside them
are the same on the site as in the repository.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

from reference import generated  # noqa: E402

import tercet  # noqa: E402

project = "Tercet"
author = "the Tercet authors"
release = tercet.__version__
html_title = f"Tercet {release}"

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "results/**.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
exclude_patterns = [".*", "benchmarks", "build", "demo", "runs", "src", "studies", "tests", "tools"]
myst_heading_anchors = 4
smartquotes = False
highlight_language = "none"
python_maximum_signature_line_length = 80

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["site"]
html_search_scorer = str(ROOT / "docs" / "search.js")
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

_PLACE = re.compile(r"^.*<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


def fill(app: Any, page: str, source: list[str]) -> None:
    """Put the generated reference in its place; the line there is for readers of the file."""
    source[0] = _PLACE.sub(lambda found: generated(found[1]), source[0])


def setup(app: Any) -> None:
    app.connect("source-read", fill)
