"""The HTTP endpoints, from the server's OpenAPI document."""

from __future__ import annotations

import json
import re
from typing import Any

from fastapi import FastAPI
from record_requests import FILE as REQUESTS

from reference.markdown import words
from tercet.serve.app import add_endpoints
from tercet.serve.document import body_schemas

WIDTH = 80
"""Of the lines of examples."""


def endpoints() -> str:
    """Every endpoint of `tercet serve`: its body, its answer, its refusals and an example."""
    api = FastAPI(title="Tercet")
    add_endpoints(api)
    document = api.openapi()
    schemas = document["components"]["schemas"] | body_schemas()
    examples = {each["endpoint"]: each for each in json.loads(REQUESTS.read_text("utf-8"))}
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            section = _endpoint(name, operation, schemas) + _example(examples[name])
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(section)
    return "\n".join(
        line for group, sections in groups.items() for line in (f"## {_title(group)}\n", *sections)
    )


def _title(group: str) -> str:
    return group[0].upper() + group[1:] if group.islower() and "-" not in group else group


def _endpoint(name: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    lines = [f"### {name}\n", f"{operation.get('description', operation['summary'])}\n"]
    for parameter in operation.get("parameters", []):
        about = parameter.get("description", "")
        lines.append(f"- `{parameter['name']}` in the {parameter['in']}: {about or 'required'}\n")
    if "requestBody" in operation:
        schema = _resolved(_json_of(operation["requestBody"]), schemas)
        lines += ["Body:\n", *_fields(schema, schemas)]
    answers = operation["responses"]
    good = next(code for code in answers if code.startswith("2"))
    schema = _resolved(_json_of(answers[good]), schemas)
    if schema.get("properties"):
        lines += ["Answer:\n", *_fields(schema | {"required": []}, schemas)]
    elif schema.get("type"):
        lines.append(f"Answer: {_json_type(schema, schemas)}.\n")
    if refusals := [code for code in answers if code != good]:
        lines.append(f"Refusals: {', '.join(refusals)}.\n")
    return "\n".join(lines)


def _example(request: dict[str, Any]) -> str:
    """A request as a command, and its answer."""
    method, path = request["endpoint"].split()
    command = f"curl -s localhost:8000{request.get('path', path)}"
    if method == "POST":
        body = json.dumps(request["body"], ensure_ascii=False)
        command += f" -H 'Content-Type: application/json' \\\n     -d '{body}'"
    answer = request["answer"]
    is_text = path == "/metrics"
    content = "\n".join(answer) if is_text else _arranged(answer)
    language = "text" if is_text else "json"
    return f"\n```sh\n{command}\n```\n\n```{language}\n{content}\n```\n"


def _arranged(value: Any, indent: str = "") -> str:
    """JSON with what fits on a line on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent + line) <= WIDTH or not isinstance(value, list | dict):
        return line
    inner = indent + "  "
    if isinstance(value, list):
        parts = [inner + _arranged(each, inner) for each in value]
        return "[\n" + ",\n".join(parts) + f"\n{indent}]"
    parts = [f"{inner}{json.dumps(key)}: {_arranged(value[key], inner)}" for key in value]
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


def _json_of(part: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = part.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return schemas[reference.rpartition("/")[2]] if reference else schema


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    required = schema.get("required", [])
    lines = []
    for name, field in schema.get("properties", {}).items():
        facts = [_json_type(field, schemas)]
        if name in required:
            facts.append("required")
        elif field.get("default") is not None:
            facts.append(f"default `{json.dumps(field['default'])}`")
        about = field.get("description") or ""
        lines.append(f"- `{name}`: {', '.join(facts)}. {about}".rstrip())
    return [*lines, ""]


def _json_type(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """A JSON schema in words."""
    schema = _resolved(schema, schemas)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        kinds = [_json_type(each, schemas) for each in choices if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema or "const" in schema:
        return words(f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            each = _many(_json_type(schema["prefixItems"][0], schemas))
            return f"list of {len(schema['prefixItems'])} {each}"
        case "array":
            return f"list of {_many(_json_type(schema.get('items', {}), schemas))}"
        case "object" if schema.get("properties"):
            return f"object with {', '.join(f'`{name}`' for name in schema['properties'])}"
        case "boolean":
            return "true or false"
        case str(kind):
            return kind
    return "any value"


def _many(words: str) -> str:
    return " or ".join(
        f"{each}s"
        if each in ("string", "integer", "number")
        else re.sub(r"^(list|object)\b", r"\1s", each)
        for each in words.split(" or ")
    )


def statuses() -> str:
    """The statuses of refusals, and what each means."""
    api = FastAPI(title="Tercet")
    add_endpoints(api)
    meanings = {
        code: answer["description"]
        for methods in api.openapi()["paths"].values()
        for operation in methods.values()
        for code, answer in operation["responses"].items()
        if not code.startswith("2")
    }
    rows = [f"| {code} | {meanings[code]} |" for code in sorted(meanings)]
    return "\n".join(["| status | meaning |", "|---|---|", *rows])
