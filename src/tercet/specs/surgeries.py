"""Gradient surgeries: how the gradients of tasks that conflict are combined. Each is declared here,
once."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from tercet.errors import TercetError
from tercet.specs.registry import Registry

SURGERIES: Registry[SurgerySpec] = Registry("surgery")


@dataclass(frozen=True, slots=True)
class SurgerySpec:
    """One kind.

    implementation: `build()` makes a torch module from the Gram matrix of the tasks' gradients
        [tasks, tasks] to the weights [tasks] with which these are summed
    """

    registry: ClassVar[Registry[SurgerySpec]] = SURGERIES
    kind: str
    description: str
    implementation: Any

    def __post_init__(self) -> None:
        try:
            if callable(self.implementation):
                signature(self.implementation).bind()
        except TypeError as error:
            raise TercetError(
                f"surgery `{self.kind}`: `implementation` is called without arguments and gives a "
                "torch module, which is then called with the Gram matrix."
            ) from error

    def kind_name(self) -> str:
        return self.kind


for _kind, _description, _implementation in (
    ("pcgrad", "PCGrad (Yu et al., 2020): takes out what conflicts, pair by pair", "pcgrad:PCGrad"),
    ("pcgrad-mean", "PCGrad with the mean instead of the sum", "pcgrad:MeanPCGrad"),
    ("gradvac", "GradVac (Wang et al., 2021): adapts to usual cosines", "torchjd:gradvac"),
    ("upgrad", "UPGrad (Quinton and Rey, 2024): projects onto the dual cone", "torchjd:upgrad"),
    ("cagrad", "CAGrad (Liu et al., 2021): conflict-averse, near the mean", "torchjd:cagrad"),
    ("mgda", "MGDA (Désidéri, 2012): the shortest convex combination", "torchjd:mgda"),
    ("aligned-mtl", "Aligned-MTL (Senushkin et al., 2023)", "torchjd:aligned_mtl"),
    ("imtl-g", "IMTL-G (Liu et al., 2021): equal projections on all tasks", "torchjd:imtl_g"),
    ("dualproj", "DualProj (Lopez-Paz and Ranzato, 2017): projects the mean", "torchjd:dualproj"),
):
    SURGERIES.add(
        _kind, SurgerySpec(_kind, _description, f"tercet.training.surgeries.{_implementation}")
    )


def _known(kind: str) -> str:
    if kind not in SURGERIES:
        raise ValueError(SURGERIES.unknown(kind).removesuffix("."))
    return kind


Surgery = Annotated[str, AfterValidator(_known)]
