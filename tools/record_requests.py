"""Send the requests of docs/examples/requests.json to a server and keep its answers there.

    python tools/record_requests.py

The reference of HTTP endpoints shows them, and a test sends them again. The server has the model
that ships with the package, and an index of two rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

import tercet

FILE = Path(__file__).parents[1] / "docs" / "examples" / "requests.json"
ROWS = [
    {"id": "a", "text": "Prices rise again.", "year": 2021},
    {"id": "b", "text": "A quiet film.", "year": 1994},
]
LEFT_OUT = "..."
VARIES = ("created", "max_batch_tokens", "version")
"""Fields that depend on the time, the machine or the release."""
SHOWN_NUMBERS, SHOWN_LINES = 6, 3


def record() -> None:
    requests = json.loads(FILE.read_text("utf-8"))
    with server() as url:
        answered = [request | {"answer": shown(send(url, request))} for request in requests]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in answered)
    FILE.write_text(f"[\n{lines}\n]\n", "utf-8")


@contextmanager
def server() -> Iterator[str]:
    """The address of a server in a process of its own."""
    with TemporaryDirectory() as folder:
        index = Path(folder) / "news.index"
        tercet.Index.build(index, ROWS, tercet.load(device="cpu"))
        command = [sys.executable, "-m", "tercet", "serve", "--port", "0", "--index", str(index)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            events = (json.loads(line) for line in process.stderr if line.startswith("{"))
            try:
                yield next(event["url"] for event in events if event["event"] == "ready")
            finally:
                process.terminate()


def send(url: str, request: dict[str, Any]) -> Any:
    """The answer to a request: what its JSON holds, or the text."""
    method, path = request["endpoint"].split()
    body = json.dumps(request["body"]).encode() if "body" in request else None
    headers = {"Content-Type": "application/json"} if body else {}
    address = url + request.get("path", path)
    with urlopen(Request(address, body, headers, method=method), timeout=60) as response:
        text = response.read().decode()
        is_json = response.headers.get_content_type() == "application/json"
    return json.loads(text) if is_json else text


def shown(answer: Any) -> Any:
    """An answer as the page shows it: numbers rounded, vectors and long texts cut."""
    if isinstance(answer, float):
        return round(answer, 3)
    if isinstance(answer, str) and "\n" in answer:
        told = [line for line in answer.splitlines() if line.startswith("# HELP tercet")]
        return [*told[:SHOWN_LINES], LEFT_OUT]
    if isinstance(answer, list) and len(answer) > SHOWN_NUMBERS and isinstance(answer[0], float):
        return [*map(shown, answer[:2]), LEFT_OUT]
    if isinstance(answer, list):
        return [shown(each) for each in answer]
    if isinstance(answer, dict):
        return {key: LEFT_OUT if key in VARIES else shown(answer[key]) for key in answer}
    return answer


if __name__ == "__main__":
    record()
