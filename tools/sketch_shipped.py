"""Put the sketch of its training rows into the shipped model, which is older than such sketches.

    python tools/sketch_shipped.py DATA [FOLDER]

The rows are those of its recipe's files, as `tools/measure_shipped.py` counts them. A model that is
trained now brings its sketch with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from measure_shipped import sketch_of  # beside this file

from tercet.folders.seen_file import SEEN_FILE, write_seen
from tercet.model import SHIPPED_FOLDER

MAX_BYTES = 4_000_000


def main() -> None:
    data, *others = sys.argv[1:]
    folder = Path(others[0]) if others else SHIPPED_FOLDER
    sketch = sketch_of(Path(data))
    write_seen(folder, sketch)
    size = (folder / SEEN_FILE).stat().st_size
    if size > MAX_BYTES:
        raise SystemExit(f"{folder / SEEN_FILE}: {size:,} bytes; the limit is {MAX_BYTES:,}.")
    print(f"{folder / SEEN_FILE}: {sketch.rows:,} rows, {size:,} bytes")


if __name__ == "__main__":
    main()
