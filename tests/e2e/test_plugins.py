"""docs/plugins.md: a file of a user's own parts works everywhere, and nothing works without it."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from safetensors.torch import load_file

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text("utf-8")
STEPS = 24
TASKS = """
[tasks.sentiment]
data = { layout = "cs224n-sst" }
labels = ["negative", "somewhat negative", "neutral", "somewhat positive", "positive"]
single = { head = { kind = "maxout", pieces = 3 }, objective = { kind = "focal", gamma = 1.5 } }

[tasks.paraphrase]
data = { layout = "cs224n-quora" }
labels = ["different", "paraphrase"]
cross = { head = { kind = "maxout" }, objective = { kind = "focal" } }
"""
STAGES = f"""
[[stages]]
schedule = {{ kind = "stretches", times = 2 }}
steps = {STEPS}
batch = 8
optimiser = {{ lr = 1e-3 }}

[evaluation]
every = 8
rows = 12

[checkpoint]
every = 3
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path_factory.mktemp("plugin") / "parts.py"
    path.write_text(code, "utf-8")
    return path


@pytest.fixture(scope="module")
def recipe(write_recipe: Any) -> Path:
    path: Path = write_recipe(STAGES, tasks=TASKS)
    return path


@pytest.fixture(scope="module")
def run(
    tercet: Any, recipe: Path, parts: Path, train_arguments: Any, tmp_path_factory: Any
) -> Path:
    """A run with the parts, uninterrupted."""
    out: Path = tmp_path_factory.mktemp("own") / "run"
    tercet.succeed(*train_arguments(recipe, out, "--plugin", parts))
    return out


def test_a_killed_run_resumes_to_the_same_weights(
    tercet: Any, recipe: Path, parts: Path, run: Path, train_arguments: Any, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = tercet.start(*train_arguments(recipe, out, "--plugin", parts))
    while process.poll() is None and line_count(out / "metrics.jsonl") < STEPS // 2:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert not (out / "summary.json").exists()
    tercet.succeed(*train_arguments(recipe, out, "--resume", "--plugin", parts))
    for name in ("model/heads.safetensors", "model/model.safetensors"):
        assert (out / name).read_bytes() == (run / name).read_bytes()


def line_count(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines()) if path.exists() else 0


def test_several_processes_train_with_it(
    tercet: Any, recipe: Path, parts: Path, train_arguments: Any, tmp_path: Path
) -> None:
    arguments = train_arguments(recipe, tmp_path / "run", "--plugin", parts)
    tercet.succeed(*arguments, "--set", "stages.0.steps=4", torchrun=2)
    assert (tmp_path / "run" / "model" / "tercet.json").exists()


def test_the_surgery_gives_every_task_the_same_length(
    tercet: Any, recipe: Path, parts: Path, train_arguments: Any, tmp_path: Path
) -> None:
    changes = ['stages.0.schedule={kind="together"}', "stages.0.surgery=equal-lengths"]
    changes += ["stages.0.steps=1", "stages.0.optimiser.clip=0"]
    weights = []
    for weight in (1.0, 1024.0):
        out = tmp_path / str(weight)
        own = [*changes, f"tasks.sentiment.weight={weight}"]
        settings = [word for change in own for word in ("--set", change)]
        tercet.succeed(*train_arguments(recipe, out, "--plugin", parts, *settings))
        line = json.loads((out / "metrics.jsonl").read_text("utf-8").splitlines()[0])
        assert list(line["cosine"]) == ["sentiment ~ paraphrase"]
        weights.append(load_file(out / "model" / "model.safetensors"))
    # The weight of a loss changes nothing in the encoder, whose gradients all have length 1.
    first, second = weights
    assert all(torch.allclose(first[name], second[name], atol=1e-4) for name in first)


def test_the_suite_is_in_every_output(
    tercet: Any, run: Path, parts: Path, sample_data: Path, tmp_path: Path
) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("html", "md", "json")}
    outputs = ("--report", files["html"], "--markdown", files["md"], "--json", files["json"])
    suites = ("--suite", "tasks", "--suite", "confidence")
    ended = tercet.succeed(
        "evaluate", run, "--data", sample_data, "--plugin", parts, *suites, *outputs
    )
    assert "confidence" in ended.out.lower()
    document = json.loads(files["json"].read_text("utf-8"))
    value = document["suites"]["confidence"]["metrics"]["sentiment"]["value"]
    assert 0.2 <= value <= 1.0
    for kind in ("html", "md"):
        text = files[kind].read_text("utf-8")
        assert "Confidence" in text
        assert f"{value:.3f}" in text
    unknown = tercet.run("evaluate", run, "--data", sample_data, "--suite", "confidence")
    assert unknown.code == 2


def test_export_answers_the_same(tercet: Any, run: Path, parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "onnx"
    tercet.succeed("export", run / "model", "--format", "onnx", "--out", out, "--plugin", parts)
    texts = ("sentiment", "--text", "A quiet triumph.", "--plugin", parts)
    ours, exported = (
        json.loads(tercet.succeed("predict", *texts, "--model", model).out) for model in (run, out)
    )
    assert exported["name"] == ours["name"]
    assert exported["probabilities"] == pytest.approx(ours["probabilities"], abs=1e-5)


def test_the_server_answers(tercet: Any, run: Path, parts: Path) -> None:
    process = tercet.start("serve", "--model", run, "--port", "0", "--plugin", parts)
    try:
        address = None
        while address is None:
            line = process.stderr.readline()
            assert line, "the server ended"
            address = re.search(r"http://[\w.]+:\d+", line)
        answer = httpx.post(
            f"{address[0]}/predict/sentiment", json={"inputs": ["A quiet triumph."]}
        )
        assert answer.status_code == 200
        assert sum(answer.json()["results"][0]["probabilities"]) == pytest.approx(1.0, abs=1e-3)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def test_a_folder_is_refused_without_it(
    tercet: Any, run: Path, parts: Path, tmp_path: Path
) -> None:
    folder = run / "model"
    assert json.loads((folder / "tercet.json").read_text("utf-8"))["plugins"] == {
        "head maxout": "parts.py",
        "objective focal": "parts.py",
    }
    assert "parts.py" in (folder / "README.md").read_text("utf-8")
    # A file of that name in reach is not imported by itself.
    (tmp_path / "parts.py").write_text("raise SystemExit('imported')", "utf-8")
    ended = tercet.run("predict", "sentiment", "--text", "a", "--model", folder, cwd=tmp_path)
    assert ended.code == 2
    (sentence,) = ended.err.splitlines()
    assert "head `maxout`" in sentence
    assert "parts.py" in sentence


def test_a_recipe_is_refused_without_it(
    tercet: Any, recipe: Path, train_arguments: Any, tmp_path: Path
) -> None:
    ended = tercet.run(*train_arguments(recipe, tmp_path / "run"))
    assert ended.code == 2
    (sentence,) = ended.err.splitlines()
    assert "Unknown head `maxout`" in sentence


def test_a_broken_file_is_named(tercet: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_this_name", "utf-8")
    ended = tercet.run("predict", "sentiment", "--text", "a", "--plugin", broken)
    assert ended.code == 2
    (sentence,) = ended.err.splitlines()
    assert "broken.py: cannot be imported: ModuleNotFoundError" in sentence
