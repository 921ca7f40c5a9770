"""The OpenAPI document of a server: the bodies of its endpoints, with the server's limits."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from tercet.serve.exchange import BODIES
from tercet.serve.service import Service

REFERENCE = "#/components/schemas/{model}"


class Api(FastAPI):
    """FastAPI with the schemas of the bodies that the endpoints parse themselves."""

    def serve_from(self, service: Service) -> None:
        """Answer all later requests by this service."""
        self.state.service = service
        self.openapi_schema = None

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            service: Service = self.state.service
            bodies = body_schemas()
            for schema in bodies.values():
                _bound(schema, service)
            document["components"]["schemas"] |= bodies
            _name(document, service)
        return super().openapi()


def body_schemas() -> dict[str, Any]:
    """The schemas of the bodies, by name, without the limits of a server."""
    kinds = sorted(BODIES, key=lambda kind: kind.__name__)
    _, schemas = models_json_schema(
        [(kind, "validation") for kind in kinds], ref_template=REFERENCE
    )
    bodies: dict[str, Any] = schemas["$defs"]
    return bodies


def _bound(schema: Any, service: Service) -> None:
    """Add the limits on inputs and token ids to a schema."""
    if isinstance(schema, list):
        for part in schema:
            _bound(part, service)
    if not isinstance(schema, dict):
        return
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict):
        if items.get("type") == "integer":
            items |= {"minimum": 0, "maximum": service.model.tokenizer.vocabulary - 1}
        elif "prefixItems" not in schema:
            schema["maxItems"] = service.limits.inputs
    for part in list(schema.values()):
        _bound(part, service)


def _name(document: dict[str, Any], service: Service) -> None:
    """Add the names, tasks and widths of the model."""
    schemas = document["components"]["schemas"]
    schemas["EmbeddingsBody"]["properties"]["model"]["enum"] = service.names
    for body in ("EmbeddingsBody", "EmbedBody"):
        width = {"type": "integer", "enum": service.model.widths}
        schemas[body]["properties"]["dimensions"]["anyOf"][0] = width
    if service.model.tasks:
        for parameter in document["paths"]["/predict/{task}"]["post"]["parameters"]:
            parameter["schema"]["enum"] = list(service.model.tasks)
