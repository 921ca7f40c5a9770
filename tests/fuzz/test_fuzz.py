"""The fuzz room: damaged files through the real commands, in processes of their own.

The contract is a right answer with exit code 0, or one sentence with exit code 2, within time and
memory, and nothing written elsewhere. `TERCET_FUZZ=N` runs N cases instead of 300.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.data.stream import TextFile
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.recipe import Recipe
from tercet.search.index import Index
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

CASES = int(os.environ.get("TERCET_FUZZ", "300"))
SECONDS = 10.0
BYTES = 2**31
TASK = {
    "data": {"layout": "cs224n-sst", "limit": 12},
    "labels": ["0", "1", "2", "3", "4"],
    "single": {"head": {"kind": "mlp", "hidden": [4]}, "objective": {"kind": "cross-entropy"}},
}
COMMANDS: dict[str, list[str]] = {
    "model": ["predict", "sentiment", "--text", "a dull film", "--model", "model"],
    "export": ["export", "model", "--out", "exported", "--format", "onnx"],
    "onnx": ["predict", "sentiment", "--text", "a dull film", "--model", "onnx"],
    "index": ["search", "index", "a dull film", "--top", "3"],
    "run": ["train", "recipe.toml", "--data", "data", "--out", "run", "--resume"],
    "data": ["predict", "sentiment", "rows/texts.jsonl", "--model", "model"],
    "rows": ["predict", "sentiment", "rows/texts.csv", "--model", "model"],
}
DAMAGED = {"export": "model", "data": "rows"}
SHARES = {"model": 0.35, "export": 0.1, "onnx": 0.15, "index": 0.15, "run": 0.05, "data": 0.1}


VALUES: list[Any] = [
    *(None, True, 0, -1, 1, 3.5, 10**9, 10**30, -(10**18), 1e308, "", "a", "x" * 5000),
    *([], {}, [[]], [{}], {"a": []}, ["a"], [1] * 2000),
    *("../../out", "/tmp/out", "a\x00b", "\ud800", "a.b", float("nan"), float("inf")),
]


@dataclass(frozen=True)
class Damage:
    """kind: what happens; place: where, as a share of the file; value: to what"""

    file: str
    kind: str
    place: float
    value: Any = None

    def apply(self, folder: Path) -> None:
        path = folder / self.file
        if self.kind == "remove":
            path.unlink()
        elif self.kind == "folder":
            path.unlink()
            path.mkdir()
        elif self.kind == "json":
            self._edit(path)
        else:
            path.write_bytes(self._changed(path.read_bytes()))

    def _changed(self, content: bytes) -> bytes:
        at = min(int(self.place * len(content)), max(len(content) - 1, 0))
        if self.kind == "cut":
            return content[:at]
        if self.kind == "insert":
            return content[:at] + bytes([self.value]) * 9 + content[at:]
        if self.kind == "double":
            return content + content[at:]
        changed = bytearray(content)
        if changed:
            changed[at] ^= self.value or 1
        return bytes(changed)

    def _edit(self, path: Path) -> None:
        """Replace one value, key or item of a JSON file."""
        try:
            content = json.loads(path.read_text("utf-8"))
        except (ValueError, OSError):
            return
        places = list(_places(content))
        if not places:
            path.write_text(json.dumps(self.value), "utf-8", "surrogatepass")
            return
        holder, key = places[int(self.place * len(places)) % len(places)]
        holder[key] = self.value
        path.write_text(json.dumps(content), "utf-8", "surrogatepass")


def _places(content: Any, depth: int = 0) -> Any:
    """Every value in lists and objects, but few of a vocabulary's."""
    if isinstance(content, dict | list):
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        for key in keys[: 20 if depth else None]:
            yield content, key
            yield from _places(content[key], depth + 1)


def damages(files: list[str]) -> st.SearchStrategy[list[Damage]]:
    """One or two damages of these files."""
    place = st.floats(0, 1, exclude_max=True)
    file = st.sampled_from(files)
    byte = st.integers(1, 255)
    written = st.sampled_from([name for name in files if name.endswith(".json")] or files)
    return st.lists(
        st.one_of(
            st.builds(Damage, written, st.just("json"), place, st.sampled_from(VALUES)),
            st.builds(Damage, file, st.sampled_from(["flip", "insert"]), place, byte),
            st.builds(Damage, file, st.sampled_from(["cut", "double"]), place),
            st.builds(Damage, file, st.sampled_from(["remove", "folder"]), place),
        ),
        min_size=1,
        max_size=2,
        unique_by=lambda damage: damage.file,
    )


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, sample_data: Path) -> Path:
    """A model, an ONNX folder, an index, an interrupted run and rows, all intact."""
    room = tmp_path_factory.mktemp("room")
    shutil.copytree(sample_data, room / "data")
    tree = {
        "name": "small",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
        "tasks": {"sentiment": TASK},
        "stages": [{"steps": 2, "batch": 4}],
        "checkpoint": {"every": 1, "keep": 2},
    }
    recipe = Recipe.from_tree(tree, where="small")
    (room / "recipe.toml").write_text(recipe.to_toml(), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERCET_CACHE", str(room / "cache"))
        train_recipe(recipe, data=room / "data", out=room / "run", device="cpu", listener=Silent())
    shutil.rmtree(room / "run" / "model")
    (room / "run" / "summary.json").unlink()
    shutil.rmtree(room / "run" / "checkpoints" / "step-00000002")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tasks = {"sentiment": TaskSpec.model_validate(TASK)}
        network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=24, tasks=tasks)
    model = Model(network, Tokenizer.load(tiny_encoder), info, source=str(room / "model"))
    model.save(room / "model")
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(room / "onnx", parts, precision="fp32")
    rows = room / "rows"
    rows.mkdir()
    lines = [json.dumps({"text": f"film {n}", "n": n}) + "\n" for n in range(20)]
    (rows / "texts.jsonl").write_text("".join(lines), "utf-8")
    cells = "".join(f'{n},"a film, and {n} more"\n' for n in range(20))
    (rows / "texts.csv").write_text("id,text\n" + cells, "utf-8")
    Index.build(room / "index", TextFile.open(rows / "texts.csv"), model)
    return room


Run = Callable[[list[str], Path], dict[str, Any]]


@pytest.fixture(scope="module")
def run(room: Path) -> Iterator[Run]:
    environment = os.environ | {"TERCET_CACHE": str(room / "cache"), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("runner.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def ask(arguments: list[str], folder: Path) -> dict[str, Any]:
        stdin.write(json.dumps({"arguments": arguments, "folder": str(folder)}) + "\n")
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer

    yield ask
    stdin.close()
    process.wait(60)


def files_of(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def copy_of(room: Path, to: Path) -> Path:
    """What the commands read, in a folder of its own; the cache and the data are shared."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for name in ("model", "onnx", "index", "run", "rows"):
        shutil.copytree(room / name, to / name)
    shutil.copyfile(room / "recipe.toml", to / "recipe.toml")
    (to / "data").symlink_to(room / "data")
    return to


def fault(found: dict[str, Any], *, written: set[str]) -> str | None:
    """How a command broke the contract; None if it did not."""
    if found["seconds"] > SECONDS:
        return "too slow"
    if found["bytes"] > BYTES:
        return "too large"
    if "Traceback" in found["err"] or found["code"] not in (0, 2):
        return "a traceback or another exit code"
    last = found["err"].splitlines()[-1:]
    if found["code"] == 2 and not (last and last[0].startswith("error: ")):
        return "no sentence"
    if found["code"] == 0 and "nan" in found["out"].lower():
        return "an answer that is not a number"
    return f"wrote {sorted(written)}" if written else None


@pytest.mark.parametrize("target", COMMANDS)
def test_intact_files_are_answered(room: Path, run: Run, tmp_path: Path, target: str) -> None:
    found = run(COMMANDS[target], copy_of(room, tmp_path / "copy"))
    assert found["code"] == 0, found["err"]


@pytest.mark.parametrize("target", COMMANDS)
def test_damaged_files_are_one_sentence(room: Path, run: Run, tmp_path: Path, target: str) -> None:
    damaged = DAMAGED.get(target, target)
    files = files_of(room / damaged)
    outside = files_of(tmp_path)

    @settings(
        max_examples=max(int(CASES * SHARES.get(target, 0.1)), 1),
        deadline=None,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        changes: list[Damage] = data.draw(damages(files))
        copy = copy_of(room, tmp_path / "copy")
        for change in changes:
            change.apply(copy / damaged)
        found = run(COMMANDS[target], copy)
        here = {path.name for path in copy.iterdir()} - {path.name for path in room.iterdir()}
        there = {p for p in files_of(tmp_path) if not p.startswith("copy/")} - set(outside)
        broken = fault(found, written=(here - {"exported"}) | there)
        assert broken is None, f"{broken}: {changes} {found}"

    check()
