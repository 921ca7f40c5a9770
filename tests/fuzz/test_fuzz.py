"""The fuzz room: damaged files through the real commands, damaged bodies through the real server.

The contract of a command is a right answer with exit code 0, or one sentence with exit code 2,
within time and memory, and nothing written elsewhere; that of the server is a 200, or a 4xx with a
sentence. `TERCET_FUZZ=N` runs N cases instead of 300, `TERCET_FUZZ_SEED=S` other ones, and
`TERCET_FUZZ_RECORD=FILE` adds a line with the figures of each target to a file.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, seed, settings
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
SEED = int(os.environ.get("TERCET_FUZZ_SEED", "0"))
RECORD = os.environ.get("TERCET_FUZZ_RECORD")
SECONDS = 10.0
BYTES = 2**31
MLP = {"kind": "mlp", "hidden": [4]}
TASK = {
    "data": {"layout": "cs224n-sst", "limit": 12},
    "labels": ["0", "1", "2", "3", "4"],
    "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
}
PAIRS = {
    "paraphrase": {
        "data": {"layout": "cs224n-quora"},
        "labels": ["different", "paraphrase"],
        "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
    },
    "similarity": {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "bi": {
            "head": {"kind": "cosine", "projection": True},
            "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
        },
    },
}
FEW, ROWS = ["a dull film", "two\u00a0words"], "rows"
BODIES: list[tuple[str, Any]] = [
    ("/v1/embeddings", {"model": "room", "input": FEW, "encoding_format": "base64"}),
    ("/v1/embeddings", {"model": "room", "input": [5, 6, 7], "dimensions": 32, "user": "ada"}),
    ("/embed", {"inputs": FEW, "normalize": False, "truncate": True, "dimensions": None}),
    ("/embed", {"inputs": [[5, 6], [7]], "truncation_direction": "Right"}),
    ("/rerank", {"query": "a film", "texts": FEW, "raw_scores": True, "return_text": True}),
    ("/similarity", {"inputs": {"source_sentence": "a", "sentences": FEW}, "parameters": {}}),
    ("/sentiment", {"texts": FEW, "truncate": False}),
    ("/paraphrase", {"pairs": [FEW, FEW], "mode": "cross"}),
    ("/similarity/pairs", {"pairs": [FEW], "mode": "bi"}),
    ("/predict/paraphrase", {"inputs": [FEW]}),
    ("/predict/sentiment", {"inputs": FEW}),
    ("/search", {"query": FEW, "top": 3, "where": "id > '3'", "rerank": 2}),
]


@dataclass(frozen=True)
class Target:
    """What is damaged, the command that reads it, and its share of the cases.

    folder: in the room
    file: the only one that is damaged; default: any
    """

    folder: str
    command: tuple[str, ...]
    share: float
    file: str | None = None


def predict(model: str, *inputs: str) -> tuple[str, ...]:
    return ("predict", "sentiment", *inputs, "--model", model)


def rows_of(file: str, share: float) -> Target:
    return Target(ROWS, predict("model", f"{ROWS}/{file}"), share, file)


RESUME = ("train", "recipe.toml", "--data", "data", "--out", "run", "--resume")
EMBED = ("embed", "rows/texts.parquet", "--model", "model", "--out", "vectors.npy")
TARGETS = {
    "model": Target("model", predict("model", "--text", "a dull film"), 0.25),
    "export": Target("model", ("export", "model", "--out", "exported", "--format", "onnx"), 0.05),
    "onnx": Target("onnx", predict("onnx", "--text", "a dull film"), 0.15),
    "index": Target("index", ("search", "index", "a dull film", "--top", "3"), 0.15),
    "run": Target("run", RESUME, 0.05),
    "jsonl": rows_of("texts.jsonl", 0.05),
    "csv": rows_of("texts.csv", 0.05),
    "parquet": rows_of("texts.parquet", 0.05),
    "embed": Target(ROWS, EMBED, 0.05, "texts.parquet"),
}
BODIES_SHARE = 0.15
MADE = {"exported", "vectors.npy", "vectors.npy.work"}
"""What commands are asked to write."""


VALUES: list[Any] = [
    *(None, True, 0, -1, 1, 3.5, 10**9, 10**30, -(10**18), 1e308, "", "a", "x" * 5000),
    *([], {}, [[]], [{}], {"a": []}, ["a"], [1] * 2000),
    *("../../out", "../outside/out", "/tmp/out", "a\x00b", "\ud800", "a.b"),
    *(float("nan"), float("inf")),
]
LARGE: list[Any] = [
    *("x" * 3_000_000, "\u00e9 " * 600_000, "a b" * 3000, [""] * 900_000, [0] * 1_500_000),
    *([[]] * 900_000, [{}] * 900_000, [["a", "b"]] * 300_000, [["a"] * 5] * 2000, ["a b"] * 2048),
    *([None] * 700_000, {str(n): n for n in range(200_000)}, [7] * 5000, [[5] * 400] * 2000),
]
"""Values that make a body of nearly the size that the server allows."""


@dataclass(frozen=True)
class Damage:
    """kind: what happens; place: where, as a share of the file; value: to what"""

    file: str
    kind: str
    place: float
    value: Any = None

    def apply(self, folder: Path) -> None:
        path = folder / self.file
        content = path.read_bytes()
        path.unlink()
        if self.kind == "folder":
            path.mkdir()
        elif self.kind != "remove":
            path.write_bytes(self.changed(content))

    def changed(self, content: bytes) -> bytes:
        """The content after the damage."""
        if self.kind == "json":
            return self._edited(content)
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

    def _edited(self, content: bytes) -> bytes:
        """One value of a JSON file is another, or at another key."""
        try:
            tree = json.loads(content)
        except ValueError:
            return content
        places = list(_places(tree))
        if not places:
            tree = self.value
        else:
            holder, key = places[int(self.place * len(places)) % len(places)]
            holder[key] = self.value
        return json.dumps(tree).encode("utf-8", "surrogatepass")


def _places(content: Any, depth: int = 0) -> Any:
    """Every value in lists and objects, but few of a vocabulary's."""
    if isinstance(content, dict | list):
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        for key in keys[: 20 if depth else None]:
            yield content, key
            yield from _places(content[key], depth + 1)


PLACE = st.integers(0, 9999).map(lambda number: number / 10_000)
BYTE = st.integers(1, 255)


def damages(files: list[str]) -> st.SearchStrategy[list[Damage]]:
    """One or two damages of these files."""
    file = st.sampled_from(files)
    written = st.sampled_from([name for name in files if name.endswith(".json")] or files)
    return st.lists(
        st.one_of(
            st.builds(Damage, written, st.just("json"), PLACE, st.sampled_from(VALUES)),
            st.builds(Damage, file, st.sampled_from(["flip", "insert"]), PLACE, BYTE),
            st.builds(Damage, file, st.sampled_from(["cut", "double"]), PLACE),
            st.builds(Damage, file, st.sampled_from(["remove", "folder"]), PLACE),
        ),
        min_size=1,
        max_size=2,
        unique_by=lambda damage: damage.file,
    )


def body_damages() -> st.SearchStrategy[list[Damage]]:
    """One to three damages of a body, of which one may be large."""
    body, value = st.just("body"), st.sampled_from(VALUES)
    small = st.one_of(
        st.builds(Damage, body, st.just("json"), PLACE, value),
        st.builds(Damage, body, st.just("json"), PLACE, value),
        st.builds(Damage, body, st.sampled_from(["flip", "insert"]), PLACE, BYTE),
        st.builds(Damage, body, st.sampled_from(["cut", "double"]), PLACE),
    )
    large = st.builds(Damage, body, st.just("json"), PLACE, st.sampled_from(LARGE))
    return st.one_of(*[st.lists(small, min_size=1, max_size=3)] * 7, large.map(lambda one: [one]))


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, sample_data: Path) -> Path:
    """A model, an ONNX folder, an index, an interrupted run and rows, all intact."""
    room = tmp_path_factory.mktemp("room", numbered=False)
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
        blocks = {"sentiment": TASK, **PAIRS}
        tasks = {name: TaskSpec.model_validate(block) for name, block in blocks.items()}
        network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=24, tasks=tasks)
    model = Model(network, Tokenizer.load(tiny_encoder), info, source=str(room / "model"))
    model.save(room / "model")
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(room / "onnx", parts, precision="fp32")
    rows = room / ROWS
    rows.mkdir()
    lines = [json.dumps({"text": f"film {n}", "n": n}) + "\n" for n in range(20)]
    (rows / "texts.jsonl").write_text("".join(lines), "utf-8")
    cells = "".join(f'{n},"a film, and {n} more"\n' for n in range(20))
    (rows / "texts.csv").write_text("id,text\n" + cells, "utf-8")
    table = {"id": list(range(20)), "text": [f"film {n}" for n in range(20)]}
    pq.write_table(pa.table(table), rows / "texts.parquet")
    Index.build(room / "index", TextFile.open(rows / "texts.csv"), model)
    return room


@dataclass(frozen=True)
class Runner:
    """Runs commands in folders; see runner.py."""

    process: subprocess.Popen[str]

    def __call__(
        self, command: tuple[str, ...], folder: Path, *, fresh: bool = False
    ) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        case = {"arguments": command, "folder": str(folder), "fresh": fresh}
        print(json.dumps(case), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


def environment_of(room: Path) -> dict[str, str]:
    chosen = {"TERCET_CACHE": str(room / "cache"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return os.environ | chosen


@pytest.fixture(scope="module")
def run(room: Path) -> Iterator[Runner]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("runner.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment_of(room),
    )
    yield Runner(process)
    process.communicate(timeout=60)


def files_of(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def copy_of(room: Path, to: Path, folder: str) -> Path:
    """A folder to damage, and links to the others, which are only read."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for path in room.iterdir():
        if path.name != folder:
            (to / path.name).symlink_to(path)
    shutil.copytree(room / folder, to / folder)
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


@dataclass
class Tally:
    """What the cases of a target gave.

    outcomes: by exit code or status
    """

    target: str
    outcomes: dict[int, int] = field(default_factory=dict)
    faults: int = 0
    slowest: float = 0.0
    peak: int = 0

    def note(self, outcome: int, *, seconds: float, peak: int, broken: str | None) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.faults += broken is not None
        self.slowest, self.peak = max(self.slowest, seconds), max(self.peak, peak)

    def run(self, check: Callable[[], None]) -> None:
        """Run all cases, and record them where that is asked for."""
        try:
            check()
        finally:
            if RECORD is not None:
                with Path(RECORD).open("a", encoding="utf-8") as file:
                    print(json.dumps({"seed": SEED, **asdict(self)}), file=file)


def cases(share: float) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """A share of all cases, the same in every run."""

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        chosen = settings(
            max_examples=max(round(CASES * share), 1),
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        return seed(SEED)(chosen(given(st.data())(check)))

    return decorate


@pytest.mark.parametrize("name", TARGETS)
def test_intact_files_are_answered(room: Path, run: Runner, tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    found = run(target.command, copy_of(room, tmp_path / "copy", target.folder), fresh=True)
    assert found["code"] == 0, found["err"]


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_one_sentence(room: Path, run: Runner, tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    files = [target.file] if target.file is not None else files_of(room / target.folder)
    intact = files_of(room)
    here = {path.name for path in room.iterdir()} | MADE
    tally = Tally(name)

    def attempt(changes: list[Damage], *, fresh: bool) -> tuple[str | None, dict[str, Any]]:
        copy = copy_of(room, tmp_path / "copy", target.folder)
        for change in changes:
            change.apply(copy / target.folder)
        found = run(target.command, copy, fresh=fresh)
        beside = {path.name for path in tmp_path.iterdir()} - {"copy"}
        written = {path.name for path in copy.iterdir()} - here
        broken = fault(found, written=written | beside)
        if broken is None or fresh:
            tally.note(found["code"], seconds=found["seconds"], peak=found["bytes"], broken=broken)
        return broken, found

    @cases(target.share)
    def check(data: st.DataObject) -> None:
        changes: list[Damage] = data.draw(damages(files))
        broken, found = attempt(changes, fresh=False)
        if broken is not None:  # what an earlier case left behind is not to blame this one for
            broken, found = attempt(changes, fresh=True)
        assert broken is None, f"{broken}: {changes} {found}"

    tally.run(check)
    assert files_of(room) == intact
    assert not Path("/tmp/out").exists()


@dataclass(frozen=True)
class Served:
    """The real server of the room."""

    process: subprocess.Popen[bytes]
    client: httpx.Client

    def peak(self) -> int:
        """The most bytes of memory that it has taken."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8").splitlines()
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    def ask(self, path: str, body: bytes) -> tuple[int, str | None]:
        """The status of an answer, and how it broke the contract; None if it did not."""
        try:
            answer = self.client.post(path, content=body)
            healthy = self.client.get("/health").status_code == 200
        except httpx.HTTPError as error:
            return 0, f"no answer, or not in time: {error!r}"
        broken = _fault_of(answer)
        if not healthy or self.process.poll() is not None:
            broken = "the server is not well"
        if self.peak() > BYTES:
            broken = "too large"
        return answer.status_code, broken


def _fault_of(answer: httpx.Response) -> str | None:
    try:
        content = json.loads(answer.content, parse_constant=lambda name: pytest.fail(name))
    except ValueError:
        return f"not JSON: {answer.content[:100]!r}"
    if answer.status_code == 200:
        return None
    if not 400 <= answer.status_code < 500:
        return f"{answer.status_code}: {content}"
    sentence = content["error"]
    sentence = sentence if isinstance(sentence, str) else sentence["message"]
    return None if sentence and "\n" not in sentence else f"not a sentence: {sentence!r}"


@pytest.fixture(scope="module")
def served(room: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("served") / "log"
    command = ["-m", "tercet", "serve", "--model", room / "model", "--index", room / "index"]
    with log.open("wb") as writing:
        process = subprocess.Popen(
            [sys.executable, *map(str, command), "--port", "0"],
            stderr=writing,
            env=environment_of(room),
        )
    try:
        while b'"ready"' not in log.read_bytes():
            assert process.poll() is None, log.read_text("utf-8")
        line = next(line for line in log.read_bytes().splitlines() if b'"ready"' in line)
        headers = {"Content-Type": "application/json"}
        with httpx.Client(
            base_url=json.loads(line)["url"], headers=headers, timeout=SECONDS, trust_env=False
        ) as client:
            yield Served(process, client)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_intact_bodies_are_answered(served: Served, path: str, body: Any) -> None:
    answer = served.client.post(path, json=body)
    assert answer.status_code == 200, answer.text


def test_damaged_bodies_are_one_sentence(served: Served) -> None:
    tally = Tally("bodies")

    @cases(BODIES_SHARE)
    def check(data: st.DataObject) -> None:
        path, intact = data.draw(st.sampled_from(BODIES))
        changes: list[Damage] = data.draw(body_damages())
        body = json.dumps(intact).encode()
        for change in changes:
            body = change.changed(body)
        began = time.monotonic()
        status, broken = served.ask(path, body)
        seconds = time.monotonic() - began
        tally.note(status, seconds=seconds, peak=served.peak(), broken=broken)
        assert broken is None, f"{broken}: {path} {changes}"[:2000]

    tally.run(check)
