from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tercet.errors import TercetError
from tercet.serve.keys import Keys


def test_without_keys_everybody_may_ask() -> None:
    assert Keys(file=None, listed=None).admit(None)


def test_keys_come_from_a_file_and_from_a_list(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("first # of Ada\n\n# nobody\n second \n", "utf-8")
    keys = Keys(file=file, listed="third,,fourth ")
    for key in (b"first", b"second", b"third", b"fourth"):
        assert keys.admit(b"Bearer " + key)
        assert keys.admit(b"bearer " + key)
    for wrong in (None, b"", b"Bearer ", b"first", b"Bearer firs", b"Basic first", b"Bearer \xff"):
        assert not keys.admit(wrong)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    file = tmp_path / "keys"
    file.write_bytes(b"\xef\xbb\xbffirst\r\nsecond\r\n")
    keys = Keys(file=file, listed=None)
    assert keys.admit(b"Bearer first")
    assert keys.admit(b"Bearer second")


def test_the_holder_of_a_key_is_one_client_however_it_is_written(serve: Any) -> None:
    """Else one holder could take the shares of many."""
    gate = serve(keys=Keys(file=None, listed="right,other")).gate
    written = (b"Bearer right", b"bearer right", b"BEARER   right", b"Bearer right ")
    callers = {gate._caller({}, header) for header in written}
    assert len(callers) == 1
    assert gate._caller({}, b"Bearer other") not in callers


def test_reloading_takes_new_keys_and_drops_old_ones(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("old", "utf-8")
    keys = Keys(file=file, listed=None)
    file.write_text("new", "utf-8")
    assert keys.admit(b"Bearer old")
    keys.reload()
    assert keys.admit(b"Bearer new")
    assert not keys.admit(b"Bearer old")


@pytest.mark.parametrize("content", [None, "", "# only a comment\n"])
def test_a_file_without_keys_is_a_mistake_and_the_old_ones_stay(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "keys"
    file.write_text("old", "utf-8")
    keys = Keys(file=file, listed=None)
    if content is None:
        file.unlink()
    else:
        file.write_text(content, "utf-8")
    with pytest.raises(TercetError, match="keys"):
        keys.reload()
    assert keys.admit(b"Bearer old")
    with pytest.raises(TercetError, match="keys"):
        Keys(file=file, listed=None)


def test_only_what_everyone_may_read_is_open(serve: Any) -> None:
    server = serve(keys=Keys(file=None, listed="right"))
    for path in ("/health", "/health/live", "/health/ready", "/docs", "/openapi.json"):
        assert server.get(path).status_code == 200, path
    for path in ("/info", "/metrics", "/v1/models", "/nothing", "/web", "/healthy"):
        assert server.get(path).status_code == 401, path
    result = server.post("/sentiment", {"texts": "a"})
    assert result.status_code == 401
    assert result.headers["www-authenticate"] == "Bearer"
    assert "missing" in result.json()["error"]
    wrong = server.post("/sentiment", {"texts": "a"}, headers={"Authorization": "Bearer wrong"})
    assert wrong.status_code == 401
    assert "wrong" not in wrong.text
    right = {"Authorization": "Bearer right"}
    assert server.post("/sentiment", {"texts": "a"}, headers=right).status_code == 200
