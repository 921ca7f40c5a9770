"""Cells that a spreadsheet would run as formulas, made plain text."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

# As OWASP recommends for CSV; a number may begin with a sign. Python and Arrow read the same
# patterns, but only Arrow's $ is strictly the end.
FORMULA = r"[=+\-@\t\r]"
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


def neutralised(cell: str) -> str:
    """The cell, with a `'` in front if a spreadsheet would run it as a formula; numbers stay."""
    return f"'{cell}" if re.match(FORMULA, cell) and not re.fullmatch(NUMBER, cell) else cell


def without_formulas(texts: pa.Array) -> tuple[pa.Array, int]:
    """The same for texts [n]. Returns also how many are changed."""
    formulas = pc.and_(
        pc.match_substring_regex(texts, f"^{FORMULA}"),
        pc.invert(pc.match_substring_regex(texts, f"^{NUMBER}$")),
    )
    count = pc.sum(formulas).as_py() or 0
    if not count:
        return texts, 0
    quote, nothing = pa.scalar("'", texts.type), pa.scalar("", texts.type)
    quoted = pc.binary_join_element_wise(quote, texts, nothing)
    return pc.if_else(formulas, quoted, texts), count


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def describe_formulas(count: int) -> str:
    """What was done to formulas, as a sentence."""
    cells = "1 cell begins" if count == 1 else f"{count:,} cells begin"
    return f"{cells} like a formula: a ' in front keeps a spreadsheet from running it."
