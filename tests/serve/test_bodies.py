"""Bodies below the limit on bytes that would cost far more than their size."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tercet.serve.bodies import _in_strings, parse
from tercet.serve.fields import Body, IdRows, Ids, Pairs, Texts, TextsOrIds
from tercet.serve.refusal import RefusalError, shown
from tercet.serve.server import SWITCH_SECONDS

SIZE = 4_000_000
UNITS = {
    "numbers that are no ids": b"1.5,",
    "ones": b"1,",
    "nulls": b"null,",
    "lists": b"[],",
    "lists of one": b"[1],",
    "deep lists": b"[[[[]]]],",
    "objects": b"{},",
    "fields": b'{"a":1},',
    "empty texts": b'"",',
    "escaped quotes": b'"\\"[",',
}
PROGRAM = """
import resource, sys
from tercet.serve.bodies import parse
from tercet.serve.fields import Body, TextsOrIds
from tercet.serve.refusal import RefusalError
class EmbedBody(Body):
    inputs: TextsOrIds
body = b'{"inputs": [' + UNIT * (SIZE // len(UNIT)) + UNIT[:-1] + b"]}"
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    parse(body, EmbedBody, inputs=2048)
except RefusalError as refusal:
    print(refusal.status, end=" ")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(body))
"""


class Both(Body):
    inputs: TextsOrIds | None = None
    pairs: Pairs | None = None


def test_no_body_takes_more_than_twenty_times_its_size() -> None:
    """All in processes of their own, forked after the imports."""
    code = f"import os\nSIZE = {SIZE}\nUNITS = {UNITS!r}\nPROGRAM = {PROGRAM!r}\n" + (
        "import tercet.serve.bodies\n"
        "for UNIT in UNITS.values():\n"
        "    if not os.fork():\n"
        "        exec(PROGRAM)\n"
        "        raise SystemExit\n"
        "    os.wait()\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ratios = [float(line.split()[-1]) for line in found.stdout.splitlines()]
    assert len(ratios) == len(UNITS)
    assert max(ratios) <= 20, dict(zip(UNITS, ratios, strict=True))


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as in the real server."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_health_is_answered_while_the_worst_bodies_are_read(serve: Any) -> None:
    server = serve(body=SIZE + 100, inputs=2048, queue_inputs=4096)
    for name, unit in UNITS.items():
        body = b'{"inputs": [' + unit * (SIZE // len(unit)) + unit[:-1] + b"]}"
        # Other work on the machine delays some: what the server does itself delays all.
        longest = min(_longest_delay(server, body) for _ in range(4))
        assert longest < 0.1, name  # 4 to 11 s before


def _longest_delay(server: Any, body: bytes) -> float:
    """The longest answer of /health while a body is read, in seconds."""
    headers = {"Content-Type": "application/json"}
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(
            httpx.post, f"{server.url}/embed", content=body, headers=headers, timeout=60
        )
        longest = 0.0
        while not sent.done():
            began = time.monotonic()
            assert server.get("/health/live").status_code == 200
            longest = max(longest, time.monotonic() - began)
    assert sent.result().status_code in (200, 413, 422)
    return longest


def test_too_many_inputs_are_counted_before_they_are_checked() -> None:
    for count, status in ((5, 413), (4, 422)):
        with pytest.raises(RefusalError) as refused:
            parse(b'{"inputs": [' + b"null," * (count - 1) + b"null]}", Both, inputs=4)
        assert refused.value.status == status


def test_a_list_is_refused_at_its_first_wrong_entry() -> None:
    with pytest.raises(RefusalError) as refused:
        parse(b'{"pairs": [["a", "b"], ["a", 1], ["a"], 3]}', Both, inputs=9)
    assert refused.value.field == "pairs.1.1"


@pytest.mark.parametrize(
    ("kind", "wrong"), [(Texts, None), (Pairs, 3), (Pairs, ["a"]), (Ids, ""), (IdRows, [""])]
)
def test_no_report_on_all_wrong_entries_is_made(kind: Any, wrong: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python([wrong] * 5)
    assert refused.value.error_count() == 1


def test_pairs_are_read_as_before() -> None:
    assert parse(b'{"pairs": [["a", "b"]]}', Both, inputs=9).pairs == [("a", "b")]
    with pytest.raises(RefusalError) as refused:
        parse(b'{"pairs": [["a", "b", "c"]]}', Both, inputs=9)
    assert refused.value.field == "pairs.0"


def test_texts_may_hold_brackets_and_colons() -> None:
    texts = ['{"a": [[[]]]}' * 50] * 3
    body = shown_whole({"inputs": texts})
    assert parse(body, Both, inputs=4).inputs == texts


def shown_whole(value: Any) -> bytes:
    return json.dumps(value).encode()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(alphabet='"\\[]{}:a', max_size=9), max_size=6))
def test_strings_of_json_are_found(texts: list[str]) -> None:
    body = shown_whole(texts)
    strings = re.compile(rb'"(?:[^"\\]|\\.)*"')
    inside = _in_strings(np.frombuffer(body, np.uint8))
    outside = bytes(byte for byte, within in zip(body, inside, strict=True) if not within)
    # A closing quote counts as outside.
    assert outside.replace(b'"', b"") == strings.sub(b"", body)


def test_a_long_value_is_shown_short() -> None:
    assert shown([1, "a"]) == '[1, "a"]'
    began = time.monotonic()
    assert len(shown([[1.5] * 10] * 100_000)) == 60
    assert time.monotonic() - began < 1
