from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

import tercet
from tercet.errors import TercetError
from tercet.plugins import load_plugin
from tercet.specs import HEADS, HeadSpec
from tercet.specs.registry import Registry, resolve
from tercet.specs.surgeries import SURGERIES, SurgerySpec


def test_an_unknown_kind_names_the_known_ones() -> None:
    registry: Registry[int] = Registry("fruit")
    registry.add("apple", 1)
    registry.add("pear", 2)
    assert registry["pear"] == 2
    assert registry.names() == ["apple", "pear"]
    with pytest.raises(TercetError, match=r"Unknown fruit `aple` \(did you mean `apple`\?\)"):
        registry["aple"]


def test_a_kind_is_taken_once_but_a_file_may_define_its_own_again() -> None:
    registry: Registry[int] = Registry("fruit")
    registry.add("apple", 1)
    with pytest.raises(TercetError, match="There is a fruit `apple` already"):
        registry.add("apple", 2, plugin="mine.py")
    registry.add("plum", 3, plugin="mine.py")
    registry.add("plum", 4, plugin="mine.py")
    assert registry["plum"] == 4
    assert (registry.plugin("plum"), registry.plugin("apple")) == ("mine.py", None)
    with pytest.raises(TercetError, match="already"):
        registry.add("plum", 5, plugin="other.py")


def test_an_implementation_is_imported_when_it_is_used() -> None:
    assert resolve("tercet.errors:TercetError") is TercetError
    assert resolve(len) is len


def test_what_is_not_a_part_is_refused() -> None:
    with pytest.raises(TercetError, match="cannot be registered"):
        tercet.register(42)


def test_register_takes_a_class_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HEADS, "_parts", dict(HEADS._parts))
    monkeypatch.setattr(HEADS, "_plugins", {})

    @tercet.register
    class OwnSpec(HeadSpec):
        """A head."""

        modes = ("single",)
        kind: Literal["own"] = "own"

    assert HEADS["own"] is OwnSpec
    assert HEADS.plugin("own") == "test_registry.py"


def test_a_record_is_of_the_file_that_registers_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SURGERIES, "_parts", dict(SURGERIES._parts))
    monkeypatch.setattr(SURGERIES, "_plugins", {})
    monkeypatch.setattr("tercet.plugins._loaded", {})
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(
            "import tercet, torch\nfrom tercet.specs.surgeries import SurgerySpec\n"
            "tercet.register(SurgerySpec('own', 'as it is', torch.nn.Identity))\n",
            "utf-8",
        )
    load_plugin(tmp_path / "first.py")
    assert SURGERIES.plugin("own") == "first.py"
    # Another file's would replace it silently.
    with pytest.raises(TercetError, match="There is a surgery `own` already"):
        load_plugin(tmp_path / "second.py")


def test_a_surgery_that_is_a_function_of_the_gram_matrix_is_refused() -> None:
    with pytest.raises(TercetError, match="surgery `own`: `implementation` is called without"):
        SurgerySpec("own", "each alone", lambda gramian: gramian.diagonal())


@pytest.mark.parametrize("kind", HEADS.names())
def test_every_head_is_complete(kind: str) -> None:
    head = HEADS[kind]
    assert head.modes
    assert head.__doc__
    assert issubclass(resolve(head.implementation), object)
