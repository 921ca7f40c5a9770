"""Start-up: one sentence's prediction from a cold process, against sentence-transformers.

    python benchmarks/startup.py [ENCODER]

`tercet predict` answers from a sentiment head; sentence-transformers, which has no heads, only
embeds the sentence. Processes are started in turns; files are in the system's cache.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from embed import export

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
    with tempfile.TemporaryDirectory() as place:
        model = with_head(name, Path(place) / "model")
        commands = {PEER: [sys.executable, "-c", ENCODE, str(model), TEXT]}
        for form, folder in {"tercet": model, **export(model, Path(place))}.items():
            predict = ["-m", "tercet", "predict", "sentiment", "--text", TEXT]
            commands[form] = [sys.executable, *predict, "--model", str(folder)]
        times: dict[str, list[float]] = {form: [] for form in commands}
        for _ in range(RUNS + 1):
            for form, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                times[form].append(time.perf_counter() - start)
    # The first round fills the system's cache.
    found = {form: statistics.median(values[1:]) for form, values in times.items()}
    print("| contestant | seconds | times as fast as the first |")
    print("|---|---|---|")
    for form, middle in found.items():
        print(f"| {form} | {middle:.2f} | {found[PEER] / middle:.2f} |")


if __name__ == "__main__":
    main()
