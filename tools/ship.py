"""Put a trained model into the package, its weights in fp16.

    python tools/ship.py RUN [FOLDER]

FOLDER defaults to the place of the model that `tercet.load()` returns. Tercet and other libraries
read the weights as fp32, which config.json still states. The text of pages/card.md, with the
figures of results/, is appended to the model's own card.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from rendering.card import card  # beside this file
from safetensors.torch import load_file

from tercet.folders.seen_file import SEEN_FILE
from tercet.model import SHIPPED_FOLDER, load
from tercet.nn.folder import save_tensors

MAX_BYTES = 52_000_000
"""Of the whole folder, less the sketch of the training rows."""
RESULTS = Path(__file__).resolve().parents[1] / "results"


def main() -> None:
    run, *others = sys.argv[1:]
    folder = Path(others[0]) if others else SHIPPED_FOLDER
    load(run, device="cpu").save(folder)
    page = folder / "README.md"
    page.write_text(f"{page.read_text('utf-8')}\n{card(RESULTS)}", "utf-8")
    for file in folder.rglob("*.safetensors"):
        if file.name != SEEN_FILE:
            halve(file)
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != SEEN_FILE]
    size = sum(file.stat().st_size for file in files)
    if size > MAX_BYTES:
        raise SystemExit(f"{folder}: {size:,} bytes; the limit is {MAX_BYTES:,}.")
    print(f"{folder}: {size:,} bytes")


def halve(file: Path) -> None:
    """Rewrite a file in fp16."""
    tensors = load_file(file)
    halved = {name: tensor.to(torch.float16) for name, tensor in tensors.items()}
    save_tensors(halved, file)


if __name__ == "__main__":
    main()
