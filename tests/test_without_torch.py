"""An environment without torch: ONNX folders work, and the rest says what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tercet
from tercet.data.sample import write_sample
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx

MISSING = "pip install 'tercet[torch]'"
# With torch installed, scipy would look for tensors in the None that stands for it.
BLOCK = (
    "import sys\n"
    "class Blocked:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name.partition('.')[0] in ('torch', 'torchjd'):\n"
    "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
    "sys.meta_path.insert(0, Blocked())\n"
)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCK + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("from tercet.cli.app import main\nmain()", *arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shipped model as an ONNX folder."""
    model = tercet.load(device="cpu")
    out = tmp_path_factory.mktemp("without") / "onnx"
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(out, parts, precision="fp32")
    return str(out)


def test_an_onnx_folder_predicts(folder: str) -> None:
    result = run_command("predict", "sentiment", "--text", "A film.", "--model", folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert '"probabilities"' in result.stdout


def test_an_onnx_folder_is_served(folder: str) -> None:
    program = BLOCK + "from tercet.cli.app import main\nmain()"
    command = [sys.executable, "-c", program, "serve", "--model", folder, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # where batches are smallest
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        events = iter(server.stderr.readline, "")
        ready = next((json.loads(line) for line in events if '"ready"' in line), None)
        server.terminate()
        assert ready is not None
        assert server.wait(timeout=20) == 0


def test_an_onnx_folder_is_evaluated(folder: str, tmp_path: Path) -> None:
    write_sample(tmp_path, rows=40)
    result = run_command("evaluate", folder, "--data", str(tmp_path), "--suite", "tasks")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "sentiment", "--text", "A film."],
        ["serve", "--port", "0"],
        ["fit", "docs/examples/tickets.csv"],
        ["export", "--out", "never"],
    ],
    ids=lambda command: command[0],
)
def test_commands_that_need_torch_say_what_to_install(command: list[str]) -> None:
    result = run_command(*command)
    assert result.returncode == 2
    assert result.stderr.startswith("error: This needs torch, ")
    assert MISSING in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("call", ["tercet.load()", "tercet.fit", "tercet.train"])
def test_so_does_python(call: str) -> None:
    result = run(f"import tercet\ntry: {call}\nexcept tercet.TercetError as error: print(error)")
    assert MISSING in result.stdout, result.stderr


def test_only_the_extra_requires_torch() -> None:
    path = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text("utf-8"))["project"]
    assert not [name for name in project["dependencies"] if name.startswith("torch")]
    assert [name.partition(">")[0] for name in project["optional-dependencies"]["torch"]] == [
        *("torch", "torchjd")
    ]
