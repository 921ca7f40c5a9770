"""What benchmarks/train.py measures, as tables and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from records import record

SHAPE = "a bert-base shape"
PACKAGES = ("torch", "sentence-transformers", "transformers")


def record_peer(results: Sequence[Mapping[str, Any]]) -> None:
    """Against the peer's trainer, one result per encoder."""
    rows = []
    for found in results:
        for library in ("tercet", "sentence-transformers"):
            rates = [f"{found[library][key]:,.0f}" for key in ("settled", "rows/s")]
            rows.append([found["encoder"], library, *rates, f"{found[library]['dev']:.3f}"])
    settled, first = (
        " and ".join(f"{found['ratio'][key]:.1f}x" for found in results)
        for key in ("settled", "rows/s")
    )
    speeds = ["examples/s, settled", "examples/s, from the first step"]
    record(
        "trainer",
        columns=["encoder", "", *speeds, "dev Pearson"],
        rows=rows,
        values={"steps": results[0]["steps"], "batch": 64, "settled": settled, "first": first},
        packages=PACKAGES,
        data="Quora pairs",
    )


def record_first(results: Sequence[Mapping[str, Any]]) -> None:
    """The first minute of both trainers, one result per encoder."""
    rows = []
    for found in results:
        for kernels in ("none compiled", "compiled"):
            run, ratio = found[kernels], found["ratio"][kernels]
            cells = [f"{run['rows/s']:,.0f}", f"{ratio['rows/s']:.1f}x"]
            cells += [f"{run['call']:.1f} s", f"{ratio['call']:.1f}x", f"{run['dev']:.3f}"]
            rows.append([found["encoder"], f"tercet, kernels: {kernels}", *cells])
        peer = found["sentence-transformers"]
        cells = [f"{peer['rows/s']:,.0f}", "", f"{peer['call']:.1f} s", "", f"{peer['dev']:.3f}"]
        rows.append([found["encoder"], "sentence-transformers", *cells])
    record(
        "first minute",
        columns=["encoder", "", "examples/s from the first step", "ratio", "whole call", "ratio"]
        + ["dev Pearson"],
        rows=rows,
        values={"steps": results[0]["steps"], "batch": 64},
        packages=PACKAGES,
        data="Quora pairs",
    )


def record_rate(result: Mapping[str, Any]) -> None:
    """Forward and backward, against the matrix product."""
    lengths = {key: found for key, found in result.items() if isinstance(found, dict)}
    record(
        "throughput",
        columns=["tokens per row", "ms", "of the matrix product"],
        rows=[
            [key.split()[0], f"{found['ms']:.1f}", f"{found['of matmul']:.1%}"]
            for key, found in lengths.items()
        ],
        values={"tokens": "32,768", "matrix product": f"{result['matmul TFLOP/s']:.0f} TFLOP/s"},
        encoder=SHAPE,
    )


def record_surgery(result: Mapping[str, Any]) -> None:
    """Time and memory of PCGrad, against the sum of the losses."""
    names = {
        "sum": "sum of the losses",
        "surgery": "PCGrad, one row per task",
        "conventional surgery": "conventional PCGrad: retained graphs, one vector per task",
    }
    rows = []
    for key, name in names.items():
        time, memory = result.get(f"{key} / sum", (1.0, 1.0))
        found = result[key]
        rows.append(
            [name, f"{found['ms per step']:.1f}", f"{time:.3f}"]
            + [f"{found['peak GB']:.2f}", f"{memory:.2f}"]
        )
    more = result["surgery"]["ms per step"] - result["sum"]["ms per step"]
    record(
        "surgery",
        columns=["", "ms per step", "ratio to the sum", "peak GB", "ratio to the sum"],
        rows=rows,
        values={"exact": f"{result['surgery / sum'][0]:.4f}", "adds": f"{more:.1f} ms"},
        encoder=SHAPE,
    )


def record_cache(result: Mapping[str, Any]) -> None:
    """Memory and gradients of GradCache."""
    small, large, larger = result["peak GB at 256, 4096, 16384"]
    difference = result["gradient at 512, relative difference"]
    record(
        "cache",
        columns=["batch", "chunks", "peak GB"],
        rows=[
            ["256", "", f"{small:.2f}"],
            ["4,096", "256", f"{large:.2f}"],
            ["16,384", "256", f"{larger:.2f}"],
        ],
        values={
            "ratio": f"{result['peak of 4096 / 256']:.2f}",
            "seconds": f"{result['seconds per step at 4096']:.2f} s",
            "difference": f"{difference:.1e}",
        },
        encoder=SHAPE,
        data="triples of NLI",
    )


RECORDS = {
    "peer": record_peer,
    "first": record_first,
    "rate": record_rate,
    "surgery": record_surgery,
    "cache": record_cache,
}
