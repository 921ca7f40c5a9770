"""The documentation site: it builds without a warning, is complete and needs no other host."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from html import unescape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from fastapi import FastAPI
from pydantic import TypeAdapter

import tercet
from tercet.cli.app import COMMANDS, load_command
from tercet.data.sketch import HashSet, Sketch, SketchPart
from tercet.embed.schema import Identity, vectors_schema
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.recipe import Recipe
from tercet.serve.app import add_endpoints
from tercet.specs import HEADS, OBJECTIVES, SCHEDULES, SURGERIES, LabelSpace, Spec
from tercet.training.run_folder import RunFolder

ROOT = Path(__file__).parents[1]
MISSING = [name for name in ("sphinx", "myst_parser", "furo") if find_spec(name) is None]
needs_sphinx = pytest.mark.skipif(
    bool(MISSING), reason=f"the extra `docs` is not installed: {', '.join(MISSING)} missing"
)


def tool(name: str) -> ModuleType:
    """A module of tools/, which is outside the package."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(ROOT / "tools"))


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` does, of another source folder."""
    options = ["-W", "--keep-going", "-q", "-c", str(ROOT / "docs"), "-d", str(out / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(out / "site")]
    return subprocess.run(command, capture_output=True, text=True)


def text_of(page: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page.read_text("utf-8")))


def blocks() -> set[type[Spec]]:
    """Every kind of block that a recipe may have."""
    found, more = set[type[Spec]](), {Spec}
    while more:
        more = {each for spec in more for each in spec.__subclasses__()} - found
        found |= more
    inside = {each for each in found if each.__module__.startswith("tercet.specs.")}
    return inside - {LabelSpace} | {Recipe}


def test_every_recipe_key_says_what_it_means() -> None:
    silent = [
        f"{spec.__name__}.{key}"
        for spec in blocks()
        for key, field in spec.model_fields.items()
        if key != "kind" and not field.description
    ]
    assert not silent


def test_every_recipe_key_has_an_example_that_it_accepts() -> None:
    recipe_keys = tool("reference.recipe_keys")
    for spec in blocks():
        for key, field in spec.model_fields.items():
            if key == "kind":
                continue
            _, example = recipe_keys.meaning_and_example(field)
            value = tomllib.loads(f"{key} = {example}")[key]
            accepted = TypeAdapter(Annotated[field.annotation, key, *field.metadata])
            accepted.validate_json(json.dumps(value), strict=True)


@needs_sphinx
def test_every_public_call_has_an_example() -> None:
    page = tool("reference.python_api").python_api()
    _, *entries = re.split(r"^`+\{py:", page, flags=re.MULTILINE)
    calls = [entry for entry in entries if entry.startswith(("function", "method"))]
    assert len(calls) > 40
    assert [call.partition("(")[0] for call in calls if "\n>>> " not in call] == []


@needs_sphinx
def test_the_arguments_of_a_call_are_explained_one_by_one() -> None:
    page = tool("reference.python_api").python_api()
    _, *entries = re.split(r"^`+\{py:", page, flags=re.MULTILINE)
    explained = 0
    for call in (each for each in entries if each.startswith(("function", "method"))):
        signature, _, text = call.partition("\n")
        names = [
            name
            for names in re.findall(r"^- \*\*(.+?)\*\*: ", text, re.MULTILINE)
            for name in names.split(", ")
        ]
        explained += len(names)
        assert [name for name in names if not re.search(rf"\b{name}\b", signature)] == [], signature
        within = re.findall(r"; (\w+): ", text)
        assert [name for name in within if re.search(rf"\b{name}: ", signature)] == [], signature
    assert explained > 40


def test_every_endpoint_has_an_example_that_a_server_answers_so() -> None:
    recorder = tool("record_requests")
    requests = json.loads(recorder.FILE.read_text("utf-8"))
    add_endpoints(api := FastAPI())
    paths = api.openapi()["paths"]
    known = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert {request["endpoint"] for request in requests} == known
    with recorder.server() as url:
        for request in requests:
            answer = recorder.shown(recorder.send(url, request))
            assert nearly(answer, request["answer"]), (request["endpoint"], answer)


def nearly(found: Any, expected: Any) -> bool:
    """Whether two values of JSON are the same but for the rounding of another machine."""
    if isinstance(found, float | int) and isinstance(expected, float | int):
        return abs(found - expected) < 0.01
    if isinstance(found, list) and isinstance(expected, list):
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(nearly(*pair) for pair in pairs)
    if isinstance(found, dict) and isinstance(expected, dict):
        return list(found) == list(expected) and all(nearly(found[k], expected[k]) for k in found)
    return bool(found == expected)


def test_every_example_of_a_command_is_a_call_that_it_accepts() -> None:
    for words, command in tool("reference.commands").all_commands():
        example = " ".join((command.help or "").partition("Example:")[2].split())
        if words == "tercet":
            continue
        assert example.startswith(words), words
        command.make_context(words, shlex.split(example.removeprefix(words)))


def test_every_environment_variable_is_listed() -> None:
    page = (ROOT / "docs" / "reference" / "environment.md").read_text("utf-8")
    options = {
        parameter.envvar
        for name in COMMANDS
        for command in [load_command(name)]
        for each in (getattr(command, "commands", None) or {"": command}).values()
        for parameter in each.params
    }
    folders = [ROOT / name for name in ("src", "tests", "tools", "benchmarks", "studies")]
    code = "".join(file.read_text("utf-8") for each in folders for file in each.rglob("*.py"))
    used = set(re.findall(r"\bTERCET_[A-Z_]*[A-Z]\b", code))
    assert {"TERCET_CACHE", "TERCET_REPORTS"} <= used
    assert {name for name in used - options if f"`{name}`" not in page} == set()


def test_every_file_that_is_written_is_described(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "files.md").read_text("utf-8")
    model = tercet.load(device="cpu")
    model.save(tmp_path / "model")
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(tmp_path / "onnx", parts, precision="fp32")
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    heads = {f"{task}.{mode}.onnx" for task, spec in model.tasks.items() for mode in spec.modes}
    assert heads <= written
    assert {name for name in written - heads if name not in page} == set()
    keys = {*json.loads((tmp_path / "model" / "tercet.json").read_text("utf-8"))}
    keys |= set(ModelInfo.model_fields)
    assert {key for key in keys if f"`{key}`" not in page} == set()


def test_every_file_of_a_run_and_every_key_of_vectors_is_described(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "files.md").read_text("utf-8")
    run = RunFolder(tmp_path / "run", Recipe.load("tercet/demo"))
    run.path.mkdir()
    run.open({}, changed_data=False)
    names = {path.name for path in (run.model, run.checkpoints, run.curves, *run.path.iterdir())}
    assert {name for name in names if f"`{name}" not in page} == set()
    identity = Identity("tercet/small", "", 384, "truncate", layers=3)
    metadata = vectors_schema(pa.schema([]), identity).metadata
    assert {key for key in metadata if f"`{key.decode()}`" not in page} == set()
    empty, _ = HashSet.of(np.zeros(0, np.uint64))
    tensors = Sketch((SketchPart(empty, empty, np.zeros(0, np.uint16)),)).to_arrays()
    assert {key for key in tensors if f"`N{key[1:]}`" not in page} == set()


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)[^):]*\)", (ROOT / "README.md").read_text("utf-8"))
    assert "docs/own-files.md" in links
    assert [link for link in links if not (ROOT / link).exists()] == []


@needs_sphinx
def test_the_site_is_complete_and_needs_no_other_host(tmp_path: Path) -> None:
    result = build(ROOT, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    site = tmp_path / "site"
    assert "recip" in (site / "searchindex.js").read_text("utf-8")
    assert (site / "index.html").is_file()
    reference = site / "docs" / "reference"
    keys = text_of(reference / "recipe-keys.html")
    for spec in blocks():
        names = set(spec.model_fields) - {"kind"}
        assert all(re.search(rf"\b{name}\b", keys) for name in names), spec
    for registry in (HEADS, OBJECTIVES, SCHEDULES):
        assert all(f'kind = "{kind}"' in keys for kind in registry), registry.sort
    assert all(kind in keys for kind in SURGERIES)
    assert "tasks.NAME.data.train" in keys
    assert "stages.N.optimiser.lr" in keys
    python = (reference / "python.html").read_text("utf-8")
    assert all(f'id="tercet.{name}"' in python for name in set(tercet.__all__) - {"__version__"})
    commands = text_of(reference / "commands.html")
    assert all(f"tercet {name}" in commands for name in COMMANDS)
    endpoints = text_of(reference / "http.html")
    add_endpoints(api := FastAPI())
    assert "POST /predict/{task}" in endpoints
    assert all(f" {path}" in endpoints for path in api.openapi()["paths"])
    for page in site.rglob("*.html"):
        loaded = r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*"
        foreign = re.findall(loaded, page.read_text("utf-8"))
        assert page.match("results/**/*.html") or not foreign, page
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text("utf-8"))


@needs_sphinx
def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    page = tmp_path / "source" / "docs" / "index.md"
    page.parent.mkdir(parents=True)
    page.write_text("# A page\n\n[a page](gone.md), [a heading](index.md#lost)\n", "utf-8")
    result = build(tmp_path / "source", tmp_path)
    assert result.returncode == 1
    assert "gone.md" in result.stderr
    assert "lost" in result.stderr
