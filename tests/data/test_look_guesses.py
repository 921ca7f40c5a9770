"""What a labelled file is about."""

from __future__ import annotations

import json
from pathlib import Path

from tercet.data.look import look_at

TEXTS = ["The invoice is wrong", "Where is my parcel", "I cannot log in", "It broke today"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_dates_addresses_and_links_are_neither_texts_nor_labels(tmp_path: Path) -> None:
    rows = [
        f"2024-03-{n + 10} 09:{n + 10};ann{n}@mail.org;https://a.org/{n};{TEXTS[n % 4]} {n};"
        f"{'billing' if n % 2 else 'delivery'}"
        for n in range(20)
    ]
    look = look_at(write(tmp_path / "t.csv", ["created;from;link;message;team", *rows]))
    assert (look.texts, look.label, look.doubts) == (("message",), "team", ())


def test_lists_of_labels_that_vary_as_much_as_texts_are_labels(tmp_path: Path) -> None:
    names = ["account access", "late parcels", "wrong invoices"]
    lists = [[names[k] for k in range(3) if n >> k & 1] for n in range(8)]
    rows = [json.dumps({"text": TEXTS[n % 4], "about": lists[n]}) for n in range(8)]
    look = look_at(write(tmp_path / "t.jsonl", rows))
    assert (look.texts, look.label, look.kind) == (("text",), "about", "multi-label")
    assert look.names == sorted(names)
    assert look.doubts == ()


def test_cells_of_several_labels_that_vary_as_much_as_texts_are_labels(tmp_path: Path) -> None:
    names = ["account access", "late parcels", "wrong invoices"]
    cells = ["; ".join(names[k] for k in range(3) if n >> k & 1) for n in range(8)]
    rows = [f"{TEXTS[n % 4]},{cells[n]}" for n in range(8)]
    look = look_at(write(tmp_path / "t.csv", ["text,tags", *rows]))
    assert (look.texts, look.label, look.kind) == (("text",), "tags", "multi-label")
    assert (look.names, look.separator) == (sorted(names), ";")


def test_many_numbers_are_grades_and_certainly_so_by_their_name(tmp_path: Path) -> None:
    rows = [f"{TEXTS[n % 4]} {n},{n % 10 + 1}" for n in range(40)]
    named = look_at(write(tmp_path / "a.csv", ["text,grade", *rows]))
    other = look_at(write(tmp_path / "b.csv", ["text,points", *rows]))
    assert (named.kind, named.range, named.doubts) == ("grades", (1.0, 10.0), ())
    assert other.kind == "grades"
    assert "--kind classes" in other.doubts[0]


def test_one_row_is_not_called_rows(tmp_path: Path) -> None:
    rows = ["The invoice is wrong,a", "The invoice is wrong,a", "Where is it now,b", ",b"]
    sentences = look_at(write(tmp_path / "t.csv", ["text,label", *rows])).sentences()
    assert sentences[1] == (
        "1 row without a text or a label is left out; 1 row repeats the texts of an earlier row."
    )
