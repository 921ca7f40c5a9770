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

MAX_BYTES = 48_000_000
RESULTS = Path(__file__).resolve().parents[1] / "results"


def main() -> None:
    run, *others = sys.argv[1:]
    folder = Path(others[0]) if others else SHIPPED_FOLDER
    load(run, device="cpu").save(folder)
    page = folder / "README.md"
    page.write_text(f"{page.read_text('utf-8')}\n{card(RESULTS)}", "utf-8")
    weights = [file for file in sorted(folder.rglob("*.safetensors")) if file.name != SEEN_FILE]
    sizes = [halve(file) for file in weights]
    if sum(sizes) > MAX_BYTES:
        raise SystemExit(f"{folder}: {sum(sizes):,} bytes of weights; the limit is {MAX_BYTES:,}.")
    print(f"{folder}: {sum(sizes):,} bytes of weights")


def halve(file: Path) -> int:
    """Rewrite a file in fp16; returns its new size."""
    tensors = load_file(file)
    halved = {name: tensor.to(torch.float16) for name, tensor in tensors.items()}
    save_tensors(halved, file)
    return file.stat().st_size


if __name__ == "__main__":
    main()
