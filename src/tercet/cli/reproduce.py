"""`tercet reproduce`: run the reports' experiments and compare with the published results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_message
from tercet.cli.options import PluginOption
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.reproduce.runs import Outcome


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Recipes, or groups such as simcse; default: all of the reports."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All experiments of the reports; the same as no names.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="TERCET_DATA", help="The folder of the recipes' files."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of runs, logs, table and figure.")
    ] = Path("reproduction"),
    encoder: Annotated[
        str | None, typer.Option(help="The encoder; default: that of each recipe.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds per recipe.")] = 1,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Number of parallel runs.")] = 1,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train the recipes' teachers first.")
    ] = False,
    train_scores: Annotated[
        bool,
        typer.Option("--train-scores", help="Also score training rows, where the report does."),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Start no experiment after N minutes; those that run finish. Default: no limit.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key in all recipes."),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Run experiments by name and compare them with the published results in a table and a chart.

    A second call resumes where the first stopped, and keeps the rows of earlier calls with the same
    --out. A failed experiment becomes a row with the reason, and the command exits with 2.
    Every first seed comes before any second, and without names those come first that the reports'
    conclusions compare.

    Example: tercet reproduce bertology simcse/all-tasks --encoder all-minilm-l6-v2 --data DIR
    """
    from tercet.reproduce.contrasts import compared_first
    from tercet.reproduce.facts import facts_of
    from tercet.reproduce.figure import draw
    from tercet.reproduce.runs import choose, run_all, with_earlier
    from tercet.reproduce.table import build_rows, write_table

    if every and names:
        raise TercetError(f"--all runs all experiments: leave {', '.join(names)} out.")
    chosen = choose(names) if names else compared_first(choose([]))
    own = [*([f"encoder.name={encoder}"] if encoder is not None else []), *(overrides or [])]
    out.mkdir(parents=True, exist_ok=True)

    def write(outcomes: list[Outcome]) -> None:
        known = with_earlier(outcomes, out)
        write_table(build_rows(known, out), out, facts=facts_of(known, out))

    def report(outcome: Outcome, outcomes: list[Outcome], total: int) -> None:
        how = "is done" if outcome.reason is None else f"failed: {outcome.reason}"
        name, seed = outcome.experiment.name, outcome.experiment.seed
        print_message(f"{len(outcomes)} of {total}: {name} with seed {seed} {how}")
        # After each experiment, so that the table is there whatever happens to the rest.
        write(outcomes)

    def found(finished: int, total: int) -> None:
        if finished:
            print_message(f"{finished} of {total} are finished already.")

    outcomes = run_all(
        chosen,
        data=data or Path(),
        out=out,
        seeds=seeds,
        jobs=jobs,
        changes=own,
        from_scratch=from_scratch,
        train_scores=train_scores,
        minutes=minutes,
        report=report,
        found=found,
    )
    write(outcomes)
    if left := seeds * len(chosen) - sum(each.experiment.name in chosen for each in outcomes):
        print_message(f"{left} experiments were not started in time; the same call starts them.")
    draw(build_rows(with_earlier(outcomes, out), out), out / "figure.svg")
    print(out / "table.md")
    if failed := sum(each.reason is not None for each in outcomes):
        raise TercetError(f"{failed} of {len(outcomes)} experiments failed; the table says why.")
