"""Long texts: accuracy with windows against truncation, and memory against the length of a text.

    python benchmarks/long_texts.py shipped|linear [--data DIR] [--out results/long.json]
    python benchmarks/long_texts.py fitted --run RUN [--data DIR]
    python benchmarks/long_texts.py memory [TOKENS...]

The reviews are those of CFIMDB (ids-cfimdb-train.csv and -dev.csv in TERCET_DATA): two classes.
`shipped` asks the shipped model for their sentiment: a review is positive if `positive` and
`somewhat positive` have together more probability than `negative` and `somewhat negative`. `linear`
fits a logistic regression to the shipped model's vectors of the training reviews, read in the same
way as those of dev. `fitted` measures a run of `tercet fit ids-cfimdb-train.csv --dev
ids-cfimdb-dev.csv`. `memory` measures what ModernBERT-base with random weights takes beyond its
weights for one text of so many tokens, each in a process of its own. Every result is written as
soon as it is measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoders import FAMILIES, SEED, commit, machine, make_folder, make_texts  # beside this
from tercet.model import Model, load
from tercet.specs import Long

READINGS: list[tuple[int, Long]] = [
    (128, "truncate"),
    (128, "windows"),
    (256, "truncate"),
    (256, "windows"),
    (512, "truncate"),
]
TOKENS = [256, 512, 1024, 2048, 4096, 8192]
Rows = tuple[list[str], NDArray[np.int64]]
CHECK = "import sys; sys.path[:0] = sys.argv[1:2]; import long_texts; long_texts.take_memory()"


def reviews(data: Path, split: str) -> Rows:
    """Texts, and labels [n]: 1 is positive."""
    name = f"ids-cfimdb-{split}.csv"
    path = next(file for file in (data / name, data / "cs224n" / name) if file.is_file())
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [row["sentence"] for row in rows], np.array([int(row["sentiment"]) for row in rows])


def read_as(model: Model, max_tokens: int, long: Long) -> None:
    model.info = model.info.model_copy(update={"max_tokens": max_tokens, "long": long})
    model.long_inputs.clear()


def name_of(max_tokens: int, long: str) -> str:
    return f"{long} {max_tokens}"


def shipped(data: Path) -> Any:
    """Accuracy of the shipped model's sentiment, reading by reading."""
    model, (texts, labels) = load(device="cpu"), reviews(data, "dev")
    for reading in READINGS:
        read_as(model, *reading)
        began = time.perf_counter()
        predicted = model.predictions("sentiment", texts)
        positive = predicted[:, 3:].sum(axis=1) > predicted[:, :2].sum(axis=1)
        yield name_of(*reading), measured(model, positive == labels, began)


def linear(data: Path) -> Any:
    """Accuracy of a logistic regression on the shipped model's vectors."""
    from sklearn.linear_model import LogisticRegressionCV

    model = load(device="cpu")
    (train, train_labels), (dev, dev_labels) = (reviews(data, split) for split in ("train", "dev"))
    for reading in READINGS:
        read_as(model, *reading)
        vectors = model.embed(train)
        read_as(model, *reading)
        began = time.perf_counter()
        own = model.embed(dev)
        classifier = LogisticRegressionCV(cv=5, max_iter=2000, random_state=SEED)
        right = classifier.fit(vectors, train_labels).predict(own) == dev_labels
        yield name_of(*reading), measured(model, right, began)


def fitted(data: Path, run: Path) -> Any:
    """Accuracy of a model that `tercet fit` made of the training reviews."""
    model, (texts, labels) = load(run, device="cpu"), reviews(data, "dev")
    (task,) = model.tasks
    classes = model.tasks[task].labels or []
    for reading in READINGS:
        read_as(model, *reading)
        began = time.perf_counter()
        predicted = model.predictions(task, texts)
        best = predicted.argmax(axis=1) if predicted.ndim == 2 else predicted > 0.5
        right = np.array([int(classes[int(place)]) for place in best]) == labels
        yield name_of(*reading), measured(model, right, began)


def measured(model: Model, right: NDArray[np.bool_], began: float) -> dict[str, Any]:
    share = float(right.mean())
    counted = model.long_inputs["texts"]
    return {
        "accuracy": share,
        "error": float(np.sqrt(share * (1.0 - share) / len(right))),
        "rows": len(right),
        "long": counted.long,
        "lost": counted.lost / max(counted.tokens, 1),
        "seconds": time.perf_counter() - began,
    }


def take_memory() -> None:
    """In a process of its own: print bytes and seconds for a text of so many tokens."""
    _, _, folder, tokens = sys.argv
    model = load(folder, device="cpu")
    read_as(model, 8192, "truncate")
    text = " ".join(make_texts(int(tokens) // 4))
    model.embed(["a short text"])
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is used now
    model.info = model.info.model_copy(update={"max_tokens": int(tokens)})
    began = time.perf_counter()
    model.embed([text])
    seconds = time.perf_counter() - began
    assert model.long_inputs["texts"].long, "the text is shorter than that"
    print(json.dumps({"bytes": status("VmHWM") - before, "seconds": seconds}))


def status(key: str) -> int:
    """Bytes of this process's memory."""
    found = re.search(rf"^{key}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def memory(lengths: list[int]) -> Any:
    with tempfile.TemporaryDirectory() as place:
        make_folder(FAMILIES["modernbert"], make_texts(2_000), Path(place))
        folder = str(Path(place) / "sentence")
        for tokens in lengths:
            here = str(Path(__file__).parent)
            command = [sys.executable, "-c", CHECK, here, folder, str(tokens)]
            printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            yield str(tokens), json.loads(printed.splitlines()[-1])


def store(out: Path, part: str, name: str, result: dict[str, Any]) -> None:
    document = json.loads(out.read_text("utf-8")) if out.is_file() else {}
    made = {"commit": commit(), "torch": version("torch"), **machine("cpu")}
    document.setdefault(part, {})[name] = {**result, "made_with": made}
    out.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=["shipped", "linear", "fitted", "memory"])
    parser.add_argument("tokens", nargs="*", type=int, default=TOKENS)
    parser.add_argument("--data", type=Path, default=os.environ.get("TERCET_DATA"))
    parser.add_argument("--run", type=Path, help="of tercet fit, for `fitted`")
    parser.add_argument("--out", type=Path, default=Path("results/long.json"))
    given = parser.parse_args()
    if given.part == "memory":
        results = memory(given.tokens)
    elif given.data is None:
        sys.exit("--data: name the folder of the reviews, here or in TERCET_DATA.")
    elif given.part == "fitted":
        results = fitted(given.data, given.run)
    else:
        results = {"shipped": shipped, "linear": linear}[given.part](given.data)
    for name, result in results:
        store(given.out, given.part, name, result)
        print(given.part, name, json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
