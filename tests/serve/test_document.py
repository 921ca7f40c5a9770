"""schemathesis asks whatever the OpenAPI document allows, and what it does not."""

from __future__ import annotations

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

WHOLE = os.environ.get("TERCET_WHOLE", "0") not in ("", "0")
EXAMPLES = 500 if WHOLE else 12
"""Of each of the endpoints, beside those that cover every rule of the document."""

COUNT = {"cases": 0}


@pytest.fixture(scope="module")
def document(server: Any) -> Any:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
def test_no_request_breaks_the_server_or_its_document(case: schemathesis.Case) -> None:
    COUNT["cases"] += 1
    # Which gears and inputs fit depends on the task, which a document cannot say.
    apart = ["positive_data_acceptance"] if case.path == "/predict/{task}" else []
    case.call_and_validate(excluded_checks=CHECKS.get_by_names(apart))


def test_enough_was_asked() -> None:
    assert COUNT["cases"] >= (5000 if WHOLE else 200), COUNT


def test_the_document_holds_this_servers_own_limits(server: Any) -> None:
    told = server.get("/openapi.json").json()
    schemas = told["components"]["schemas"]
    assert schemas["PairsBody"]["properties"]["pairs"]["maxItems"] == 64
    assert schemas["EmbeddingsBody"]["properties"]["model"]["enum"] == ["small"]
    task = told["paths"]["/predict/{task}"]["post"]["parameters"][0]["schema"]
    assert "tone" in task["enum"]
