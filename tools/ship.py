"""Put a trained model into the package, its weights in fp16.

    python tools/ship.py RUN [FOLDER]

FOLDER is where the package looks for the model that `tercet.load()` gives. Weights are read as fp32
again, here and by other libraries: config.json goes on saying so. What the model's own card cannot
know stands in card.md and is added to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from tercet.model import SHIPPED_FOLDER, load
from tercet.nn.folder import save_tensors

MOST_BYTES = 48_000_000
CARD = Path(__file__).with_name("card.md")


def main() -> None:
    run, *others = sys.argv[1:]
    folder = Path(others[0]) if others else SHIPPED_FOLDER
    load(run, device="cpu").save(folder)
    card = folder / "README.md"
    card.write_text(f"{card.read_text('utf-8')}\n{CARD.read_text('utf-8')}", "utf-8")
    sizes = [halve(file) for file in sorted(folder.rglob("*.safetensors"))]
    if sum(sizes) > MOST_BYTES:
        raise SystemExit(f"{folder}: weights of {sum(sizes):,} bytes, and {MOST_BYTES:,} at most.")
    print(f"{folder}: weights of {sum(sizes):,} bytes")


def halve(file: Path) -> int:
    """Write a file's numbers in fp16; its size then."""
    tensors = load_file(file)
    halved = {name: tensor.to(torch.float16) for name, tensor in tensors.items()}
    save_tensors(halved, file)
    return file.stat().st_size


if __name__ == "__main__":
    main()
