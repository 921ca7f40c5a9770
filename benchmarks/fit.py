"""`tercet.fit` against SetFit, model2vec's classifier and a linear model on frozen vectors.

    python benchmarks/fit.py cells
    python benchmarks/fit.py prepare DIR --data TERCET_DATA
    python benchmarks/fit.py distil ENCODER STATIC
    python benchmarks/fit.py run --method METHOD --data DIR --out RESULTS [--cells PATTERN...]
        [--draws 1 2 3] [--encoder FOLDER] [--device cuda] [--jobs 8] [--threads 2] [--minutes 10]
        [--steps 40]
    python benchmarks/fit.py table RESULTS...

Peers run in environments of their own (fit_peers/*.txt) that need no Tercet: `prepare` writes the
rows of every cell and draw as CSV. `run` skips jobs that have a result. With --steps SetFit stops
early and gives no scores: its time is estimated from its pace.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from fit_peers.cells import CELLS, DRAWS, select
from fit_peers.jobs import METHODS, Setting, jobs_of, run_jobs


def cells(_: argparse.Namespace) -> None:
    for cell in CELLS:
        print(f"{cell.name}\t{cell.kind}\t{len(DRAWS)} draws")


def prepare(arguments: argparse.Namespace) -> None:
    from fit_peers.draws import prepare as write

    write(arguments.data, arguments.folder)


def distil(arguments: argparse.Namespace) -> None:
    from fit_peers.model2vec_method import distil as write

    print(f"{write(arguments.encoder, arguments.folder):.1f} s")


def run(arguments: argparse.Namespace) -> None:
    setting = Setting(
        encoder=arguments.encoder,
        data=arguments.data.absolute(),
        device=arguments.device,
        threads=arguments.threads,
        minutes=arguments.minutes,
        at_once=arguments.jobs,
        steps=arguments.steps,
    )
    jobs = jobs_of(arguments.method, select(arguments.cells), arguments.draws)
    sys.exit(run_jobs(jobs, setting, arguments.out) > 0)


def table(arguments: argparse.Namespace) -> None:
    from fit_peers.table import write

    write(arguments.folders, arguments.results)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="tercet.fit against its peers")
    parser.set_defaults(act=cells)
    commands = parser.add_subparsers()
    commands.add_parser("cells", help="list the cells").set_defaults(act=cells)
    command = commands.add_parser("prepare", help="write the rows of all cells and draws")
    command.set_defaults(act=prepare)
    command.add_argument("folder", type=Path)
    command.add_argument("--data", type=Path, default=os.environ.get("TERCET_DATA", "data"))
    command = commands.add_parser("distil", help="a static model for model2vec")
    command.set_defaults(act=distil)
    command.add_argument("encoder", type=Path)
    command.add_argument("folder", type=Path)
    command = commands.add_parser("run", help="run jobs that have no result yet")
    command.set_defaults(act=run)
    command.add_argument("--method", choices=METHODS, required=True)
    command.add_argument("--cells", nargs="+", default=["*"], metavar="PATTERN")
    command.add_argument("--draws", nargs="+", type=int, default=DRAWS, choices=DRAWS)
    command.add_argument("--data", type=Path, required=True, help="what `prepare` wrote")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--encoder", default="all-minilm-l6-v2")
    command.add_argument("--device", default="cpu")
    command.add_argument("--jobs", type=int, default=1, help="jobs side by side")
    command.add_argument("--threads", type=int, default=2, help="of each job")
    command.add_argument("--minutes", type=float, default=10.0, help="tercet's budget")
    command.add_argument("--steps", type=int, help="SetFit's, to estimate its time from its pace")
    command = commands.add_parser("table", help="collect results into results/fit.md and .json")
    command.set_defaults(act=table)
    command.add_argument("folders", type=Path, nargs="+")
    command.add_argument("--results", type=Path, default=Path("results"))
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    arguments.act(arguments)


if __name__ == "__main__":
    main()
