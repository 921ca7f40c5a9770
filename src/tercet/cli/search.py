"""`tercet search`: the nearest texts of an index."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import RESULTS, print_message, print_table
from tercet.cli.options import PluginOption

if TYPE_CHECKING:
    from tercet.search.hits import Hit


def search(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of an index.")],
    queries: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to search for.")],
    top: Annotated[int, typer.Option(metavar="K", min=1, help="Rows per query.")] = 10,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help='A condition on columns: "price > 3".')
    ] = None,
    rerank: Annotated[
        int, typer.Option(metavar="N", min=0, help="Rerank the nearest N rows with the cross mode.")
    ] = 0,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="The model of the index; default: found by its stored name."
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Find the nearest texts of an index: a table on a terminal, JSON lines in a pipe.

    Example: tercet search news.index "rising prices" --top 5 --where "year >= 2020" --rerank 20
    """
    from tercet.search.index import Index

    index = Index.open(folder)
    if where is not None:
        index.count(where)  # an error in it is reported before a model is loaded
    if model is not None:
        from tercet.model import load

        index.model = load(model, layers=index.layers, long=index.long)
    results = index.search(queries, top=top, where=where, rerank=rerank)
    for sentence in index.model.describe_long():
        print_message(sentence)
    for query, hits in zip(queries, results, strict=True):
        if RESULTS.is_terminal:
            _print(query, hits, index.columns, several=len(queries) > 1)
        else:
            sys.stdout.writelines(line + "\n" for line in _lines(query, hits))


def _lines(query: str, hits: Sequence[Hit]) -> list[str]:
    lines = []
    for rank, hit in enumerate(hits, start=1):
        row: dict[str, object] = {"query": query, "rank": rank, "id": hit.id, "text": hit.text}
        row["score"] = hit.score
        if hit.cross is not None:
            row["cross"] = hit.cross
        if hit.columns:
            row["columns"] = hit.columns
        lines.append(json.dumps(row, ensure_ascii=False, default=str))
    return lines


def _print(query: str, hits: Sequence[Hit], columns: Sequence[str], *, several: bool) -> None:
    if several:
        RESULTS.print(query, style="bold")
    reranked = any(hit.cross is not None for hit in hits)
    rows = [
        [
            f"{hit.score:.4f}",
            *([("" if hit.cross is None else f"{hit.cross:.4f}")] if reranked else []),
            hit.id,
            hit.text,
            *("" if hit.columns[name] is None else hit.columns[name] for name in columns),
        ]
        for hit in hits
    ]
    print_table(["score", *(["cross"] if reranked else []), "id", "text", *columns], rows)
