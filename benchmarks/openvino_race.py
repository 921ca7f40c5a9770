"""8-bit encoders on one core: ours in ONNX Runtime against OpenVINO with NNCF.

    python benchmarks/openvino_race.py VENV [--sentences N]

VENV has `openvino`, `nncf` and `onnxruntime`. All run the same MiniLM-L6 on the same batches,
those that our engine makes of quora-dev, in one process of that environment, alternately, one
thread each. NNCF quantises statically with smoothing, on the texts that our export measures. Writes
its table to results/int8.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RUNS = 7
OURS = "tercet onnx-int8"
FP32, BF16, INT8 = "OpenVINO fp32", "OpenVINO bf16", "OpenVINO int8 (NNCF, static)"
# The version of ONNX without the operator Attention, which OpenVINO does not read.
PLAIN_OPSET = 20
TOKENS = 128
NAMES = ("input_ids", "token_type_ids", "attention_mask")


def prepare(folder: Path, out: Path, texts: list[str]) -> None:
    """Write both graphs, the batches and the fp32 vectors that a race needs."""
    import math

    import tercet
    from embed import export
    from tercet.infer.batches import even_batches
    from tercet.infer.onnx_engine import MOST, rectangle
    from tercet.nn.onnx.encoder import Shapes, Writer
    from tercet.nn.onnx.rounding import calibration_texts

    class PlainWriter(Writer):
        """Attention as products and a softmax."""

        def attend(self, index: int, parts: list[str], shapes: Shapes) -> str:
            graph, heads = self.graph, self.config.heads
            head_width = self.config.width // heads
            shape = graph.integers(0, 0, heads, head_width)
            query, key, value = (
                graph.add("Transpose", graph.add("Reshape", part, shape), perm=perm)
                for part, perm in zip(
                    parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True
                )
            )
            scores = graph.add(
                "Mul", graph.add("MatMul", query, key), graph.number(1 / math.sqrt(head_width))
            )
            hidden = graph.add("Where", shapes.mask, graph.number(0.0), graph.number(-1e4))
            weights = graph.add("Softmax", graph.add("Add", scores, hidden), axis=-1)
            mixed = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
            return graph.add("Reshape", mixed, shapes.rows)

    export(folder, out)
    model = tercet.load(folder, device="cpu")
    plain = PlainWriter(model.network.encoder, pooling="mean", roundings=None).model()
    plain.opset_import[0].version = PLAIN_OPSET
    (out / "plain.onnx").write_bytes(plain.SerializeToString())
    arrays: dict[str, Any] = {"vectors": model.embed(texts)}
    for kind, sentences in (("", texts), ("measured ", calibration_texts())):
        lengths = model.tokenizer.encode(sentences, max_tokens=TOKENS).lengths
        arrays[f"{kind}tokens"] = lengths.sum()
        for number, rows in enumerate(even_batches(lengths, budget=MOST)):
            chosen = [sentences[row] for row in rows]
            parts = rectangle(model.tokenizer.encode(chosen, max_tokens=TOKENS))
            arrays |= {
                f"{kind}{name}{number}": part for name, part in zip(NAMES, parts, strict=True)
            }
            arrays[f"{kind}rows{number}"] = rows
    np.savez(out / "batches.npz", **arrays)


def race(out: Path) -> None:
    """Run all encoders on the batches; prints rows of the table as JSON."""
    import nncf
    import onnxruntime
    import openvino

    arrays = np.load(out / "batches.npz")
    batches, measured = (_batches(arrays, kind) for kind in ("", "measured "))
    core = openvino.Core()
    plain = core.read_model(out / "plain.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        out / "onnx-int8" / "model.onnx",
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion", "BiasGeluFusion"],
    )
    quantised = nncf.quantize(
        plain,
        nncf.Dataset(measured),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(measured),
    )
    encoders: dict[str, Callable[[dict[str, Any]], Any]] = {
        OURS: lambda feeds: session.run(["embeddings"], feeds)[0],
        INT8: _compiled(core, quantised, "f32"),
        FP32: _compiled(core, plain, "f32"),
        BF16: _compiled(core, plain, "bf16"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    cosines = {}
    for turn in range(RUNS):
        for name, encode in encoders.items():
            start = time.perf_counter()
            found = [encode(feeds) for feeds in batches]
            if turn:
                seconds[name].append(time.perf_counter() - start)
            rows = np.concatenate([arrays[f"rows{number}"] for number in range(len(batches))])
            cosines[name] = (np.concatenate(found) * arrays["vectors"][rows]).sum(axis=1)
    tokens = int(arrays["tokens"])
    best = {name: float(np.median(each)) for name, each in seconds.items()}
    for name, taken in best.items():
        row = [
            name,
            f"{1e6 * taken / tokens:.1f}",
            f"{1e6 * min(seconds[name]) / tokens:.1f}",
            f"{best[OURS] / taken:.2f}",
            f"{cosines[name].mean():.5f}",
            f"{cosines[name].min():.5f}",
        ]
        print(json.dumps(row), flush=True)
    print(json.dumps({"openvino": openvino.__version__, "nncf": nncf.__version__}), flush=True)


def _batches(arrays: Any, kind: str) -> list[dict[str, Any]]:
    count = sum(name.startswith(f"{kind}{NAMES[0]}") for name in arrays.files)
    return [{name: arrays[f"{kind}{name}{number}"] for name in NAMES} for number in range(count)]


def _compiled(core: Any, model: Any, precision: str) -> Callable[[dict[str, Any]], Any]:
    settings = {
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
    }
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    output = compiled.output("embeddings")
    return lambda feeds: np.array(request.infer(feeds, share_inputs=True)[output])


def main() -> None:
    from records import write_record

    from embed import sentences
    from tercet.weights import resolve

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("venv", type=Path)
    parser.add_argument("--sentences", type=int, default=1_000)
    arguments = parser.parse_args()
    texts = sentences(arguments.sentences)
    with tempfile.TemporaryDirectory() as place:
        prepare(resolve("all-minilm-l6-v2"), Path(place), texts)
        command = [str(arguments.venv / "bin" / "python"), __file__, "race", place]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    printed = [json.loads(line) for line in done.stdout.splitlines() if line[:1] in "[{"]
    columns = ["encoder", "microseconds per token", "fastest run", "speed, ratio to the first"]
    columns += ["mean cosine", "lowest cosine"]
    for row in printed[:-1]:
        print("\t".join(row))
    write_record(
        "int8.json",
        "openvino",
        command=f"python benchmarks/openvino_race.py VENV --sentences {arguments.sentences}",
        columns=columns,
        rows=printed[:-1],
        packages=("onnxruntime",),
        peers=printed[-1],
        encoder="all-minilm-l6-v2",
        data=f"first sentences of {len(texts)} quora-dev pairs, one thread",
        runs=RUNS - 1,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["race"]:
        race(Path(sys.argv[2]))
    else:
        main()
