"""The page at /, its files, and /docs; scripts and styles come from this server only."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tercet.serve.refusal import RefusalError

FOLDER = Path(__file__).parent / "web"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-size: 0.9em; }
pre { overflow-x: auto; padding: 0.75rem; background: color-mix(in srgb, currentColor 8%, canvas); }
h2 { margin-top: 2.5rem; font-size: 1.15rem; }
"""


class PageFiles(StaticFiles):
    """The page's files, with headers that forbid requests to other servers."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


def add_page(app: FastAPI) -> None:
    """Serve the page and the documentation of the endpoints."""
    app.mount("/web", PageFiles(directory=FOLDER, check_dir=False), name="web")

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        index = FOLDER / "index.html"
        if not index.is_file():
            raise RefusalError(404, "This installation has no page; /docs lists the endpoints.")
        return FileResponse(index, headers=HEADERS)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return Response(_document(request.app.openapi()), media_type="text/html", headers=HEADERS)

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, media_type="text/css", headers=HEADERS)


def _document(openapi: dict[str, Any]) -> str:
    """The OpenAPI document as a page to read."""
    sections = [
        _endpoint(method.upper(), path, operation, openapi)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>Tercet: endpoints</title><link rel="stylesheet" href="/docs.css"></head><body>'
        "<h1>Tercet: endpoints</h1>"
        '<p>Machine-readable: <a href="/openapi.json">openapi.json</a>. '
        'Try the model on <a href="/">the page</a>.</p>' + "".join(sections) + "</body></html>"
    )


def _endpoint(method: str, path: str, operation: dict[str, Any], openapi: dict[str, Any]) -> str:
    parts = [f"<h2><code>{method} {escape(path)}</code></h2>"]
    parts.append(f"<p>{escape(operation.get('description') or operation.get('summary', ''))}</p>")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "schema" in body:
        parts.append(f"<p>Body:</p><pre>{escape(_shape(body['schema'], openapi))}</pre>")
    answer = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    if answer.get("schema"):
        parts.append(f"<p>Answer:</p><pre>{escape(_shape(answer['schema'], openapi))}</pre>")
    return "".join(parts)


def _shape(schema: dict[str, Any], openapi: dict[str, Any], indent: str = "") -> str:
    """A schema written as a value: `{"texts": [string], "truncate": boolean?}`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _shape(openapi["components"]["schemas"][name], openapi, indent)
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return " | ".join(_shape(choice, openapi, indent) for choice in choices)
    if "const" in schema or "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array" and "prefixItems" in schema:
        return f"[{', '.join(_shape(item, openapi, indent) for item in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"[{_shape(schema.get('items', {}), openapi, indent)}, ...]"
    if "properties" not in schema:
        return str(schema.get("type", "any"))
    deeper = indent + "  "
    lines = [
        f'{deeper}"{name}"{"" if name in schema.get("required", []) else "?"}: '
        + _shape(part, openapi, deeper)
        for name, part in schema["properties"].items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
