"""Train variants of a recipe, each by `tercet train` in its own process, several at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tomli_w

from tercet.cores import shared_environment

Tree = dict[str, Any]


def train_all(variants: dict[str, Tree], *, data: Path, out: Path, jobs: int) -> dict[str, bool]:
    """Train recipes by name into their `run_folder`; returns which of them finished.

    Finished runs are not trained again; interrupted ones are resumed.
    """
    environment = shared_environment(min(jobs, len(variants)))
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            name: pool.submit(
                _train, tree, data=data, folder=out / _file_name(name), environment=environment
            )
            for name, tree in variants.items()
        }
        return {name: run.result() for name, run in runs.items()}


def run_folder(out: Path, name: str) -> Path:
    return out / _file_name(name) / "run"


def read_summary(out: Path, name: str) -> Tree:
    summary: Tree = json.loads((run_folder(out, name) / "summary.json").read_text("utf-8"))
    return summary


def _file_name(name: str) -> str:
    return name.replace(" ", "-")


def _train(tree: Tree, *, data: Path, folder: Path, environment: dict[str, str]) -> bool:
    """Train one recipe, with its output in log.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = folder / "recipe.toml"
    recipe.write_text(tomli_w.dumps(tree), "utf-8")
    command = [sys.executable, "-m", "tercet", "train", str(recipe), "--resume"]
    command += ["--data", str(data), "--out", str(folder / "run")]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
    return process.returncode == 0
