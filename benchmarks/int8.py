"""8-bit export: speed against sentence-transformers, closeness to fp32, independence of the batch.

    python benchmarks/int8.py speed [--before FOLDER] [--sentences N]
    python benchmarks/int8.py closeness ENCODER [--before FOLDER]

ENCODER is a name of `tercet weights`, a folder, or `shipped`. --before names an int8 folder that an
earlier release exported; it is measured in the same run. Writes its tables to results/int8.json.

Closeness is the cosine to the fp32 vector, on questions of quora-dev, on the odd texts of
odd_texts.txt (code, other scripts, emoji; none of them is among the texts that export measures),
and on film reviews up to the encoder's most tokens. Independence is the largest difference in any
dimension between the vector of a text embedded alone and among all others.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from real_data import real_file
from records import write_record

import tercet
from embed import OURS, PEER, Library, export, measure, our_libraries, sentences, spearman
from tercet.data.examples import read_texts
from tercet.model import Model
from tercet.weights import resolve

BEFORE = "tercet onnx-int8, steps of each batch (before)"
FILE = "int8.json"
PACKAGES = ("torch", "onnxruntime", "sentence-transformers", "transformers", "tokenizers")
ALONE = 200
REVIEWS = 60


def speed(before: Path | None, count: int) -> None:
    folder, texts = resolve("all-minilm-l6-v2"), sentences(count)
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        exported = export(folder, out)
        if before is not None:
            exported[BEFORE] = before
        folders = {OURS: folder, **exported}
        libraries = {PEER: Library(sys.executable, "peer", folder, "torch")}
        libraries |= our_libraries(folder, exported)
        vectors, _ = measure(libraries, texts, out)
        qualities = {name: spearman(source) for name, source in folders.items()}
    medians = {name: statistics.median(each.seconds) for name, each in libraries.items()}
    rows = []
    for name, library in libraries.items():
        cosines = (vectors[name] * vectors[PEER]).sum(axis=1)
        quality = qualities.get(name)
        rows.append(
            [
                name,
                f"{len(texts) / medians[name]:.0f}",
                f"{medians[PEER] / medians[name]:.2f}",
                f"{min(medians[PEER] / each for each in library.seconds):.2f} to "
                f"{max(medians[PEER] / each for each in library.seconds):.2f}",
                f"{cosines.mean():.5f}",
                f"{cosines.min():.5f}",
                "" if quality is None else f"{100 * quality:.2f}",
            ]
        )
    columns = ["library", "sentences/s", "ratio to the first", "single runs", "mean cosine"]
    columns += ["lowest cosine", "Spearman on sts-dev"]
    _finish(
        "speed",
        columns,
        rows,
        command=f"python benchmarks/int8.py speed --sentences {count}"
        + (" --before FOLDER" if before is not None else ""),
        encoder="all-minilm-l6-v2",
        data=f"first sentences of {len(texts)} quora-dev pairs",
        runs=len(libraries[PEER].seconds),
    )


def closeness(encoder: str, before: Path | None) -> None:
    source = None if encoder == "shipped" else resolve(encoder)
    plain = tercet.load(source, device="cpu", precision="fp32")
    with tempfile.TemporaryDirectory() as place:
        models = {"now": tercet.load(_exported(plain, Path(place) / "int8"))}
        if before is not None:
            models = {"before": tercet.load(before), **models}
        rows = [
            [encoder, kind, len(texts), name, *_compare(plain, model, texts)]
            for kind, texts in _texts().items()
            for name, model in models.items()
        ]
    columns = ["encoder", "texts", "number", "export", "mean cosine", "lowest cosine"]
    columns += ["alone or in a batch: largest difference"]
    _finish(
        f"closeness of {encoder}",
        columns,
        rows,
        command=f"python benchmarks/int8.py closeness {encoder}",
        encoder=encoder,
        data="quora-dev, odd_texts.txt, ids-cfimdb-dev",
    )


def _exported(model: Model, folder: Path) -> Path:
    from tercet.folders.model_folder import Parts
    from tercet.folders.onnx_folder import export_onnx

    export_onnx(folder, Parts(model.network, model.tokenizer, model.info), precision="int8")
    return folder


def _texts() -> dict[str, list[str]]:
    reviews = real_file("ids-cfimdb-dev.csv")
    odd = (Path(__file__).parent / "odd_texts.txt").read_text(encoding="utf-8").splitlines()
    return {
        "Quora questions": sentences(1_000)[-400:],
        "odd texts": ["", *odd],
        "film reviews": read_texts(reviews, ["sentence"])[0][:REVIEWS],
    }


def _compare(plain: Model, model: Model, texts: list[str]) -> list[str]:
    vectors = model.embed(texts)
    cosines = (vectors * plain.embed(texts)).sum(axis=1)
    alone = np.concatenate([model.embed([text]) for text in texts[:ALONE]])
    apart = float(np.abs(vectors[:ALONE] - alone).max())
    return [f"{cosines.mean():.5f}", f"{cosines.min():.5f}", f"{apart:.1e}"]


def _finish(name: str, columns: list[str], rows: list[list[Any]], **facts: Any) -> None:
    print("\t".join(columns))
    for row in rows:
        print("\t".join(map(str, row)))
    write_record(FILE, name, columns=columns, rows=rows, packages=PACKAGES, **facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["speed", "closeness"])
    parser.add_argument("encoder", nargs="?", default="all-minilm-l6-v2")
    parser.add_argument("--before", type=Path, help="an int8 folder of an earlier release")
    parser.add_argument("--sentences", type=int, default=3_000)
    arguments = parser.parse_args()
    if arguments.what == "speed":
        speed(arguments.before, arguments.sentences)
    else:
        closeness(arguments.encoder, arguments.before)


if __name__ == "__main__":
    main()
