"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

MODEL_HELP = "A model folder, a run, or a hub id; else the one that ships."
ModelOption = Annotated[str | None, typer.Option(metavar="MODEL", help=MODEL_HELP)]
