"""Start-up: time to predict one sentence in a new process, against sentence-transformers.

    python benchmarks/startup.py [ENCODER]

`tercet predict` uses a sentiment head; sentence-transformers, which has no heads, only embeds the
sentence. Processes are started alternately; files are in the system's cache.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from records import record

from embed import PACKAGES, export

RUNS = 5
TEXT = "What a lovely film."
PEER = "sentence-transformers"
ENCODE = """
import sys
from sentence_transformers import SentenceTransformer
print(SentenceTransformer(sys.argv[1], device="cpu").encode([sys.argv[2]]).shape)
"""


def with_head(name: str, folder: Path) -> Path:
    """An encoder with an untrained sentiment head, as a model folder."""
    from tercet.folders.model_card import ModelInfo
    from tercet.model import Model
    from tercet.network.network import Network
    from tercet.nn.folder import load_encoder
    from tercet.specs import TaskSpec
    from tercet.text.tokenizer import Tokenizer
    from tercet.weights import resolve

    source = resolve(name)
    task = TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-sst"},
            "labels": ["negative", "somewhat negative", "neutral", "somewhat positive", "positive"],
            "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
        }
    )
    tasks = {"sentiment": task}
    network = Network(load_encoder(source), pooling="mean", tasks=tasks)
    info = ModelInfo(encoder=name, pooling="mean", max_tokens=256, tasks=tasks)
    Model(network, Tokenizer.load(source), info).save(folder)
    return folder


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "all-minilm-l6-v2"
    with tempfile.TemporaryDirectory() as scratch:
        model = with_head(name, Path(scratch) / "model")
        commands = {PEER: [sys.executable, "-c", ENCODE, str(model), TEXT]}
        for library, folder in {"tercet": model, **export(model, Path(scratch))}.items():
            predict = ["-m", "tercet", "predict", "sentiment", "--text", TEXT]
            commands[library] = [sys.executable, *predict, "--model", str(folder)]
        times: dict[str, list[float]] = {library: [] for library in commands}
        for _ in range(RUNS + 1):
            for library, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                times[library].append(time.perf_counter() - start)
    # The first round fills the system's cache.
    medians = {library: statistics.median(values[1:]) for library, values in times.items()}
    record(
        "startup",
        columns=["library", "seconds", "speed-up over the first"],
        rows=[
            [library, f"{seconds:.2f}", f"{medians[PEER] / seconds:.2f}"]
            for library, seconds in medians.items()
        ],
        packages=PACKAGES,
        encoder=name,
    )


if __name__ == "__main__":
    main()
