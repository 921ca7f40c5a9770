"""Blocks of a recipe whose keys depend on their `kind`: heads, objectives and schedules.

A kind is declared by one class here, which holds its keys and all facts that the rest of the
package asks for, and is implemented elsewhere, so that recipes are read without torch.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, TypeVar

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from tercet.specs.base import Interval, Metric, Spec
from tercet.specs.registry import Registry, resolve

P = TypeVar("P", bound=type["Part"])


class Part(Spec):
    """One kind of a sort of part; subclasses are added to its registry by `declare`."""

    kind: str
    registry: ClassVar[Registry[Any]]
    implementation: ClassVar[Any] = None
    """What does the work, or `module:name` where that imports torch."""

    def build(self, **arguments: Any) -> Any:
        """The implementation, made with the keys of this block and further arguments."""
        return resolve(self.implementation)(**arguments, **self.model_dump(exclude={"kind"}))

    @classmethod
    def kind_name(cls) -> str:
        return str(cls.model_fields["kind"].default)


def declare(part: P) -> P:
    """Add a class to the registry of its sort."""
    part.registry.add(part.kind_name(), part)
    return part


def of_kind(registry: Registry[type[Part]], *, default: str | None = None) -> BeforeValidator:
    """Reads a block as the class that its `kind` names."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = value.get("kind", default)
        if not isinstance(kind, str):
            raise PydanticCustomError("kind_missing", "needs a `kind`")
        if kind not in registry:
            raise PydanticCustomError("kind_unknown", "{error}", {"error": registry.unknown(kind)})
        # Through JSON, where strictness still lets a list be a tuple and 1 be 1.0.
        return registry[kind].model_validate_json(json.dumps(value), strict=True)

    return BeforeValidator(read)


class LabelSpace(Spec):
    """What the labels of a task are: classes, numbered from 0, or grades in a range."""

    classes: int | None = None
    range: Interval | None = None
    multi_label: bool = False
    """Whether a row may have any number of the classes, none included."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What predictions of such labels are usually measured by."""
        if self.classes is None:
            return ("pearson", "spearman")
        if self.multi_label:
            return ("micro-f1", "macro-f1", "exact-match")
        return ("accuracy", "macro-f1", "f1") if self.classes == 2 else ("accuracy", "macro-f1")
