"""`tercet reproduce`: run the reports' experiments and set our figures beside theirs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_message
from tercet.cli.options import PluginOption

if TYPE_CHECKING:
    from tercet.reproduce.runs import Outcome


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Recipes, or the part before the slash; all of the reports' if none."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="TERCET_DATA", help="Where the recipes' files lie."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Runs, logs, table and figure.")] = Path(
        "reproduction"
    ),
    encoder: Annotated[
        str | None, typer.Option(help="Instead of the encoder that the recipes name.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds each.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="How many run at once.")] = 1,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train the teachers of the recipes first.")
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of every recipe."),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Run experiments by name; write table.md, table.json and figure.svg of published and measured.

    Called again, it goes on where it stopped, and rows of earlier calls with the same --out stay.
    An experiment that fails is a row with its reason.

    Example: tercet reproduce bertology simcse/all-tasks --encoder all-minilm-l6-v2 --data DIR
    """
    from tercet.reproduce.facts import facts_of
    from tercet.reproduce.figure import draw
    from tercet.reproduce.runs import choose, run_all, with_earlier
    from tercet.reproduce.table import build_rows, write_table

    chosen = choose(names or [])
    own = [*([f"encoder.name={encoder}"] if encoder is not None else []), *(overrides or [])]
    out.mkdir(parents=True, exist_ok=True)

    def tell(outcome: Outcome, outcomes: list[Outcome], total: int) -> None:
        how = "is done" if outcome.reason is None else f"failed: {outcome.reason}"
        one = outcome.experiment
        print_message(f"{len(outcomes)} of {total}: {one.name} with seed {one.seed} {how}")
        # Again after each, so that what is done is told whatever happens to the rest.
        every = with_earlier(outcomes, out)
        write_table(build_rows(every, out), out, facts=facts_of(every, out))

    outcomes = run_all(
        chosen,
        data=data or Path(),
        out=out,
        seeds=seeds,
        jobs=jobs,
        changes=own,
        from_scratch=from_scratch,
        tell=tell,
    )
    draw(build_rows(with_earlier(outcomes, out), out), out / "figure.svg")
    print(out / "table.md")
