"""Scores of a finished experiment on its training rows, which some reports give too."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tercet.files import write_json

TRAIN_FILE = "train.json"
"""In a run folder: TASK.MODE.METRIC, as `dev` in summary.json."""


def write_train_scores(run: Path, *, data: Path, log: Path, environment: Mapping[str, str]) -> int:
    """Write the scores into a run folder, unless they are there; the exit code of the command."""
    if (run / TRAIN_FILE).is_file():
        return 0
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "train.json"
        command = [sys.executable, "-m", "tercet", "evaluate", str(run), "--data", str(data)]
        command += ["--split", "train", "--json", str(document)]
        with log.open("ab") as stream:
            ended = subprocess.run(
                command, stdout=stream, stderr=stream, env=environment, check=False
            )
        if ended.returncode == 0:
            tasks = json.loads(document.read_text("utf-8"))["suites"]["tasks"]["tasks"]
            write_json(run / TRAIN_FILE, {name: _values(task) for name, task in tasks.items()})
    return ended.returncode


def _values(task: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """MODE.METRIC of the evaluation of a task, without intervals."""
    return {
        mode: {metric: value["value"] for metric, value in found["metrics"].items()}
        for mode, found in task["modes"].items()
    }
