"""CSV cells that are safe to open in a spreadsheet."""

from __future__ import annotations

from tercet.data.labels import parse_number

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet runs."""


def neutralised(cell: str) -> str:
    """The cell, with a ' in front if a spreadsheet would run it as a formula; numbers stay."""
    return f"'{cell}" if cell.startswith(FORMULA) and parse_number(cell) is None else cell
