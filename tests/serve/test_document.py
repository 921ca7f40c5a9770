"""schemathesis asks all that the OpenAPI document allows, and much that it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WHOLE = os.environ.get("TERCET_WHOLE", "0") not in ("", "0")
PHASES, EXAMPLES, CASES = ("coverage,fuzzing", 600, 2500) if WHOLE else ("fuzzing", 20, 75)
"""Requests that go through every rule, random ones to each endpoint, and how many at least."""
FOREIGN = "^/(v1/|embed$|rerank$|similarity$|info$)"
"""The forms of other servers, which are one half of the whole."""

# Which modes and inputs fit depends on the task, which a document cannot say.
CONFIG = """
[checks]
negative_data_rejection.expected-statuses = ["4xx"]

[[operations]]
include-path = "/predict/{task}"
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.parametrize("half", ["include", "exclude"])
def test_no_request_breaks_the_server_or_its_document(
    half: str, server: Any, tmp_path: Path
) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG, "utf-8")
    command = [Path(sys.executable).with_name("schemathesis"), "run"]
    options = ["--phases", PHASES, "--max-examples", EXAMPLES, "--seed", 1, "--no-color"]
    options += [f"--{half}-path-regex", FOREIGN]
    result = subprocess.run(
        [*map(str, command), f"{server.url}/openapi.json", *map(str, options)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    generated = re.search(r"([\d,]+) generated", result.stdout)
    assert generated is not None, result.stdout
    print(generated[0])
    assert int(generated[1].replace(",", "")) >= CASES
    assert 'status="5' not in server.get("/metrics").text


def test_the_document_holds_this_servers_own_limits(server: Any) -> None:
    result = server.get("/openapi.json").json()
    schemas = result["components"]["schemas"]
    assert schemas["PairsBody"]["properties"]["pairs"]["maxItems"] == 64
    assert schemas["EmbeddingsBody"]["properties"]["model"]["enum"] == ["small"]
    task = result["paths"]["/predict/{task}"]["post"]["parameters"][0]["schema"]
    assert "tone" in task["enum"]
