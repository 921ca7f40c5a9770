"""Embedding on this machine: sentences per second against sentence-transformers.

    python benchmarks/embed.py [ENCODER] [SENTENCES] [--peer VENV]

The peer is sentence-transformers with default settings. With --peer, an environment that has it and
`optimum-onnx`, its fastest export is a second peer: 8-bit ONNX for processors with AVX-512 VNNI.
Each library runs in a process of its own with the same weights, sentences and threads. Runs are
interleaved, with the machine's own matrix product between them, and medians are compared. Sentences
are those of quora-dev if TERCET_DATA contains it, otherwise the project's own sample. Tercet
encodes every row, repeated or not, except in the lines that say so, and computes in fp32 except in
the line of bf16.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RUNS = 3
WARM_UP = 200
SAMPLE = 1_600
"""Most rows of the generated sample."""
MATMUL_SECONDS = 2.0
PEER, PEER_INT8 = "sentence-transformers", "sentence-transformers ONNX int8"
OURS, OURS_ONNX, OURS_INT8 = "tercet", "tercet onnx", "tercet onnx-int8"
OURS_BF16 = "tercet bf16"
"""On CPUs where that is several times as fast."""
ONCE = ", repeated sentences encoded once"
PACKAGES = ("torch", "onnxruntime", "sentence-transformers", "transformers", "tokenizers")


def sentences(count: int = 2_000) -> list[str]:
    """Questions of quora-dev if TERCET_DATA contains it, otherwise generated ones, maybe fewer."""
    from real_data import real_file

    from tercet.data.examples import read_texts
    from tercet.data.sample import write_sample

    if "TERCET_DATA" in os.environ:
        (texts,) = read_texts(real_file("quora-dev.csv"), ["sentence1"])
        return texts[:count]
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), rows=min(count, SAMPLE))
        (texts,) = read_texts(Path(folder) / "quora-train.csv", ["sentence1"])
        return texts


def peer_encoder(folder: str, backend: str) -> Callable[[list[str]], Any]:
    from sentence_transformers import SentenceTransformer

    options: dict[str, Any] = {"device": "cpu"}
    if backend == "onnx":
        file = "onnx/model_qint8_avx512_vnni.onnx"
        options |= {"backend": "onnx", "model_kwargs": {"file_name": file}}
    model = SentenceTransformer(folder, **options)
    return lambda texts: model.encode(texts, show_progress_bar=False)


def our_encoder(folder: str, repeats: str) -> Callable[[list[str]], Any]:
    import tercet

    model = tercet.load(folder, device="cpu")
    if repeats == "once":
        return model.embed

    def encode(texts: list[str]) -> Any:
        vectors = model.engine.vectors(model.pieces(texts))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return encode


def serve_library(kind: str, folder: str, how: str) -> None:
    """Serve one library in its own process: each line on stdin is one run, answered in seconds."""
    encode = (peer_encoder if kind == "peer" else our_encoder)(folder, how)
    texts = json.loads(input())
    encode(texts[:WARM_UP])
    print("ready", flush=True)
    while path := input():
        start = time.perf_counter()
        vectors = encode(texts)
        seconds = time.perf_counter() - start
        np.save(path, vectors)
        print(seconds, flush=True)


class Library:
    """A library in a process of its own."""

    def __init__(
        self, python: str, kind: str, folder: Path, how: str, *, precision: str = "fp32"
    ) -> None:
        command = [python, __file__, "library", kind, str(folder), how]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TERCET_PRECISION": precision},
        )
        self.seconds: list[float] = []

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def receive(self) -> str:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.strip() == "ready" or line[0].isdigit():
                return line
        raise SystemExit("A process ended before its run; see above.")


def our_libraries(folder: Path, exported: dict[str, Path]) -> dict[str, Library]:
    """Each of our engines in a process of its own, by name."""
    import torch

    from tercet.infer.half import is_worth_half

    torch_engines = {OURS: "fp32"}
    if is_worth_half(torch.device("cpu")):
        torch_engines[OURS_BF16] = "bf16"
    started = {
        name: Library(sys.executable, "ours", folder, "all", precision=precision)
        for name, precision in torch_engines.items()
    }
    for name, source in exported.items():
        started[name] = Library(sys.executable, "ours", source, "all")
    return started


def matmul_rate() -> float:
    """Operations per second of this machine's own fp32 matrix product, in the encoder's shape."""
    import torch

    a, b = torch.randn(2048, 1536), torch.randn(384, 1536)
    done = 0
    start = time.perf_counter()
    with torch.inference_mode():
        while (seconds := time.perf_counter() - start) < MATMUL_SECONDS:
            torch.nn.functional.linear(a, b)
            done += 1
    return done * 2 * a.numel() * len(b) / seconds


def operations(folder: Path, texts: list[str]) -> float:
    """Number of operations in all matrix products: linear layers, and the two of attention."""
    import tercet

    model = tercet.load(folder, device="cpu")
    config = model.network.encoder.config
    lengths = model.tokenizer.encode(texts, max_tokens=model.info.max_tokens).lengths
    linear = 4 * config.width**2 + 2 * config.width * config.feed_forward
    per_token = linear + 2 * lengths * config.width
    return float(2 * config.layers * (lengths * per_token).sum())


def export(folder: Path, out: Path) -> dict[str, Path]:
    folders = {}
    for name in ("onnx", "onnx-int8"):
        command = [sys.executable, "-m", "tercet", "export", folder, "--format", name]
        subprocess.run([*map(str, command), "--out", str(out / name)], check=True)
        folders[f"tercet {name}"] = out / name
    return folders


def peer_export(python: str, folder: Path, out: Path) -> Path:
    """The quantised export of sentence-transformers, made by its own tools."""
    program = """
import shutil, sys
from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model
source, out = sys.argv[1:]
shutil.copytree(source, out)
model = SentenceTransformer(out, backend="onnx", model_kwargs={"export": True})
model.save_pretrained(out)
export_dynamic_quantized_onnx_model(SentenceTransformer(out, backend="onnx"), "avx512_vnni", out)
"""
    subprocess.run([python, "-c", program, str(folder), str(out)], check=True, capture_output=True)
    return out


def spearman(folder: Path) -> float | None:
    """Correlation of cosines with the grades of sts-dev, in fp32; None without TERCET_DATA."""
    import csv

    from real_data import real_file
    from scipy.stats import spearmanr

    import tercet

    if "TERCET_DATA" not in os.environ:
        return None
    with real_file("sts-dev.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    os.environ["TERCET_PRECISION"] = "fp32"
    model = tercet.load(folder, device="cpu")
    first, second = (model.embed([row[f"sentence{side}"] for row in rows]) for side in (1, 2))
    grades = [float(row["similarity"]) for row in rows]
    return float(spearmanr((first * second).sum(axis=1), grades).statistic)


def measure(
    libraries: dict[str, Library], texts: list[str], out: Path
) -> tuple[dict[str, Any], list[float]]:
    """The vectors of each library's last run, and the rates of the matrix product."""
    for library in libraries.values():
        library.send(json.dumps(texts))
        library.receive()
    files = {name: out / f"{index}.npy" for index, name in enumerate(libraries)}
    rates = []
    for _ in range(RUNS):
        for name, library in libraries.items():
            rates.append(matmul_rate())
            library.send(str(files[name]))
            library.seconds.append(float(library.receive()))
    for library in libraries.values():
        library.send("")
        library.process.wait()
    return {name: np.load(file) for name, file in files.items()}, rates


def main() -> None:
    from records import record

    from tercet.weights import resolve

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("encoder", nargs="?", default="all-minilm-l6-v2")
    parser.add_argument("sentences", nargs="?", type=int, default=2_000)
    parser.add_argument("--peer", type=Path, help="an environment with the peer and optimum-onnx")
    arguments = parser.parse_args()
    folder, texts = resolve(arguments.encoder), sentences(arguments.sentences)
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        exported = export(folder, out)
        ours = {OURS: folder, **exported}
        libraries = {PEER: Library(sys.executable, "peer", folder, "torch")}
        if arguments.peer is not None:
            python = str(arguments.peer / "bin" / "python")
            peer_folder = peer_export(python, folder, out / "peer")
            libraries[PEER_INT8] = Library(python, "peer", peer_folder, "onnx")
        libraries |= our_libraries(folder, exported)
        once = Library(sys.executable, "ours", ours[OURS_INT8], "once")
        libraries[OURS_INT8 + ONCE] = once
        vectors, products = measure(libraries, texts, out)
        work = operations(folder, texts)
        qualities = {name: spearman(source) for name, source in ours.items()}
    columns, rows, values = report(libraries, vectors, texts, products=products, work=work)
    for name, key in zip(qualities, ("spearman", "spearman onnx", "spearman int8"), strict=True):
        if (quality := qualities[name]) is not None:
            values[key] = f"{100 * quality:.2f}"
    record(
        "embed",
        columns=columns,
        rows=rows,
        values=values,
        packages=PACKAGES,
        encoder=arguments.encoder,
        data=f"first sentences of {len(texts):,} quora-dev pairs",
        **({"peer versions": versions_in(python)} if arguments.peer is not None else {}),
    )


def report(
    libraries: dict[str, Library],
    vectors: dict[str, Any],
    texts: list[str],
    *,
    products: list[float],
    work: float,
) -> tuple[list[str], list[list[str]], dict[str, str]]:
    """The table of all libraries, and single figures: columns, rows and values of a record."""
    rates = {
        name: len(texts) / statistics.median(library.seconds) for name, library in libraries.items()
    }
    rows = []
    for name, rate in rates.items():
        cosines = (vectors[name] * vectors[PEER]).sum(axis=1)
        cells = [f"{rate:.0f}", f"{rate / rates[PEER]:.2f}"]
        rows.append([name, *cells, f"{cosines.mean():.5f}", f"{cosines.min():.5f}"])
    ceiling = statistics.median(products)
    values = {
        "sentences": str(len(texts)),
        "distinct": str(len(set(texts))),
        "runs": str(RUNS),
        # A machine's own fp32 matrix product, measured between the runs.
        "matrix product": f"{ceiling / 1e9:.0f} GFLOP/s",
        "matrix products": str(len(products)),
        "matrix product range": f"{min(products) / 1e9:.0f} to {max(products) / 1e9:.0f}",
    }
    for name, key in ((OURS, "fp32 share"), (OURS_ONNX, "onnx share")):
        reached = work / statistics.median(libraries[name].seconds)
        values[key] = f"{100 * reached / ceiling:.0f} %"
    if PEER_INT8 in rates:
        values["int8 to int8"] = f"{rates[OURS_INT8] / rates[PEER_INT8]:.2f}"
    columns = ["library", "sentences/s", "ratio to the first", "mean cosine", "lowest cosine"]
    return columns, rows, values


def versions_in(python: str) -> str:
    names = PACKAGES
    program = (
        "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    )
    command = [python, "-c", program, *names]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return ", ".join(
        f"{name} {version}" for name, version in zip(names, printed.split(), strict=True)
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["library"]:
        serve_library(*sys.argv[2:])
    else:
        main()
