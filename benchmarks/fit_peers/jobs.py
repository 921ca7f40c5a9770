"""Jobs: one method on one cell and draw, measured and written as one JSON file."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, get_args

from fit_peers.cells import Cell, Kind, Row, read_rows

Method = Literal["tercet", "setfit", "model2vec", "linear"]
METHODS: tuple[Method, ...] = get_args(Method)
Predict = Callable[[list[tuple[str, ...]]], Sequence[str] | Sequence[float]]
"""Texts or pairs to labels, or to grades."""

# SetFit's and model2vec's classifiers take single texts; neither can be given pairs or grades.
KINDS: dict[Method, tuple[Kind, ...]] = {
    "tercet": get_args(Kind),
    "setfit": ("texts",),
    "model2vec": ("texts",),
    "linear": get_args(Kind),
}
PACKAGES = (
    "tercet",
    "setfit",
    "model2vec",
    "torch",
    "transformers",
    "sentence-transformers",
    "scikit-learn",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every job of a call has in common.

    encoder: a folder of weights, or a name; for model2vec a static model
    minutes: the budget of methods that take one
    at_once: how many jobs share the machine
    steps: SetFit ends after so many, and the time of the others is estimated; None: all
    """

    encoder: str
    data: Path
    device: str
    threads: int
    minutes: float
    at_once: int
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    method: Method
    cell: Cell
    draw: int

    def file(self, out: Path) -> Path:
        return out / f"{self.method}.{self.cell.data}.{self.cell.size}.{self.draw}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a method is given: rows, the file that contains them, and a folder of its own."""

    rows: list[Row]
    file: Path
    kind: Kind
    seed: int
    scratch: Path
    setting: Setting


def jobs_of(method: Method, cells: Sequence[Cell], draws: Sequence[int]) -> list[Job]:
    """The jobs that the method can do, those with most rows first."""
    able = [cell for cell in cells if cell.kind in KINDS[method]]
    by_rows = sorted(able, key=lambda cell: cell.rows, reverse=True)
    return [Job(method, cell, draw) for cell in by_rows for draw in draws]


def run_jobs(jobs: Sequence[Job], setting: Setting, out: Path) -> int:
    """Run jobs that have no result yet in processes of their own; returns how many failed."""
    out.mkdir(parents=True, exist_ok=True)
    open_jobs = [job for job in jobs if not job.file(out).exists()]
    os.environ |= {"OMP_NUM_THREADS": str(setting.threads), "TOKENIZERS_PARALLELISM": "false"}
    failed = 0
    pool = ProcessPoolExecutor(min(setting.at_once, len(open_jobs) or 1), get_context("spawn"))
    with pool:
        futures = {pool.submit(run_job, job, setting, out): job for job in open_jobs}
        for done, future in enumerate(as_completed(futures), start=1):
            job = futures[future]
            error = future.exception()
            failed += error is not None
            said = repr(error) if error else future.result()
            print(f"{done}/{len(open_jobs)} {job.file(out).stem}: {said}", flush=True)
    return failed


def run_job(job: Job, setting: Setting, out: Path) -> str:
    """Train, predict the test rows, write the result; returns it in one line."""
    import torch

    torch.set_num_threads(setting.threads)
    torch.zeros(1, device=setting.device).sum().item()
    # What the method imports is imported here, before the clock starts.
    fit = import_module(f"fit_peers.{job.method}_method").fit
    file = job.cell.train_file(setting.data, draw=job.draw)
    test = read_rows(job.cell.test_file(setting.data))
    with tempfile.TemporaryDirectory() as scratch:
        task = Task(
            rows=read_rows(file),
            file=file,
            kind=job.cell.kind,
            seed=job.draw,
            scratch=Path(scratch),
            setting=setting,
        )
        start = time.perf_counter()
        predict, settings = fit(task)
        seconds = time.perf_counter() - start
        # A job that was cut short tells only how long it would have taken.
        seconds_left = settings.get("seconds left", 0.0)
        whole = not seconds_left
        metrics = score(task.kind, predict([texts for texts, _ in test]), test) if whole else {}
    result = {
        "method": job.method,
        **asdict(job.cell),
        "draw": job.draw,
        "train_rows": len(task.rows),
        "test_rows": len(test),
        **metrics,
        "seconds": round(seconds + seconds_left, 2),
        "device": setting.device,
        "machine": machine(setting.device),
        "threads": setting.threads,
        "jobs at once": setting.at_once,
        "commit": commit(),
        "versions": versions(),
        "encoder": Path(setting.encoder).name,
        "settings": settings,
    }
    job.file(out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return f"{metrics}, {result['seconds']:.1f} s"


def score(kind: Kind, predicted: Sequence[Any], test: Sequence[Row]) -> dict[str, float]:
    labels = [label for _, label in test]
    if len(predicted) != len(labels):
        raise ValueError(f"{len(predicted)} predictions for {len(labels)} test rows")
    if kind == "grades":
        from scipy.stats import pearsonr, spearmanr

        grades = [float(label) for label in labels]
        return {
            "pearson": float(pearsonr(predicted, grades).statistic),
            "spearman": float(spearmanr(predicted, grades).statistic),
        }
    from sklearn.metrics import accuracy_score, f1_score

    names = [str(label) for label in predicted]
    return {
        "accuracy": float(accuracy_score(labels, names)),
        "macro_f1": float(f1_score(labels, names, average="macro")),
    }


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str | None:
    """The commit of this file's repository, or what TERCET_COMMIT says of a copy without it."""
    if known := os.environ.get("TERCET_COMMIT"):
        return known
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
