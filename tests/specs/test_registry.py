from __future__ import annotations

from typing import Literal

import pytest

import tercet
from tercet.errors import TercetError
from tercet.specs import HEADS, HeadSpec
from tercet.specs.registry import Registry, resolve


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


@pytest.mark.parametrize("kind", HEADS.names())
def test_every_head_is_complete(kind: str) -> None:
    head = HEADS[kind]
    assert head.modes
    assert head.__doc__
    assert issubclass(resolve(head.implementation), object)
