"""`tercet export`: a model in the format of another library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tercet.cli.console import print_message
from tercet.cli.options import MODEL_HELP, LayersOption, PluginOption


def export(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write.")],
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL_HELP)] = None,
    form: Annotated[
        Literal["sentence-transformers", "onnx", "onnx-int8"],
        typer.Option("--format", help="The format to write."),
    ] = "sentence-transformers",
    layers: LayersOption = None,
    plugin: PluginOption = None,
) -> None:
    """Write a model in the format of another library.

    sentence-transformers: the folder loads in all versions of it, in transformers, and in Tercet.
    onnx, onnx-int8: graphs for ONNX Runtime, in single precision or with 8-bit linear layers; the
    folder loads in Tercet, on a CPU, without torch.

    A sentence-transformers folder keeps all depths that the model was trained for, and that library
    uses the full one. With --layers, and in ONNX folders, there is one depth.

    Example: tercet export runs/best --format onnx-int8 --out exported
    """
    from tercet.model import load

    loaded = load(model, device="cpu", layers=layers)
    if form == "sentence-transformers":
        loaded.save(out)
        print_message(f"Wrote {out}, which loads in {form}, transformers and Tercet.")
        return
    from tercet.folders.model_folder import Parts
    from tercet.folders.onnx_folder import export_onnx

    parts = Parts(loaded.network, loaded.tokenizer, loaded.info)
    export_onnx(
        out, parts, precision="int8" if form == "onnx-int8" else "fp32", sketch=loaded.sketch
    )
    print_message(f"Wrote {out}, which loads in Tercet and runs in ONNX Runtime.")
