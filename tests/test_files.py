"""A file or folder is replaced whole or stays as it was, whatever happens in between."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tercet.errors import TercetError
from tercet.files import (
    cache_folder,
    exclusive,
    is_temporary,
    read_json,
    read_json_object,
    release,
    replace_file,
    replace_folder,
    sha256_of,
    write_bytes,
    write_json,
    write_text,
)

Replace = Callable[[Path], AbstractContextManager[Path]]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def put(path: Path, content: str) -> None:
    """A file, or a folder with one, that holds this."""
    if path.suffix:
        path.write_text(content, "utf-8")
    else:
        path.mkdir(exist_ok=True)
        (path / "inner.txt").write_text(content, "utf-8")


def content_of(path: Path) -> str:
    return (path if path.suffix else path / "inner.txt").read_text("utf-8")


CASES = pytest.mark.parametrize(
    ("replace", "name"), [(replace_file, "a.txt"), (replace_folder, "a")], ids=["file", "folder"]
)


@CASES
@pytest.mark.parametrize("existing", [False, True])
def test_the_new_content_replaces_the_old(
    tmp_path: Path, replace: Replace, name: str, existing: bool
) -> None:
    path = tmp_path / name
    if existing:
        put(path, "old")
    if path.is_dir():
        (path / "only-in-the-old").touch()
    with replace(path) as writing:
        assert writing.name == name
        put(writing, "new")
        assert content_of(path) == "old" if existing else not path.exists()
    assert content_of(path) == "new"
    assert names(tmp_path) == [name]
    assert names(path) == ["inner.txt"] if path.is_dir() else True


@CASES
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_after_a_failure_the_old_content_is_there(
    tmp_path: Path, replace: Replace, name: str, failure: BaseException
) -> None:
    def write() -> None:
        with replace(tmp_path / name) as writing:
            put(writing, "half")
            raise failure

    put(tmp_path / name, "old")
    with pytest.raises(type(failure)):
        write()
    assert content_of(tmp_path / name) == "old"
    assert names(tmp_path) == [name]


@pytest.mark.parametrize(
    ("replace", "name", "where", "call"),
    [
        (replace_file, "a.txt", os, "fsync"),
        (replace_file, "a.txt", Path, "replace"),
        (replace_folder, "a", os, "fsync"),
        (replace_folder, "a", Path, "rename"),
    ],
)
def test_after_a_failure_to_finish_the_old_content_is_there(
    tmp_path: Path,
    replace: Replace,
    name: str,
    where: Any,
    call: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    put(tmp_path / name, "old")
    monkeypatch.setattr(where, call, fail)
    with pytest.raises(OSError, match="Input/output"), replace(tmp_path / name) as writing:
        put(writing, "new")
    assert content_of(tmp_path / name) == "old"
    assert names(tmp_path) == [name]


def test_the_old_folder_returns_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "a", "old")
    rename = Path.rename

    def fail_once(self: Path, target: Path) -> Path:
        if is_temporary(self.parent):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(OSError, match="Input/output"), replace_folder(tmp_path / "a") as writing:
        put(writing, "new")
    assert content_of(tmp_path / "a") == "old"
    assert names(tmp_path) == ["a"]


WRITER = """
import sys, time
from pathlib import Path
from tercet.files import replace_file, replace_folder
path = Path(sys.argv[1])
with (replace_file if path.suffix else replace_folder)(path) as writing:
    (writing if path.suffix else writing / "inner.txt").write_text("half", "utf-8")
    print("writing", flush=True)
    time.sleep(60)
"""


@CASES
def test_a_kill_leaves_the_old_content_and_the_next_writer_tidies_up(
    tmp_path: Path, replace: Replace, name: str
) -> None:
    put(tmp_path / name, "old")
    command = [sys.executable, "-c", WRITER, str(tmp_path / name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        temporary = [path for path in tmp_path.iterdir() if is_temporary(path)]
        assert len(temporary) == 1
        with replace(tmp_path / f"other-{name}") as writing:
            put(writing, "new")
        assert temporary[0].is_dir(), "its writer is alive"
        process.send_signal(signal.SIGKILL)
    assert content_of(tmp_path / name) == "old"
    assert temporary[0].is_dir()
    with replace(tmp_path / name) as writing:
        put(writing, "new")
    assert content_of(tmp_path / name) == "new"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_a_kill_between_two_renames_left_goes_with_the_next_folder(tmp_path: Path) -> None:
    for name in ("a", "a.b"):
        (tmp_path / f".{name}.abcd0123.tercet-old").mkdir()
    with replace_folder(tmp_path / "a") as writing:
        assert (tmp_path / ".a.abcd0123.tercet-old").is_dir()
        put(writing, "new")
    assert names(tmp_path) == [".a.b.abcd0123.tercet-old", "a"]


@CASES
def test_it_works_without_locks(
    tmp_path: Path, replace: Replace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(self: FileLock) -> None:
        raise NotImplementedError

    monkeypatch.setattr(FileLock, "acquire", no_locks)
    other = tmp_path / ".b.abcd.tercet-tmp"
    other.mkdir()
    with replace(tmp_path / name) as writing:
        put(writing, "new")
    assert content_of(tmp_path / name) == "new"
    assert other.is_dir(), "it may be in use"


def test_files_folders_and_the_parent_are_synced_before_and_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def record(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append((path.name, (tmp_path / "a").exists()))

    monkeypatch.setattr(os, "fsync", record)
    with replace_folder(tmp_path / "a") as writing:
        (writing / "b").mkdir()
        (writing / "b" / "c.txt").touch()
        (writing / "d.txt").touch()
    before = [name for name, renamed in synced if not renamed]
    assert sorted(before) == ["a", "b", "c.txt", "d.txt"]
    assert before[-1] == "a"
    assert synced[-1] == (tmp_path.name, True)
    synced.clear()
    write_text(tmp_path / "e.txt", "x")
    assert [name for name, _ in synced] == ["e.txt", tmp_path.name]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
def test_a_disk_that_cannot_sync_folders_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().is_dir():
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    if code == errno.EINVAL:
        write_text(tmp_path / "a.txt", "x")
    else:
        with pytest.raises(OSError, match="Input/output"):
            write_text(tmp_path / "a.txt", "x")


def test_without_overwrite_a_folder_with_content_stays(tmp_path: Path) -> None:
    put(tmp_path / "a", "old")
    (tmp_path / "empty").mkdir()
    put(tmp_path / "file.txt", "old")
    for name in ("a", "file.txt"):
        with (
            pytest.raises(FileExistsError) as caught,
            replace_folder(tmp_path / name, overwrite=False) as writing,
        ):
            (writing / "inner.txt").write_text("new", "utf-8")
        assert caught.value.filename == str(tmp_path / name)
        assert content_of(tmp_path / name) == "old"
    with replace_folder(tmp_path / "empty", overwrite=False) as writing:
        put(writing, "new")
    assert content_of(tmp_path / "empty") == "new"
    assert names(tmp_path) == ["a", "empty", "file.txt"]


def test_errors_name_the_path_and_never_the_temporary_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_text(tmp_path / "nowhere" / "a.txt", "x")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as second:
        write_text(tmp_path / "folder", "x")
    assert second.value.filename == str(tmp_path / "folder")
    put(tmp_path / "file.txt", "old")
    with pytest.raises(NotADirectoryError), replace_folder(tmp_path / "file.txt"):
        pass
    assert names(tmp_path) == ["file.txt", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@CASES
def test_a_read_only_folder_is_an_error(tmp_path: Path, replace: Replace, name: str) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError) as caught, replace(tmp_path / name):
            pass
        assert caught.value.filename == str(tmp_path / name)
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_refuses_new_files_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, mode: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(PermissionError) as caught:
        write_text(tmp_path / "a.txt", "x")
    assert caught.value.filename == str(tmp_path / "a.txt")


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a").touch()
    write_text(tmp_path / "b", "x")
    with replace_folder(tmp_path / "c"):
        pass
    assert (tmp_path / "b").stat().st_mode == (plain / "a").stat().st_mode
    assert (tmp_path / "c").stat().st_mode == plain.stat().st_mode


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    content = {"b": [1, None, 0.1], "a": "naïve 你好"}
    write_json(tmp_path / "a.json", content)
    assert read_json(tmp_path / "a.json") == read_json_object(tmp_path / "a.json") == content
    assert "你好" in (tmp_path / "a.json").read_text("utf-8")
    write_bytes(tmp_path / "b", b"\x00\r\n")
    assert (tmp_path / "b").read_bytes() == b"\x00\r\n"
    assert sha256_of(tmp_path / "b") == hashlib.sha256(b"\x00\r\n").hexdigest()
    write_text(tmp_path / "c", "é\r\n")
    assert (tmp_path / "c").read_bytes() == "é\r\n".encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        (b"{", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"\xff\xfe{", "is not a text file in UTF-8"),
        (b"[1]", "holds a JSON list; it should be an object"),
    ],
)
def test_what_is_not_a_json_object_is_an_error(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TercetError, match=message) as caught:
        read_json_object(path)
    assert str(caught.value).startswith(str(path))
    with pytest.raises(TercetError, match="cannot be read"):
        read_json(tmp_path)


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_CACHE", "/somewhere")
    assert cache_folder("tables") == Path("/somewhere/tables")
    monkeypatch.delenv("TERCET_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "tercet"


def test_a_document_stays_valid_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for number in range(20):
        write_json(path, {"number": number})
        assert json.loads(path.read_text("utf-8")) == {"number": number}
    assert names(tmp_path) == ["a.json"]


@pytest.mark.skipif(os.name == "nt", reason="nobody waits on Windows")
def test_a_lock_is_taken_though_its_folder_is_removed_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mkdir` finds the folder of another process, which is gone when it looks at it again."""
    make, tries = Path.mkdir, 0

    def removed_at_first(self: Path, *arguments: Any, **options: Any) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise FileExistsError(errno.EEXIST, "File exists", str(self))
        make(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", removed_at_first)
    with exclusive(tmp_path / "work" / ".lock"):
        assert names(tmp_path / "work") == [".lock"]
    assert tries == 2


@pytest.mark.skipif(os.name == "nt", reason="nobody waits on Windows")
@pytest.mark.parametrize("kind", ["file", "link to nothing"])
def test_a_lock_in_what_is_not_a_folder_is_an_error(tmp_path: Path, kind: str) -> None:
    taken = tmp_path / "work"
    if kind == "file":
        taken.write_text("mine", "utf-8")
    else:
        taken.symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError), exclusive(taken / ".lock"):
        pass


@CASES
def test_windows_syncs_files_that_are_open_for_writing(
    tmp_path: Path, replace: Replace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its `fsync` refuses others, and so every write failed."""
    fcntl = pytest.importorskip("fcntl")
    sync, refused = os.fsync, OSError(errno.EBADF, "Bad file descriptor")

    def strict(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise refused
        sync(handle)

    monkeypatch.setattr(os, "fsync", strict)
    with pytest.raises(OSError, match="Bad file descriptor"), replace(tmp_path / name) as writing:
        put(writing, "new")
    with monkeypatch.context() as windows, replace(tmp_path / name) as writing:
        put(writing, "new")
        windows.setattr(sys, "platform", "win32")
    assert content_of(tmp_path / name) == "new"


def test_a_lock_is_released_where_open_files_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, "The process cannot access the file")

    file = tmp_path / ".lock"
    lock = FileLock(file)
    lock.acquire()
    with monkeypatch.context() as windows:
        windows.setattr(Path, "unlink", refuse)
        release(lock)
    assert not lock.is_locked
    release(lock)  # which changes nothing
    with FileLock(file, timeout=0) as again:
        release(again)
    assert not file.exists()
