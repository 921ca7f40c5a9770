"""A mode of a task: a head, an objective, and what happens to vectors and outputs around them."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from tercet.specs.base import Positive, Share, Spec
from tercet.specs.heads import HEADS, Head, SharedSpec
from tercet.specs.objectives import Objective, PredictiveSpec
from tercet.specs.scaling import Scaling


class ModeSpec(Spec):
    shared: SharedSpec | None = None
    """Layers that come first in this head and in every other that names them. Example: `{ name =
    "pairs", hidden = [256] }`."""
    head: Head | None = None
    """Only for objectives that need one. Example: `{ kind = "mlp", hidden = [256] }`."""
    dropout: Share = 0.0
    """Dropout of the vectors that the head reads, before shared layers and features of two vectors.
    Example: `0.3`."""
    objective: Objective
    """The loss, and how outputs become predictions. Example: `{ kind = "cross-entropy" }`."""
    weight: Positive = 1.0
    """Factor on this mode's loss. Example: `0.5`."""
    scaling: Scaling | None = None
    """How outputs are scaled before they become probabilities; default: fitted on the task's
    `held_out` rows, if it has any. Example: `{ temperature = 1.4 }`."""
    thresholds: list[Annotated[float, Field(ge=0.0, le=1.0)]] | None = None
    """With `multi_label`: the least probability at which each label is predicted; default: chosen
    on the task's `held_out` rows, or one half. Example: `[0.4, 0.6, 0.5]`."""
    r_drop: Annotated[float, Field(ge=0.0)] = 0.0
    """R-Drop: rows are encoded twice, under different dropout, and the distance between the two
    predictions is added to the mean of both losses with this factor: half of the paper's alpha,
    which adds to their sum. Example: `1.0`."""

    @property
    def predicts(self) -> bool:
        """Whether it has a head that predicts labels."""
        return self.objective.predicts

    @property
    def prediction(self) -> PredictiveSpec:
        """The objective of a mode that predicts."""
        assert isinstance(self.objective, PredictiveSpec)
        return self.objective

    @property
    def narrows(self) -> bool:
        """Whether its loss can be computed from the first numbers of vectors alone."""
        return self.objective.contrastive or (self.head is not None and self.head.narrows)

    @property
    def reads_vectors(self) -> bool:
        """Whether its head reads nothing but vectors that may have been stored, one per text or
        jointly encoded pair; other heads need the tokens."""
        return self.head is not None and self.head.reads == "vectors"

    def with_hidden(self, hidden: list[int]) -> Self:
        """The same with hidden layers of other widths, where its head or shared layers have any."""
        head = self.head and self.head.with_hidden(hidden)
        shared = self.shared and self.shared.model_copy(update={"hidden": hidden})
        return self.model_copy(update={"head": head, "shared": shared})

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        kind = self.objective.kind
        if not self.predicts and self.head is not None:
            raise ValueError(f"objective `{kind}` takes no `head`")
        if self.predicts and self.head is None:
            raise ValueError(f"objective `{kind}` needs a `head`")
        if not self.predicts and self.r_drop > 0.0:
            raise ValueError(f"`r_drop` compares predictions, and objective `{kind}` has none")
        if self.shared is not None and (self.head is None or not self.head.takes_shared):
            fitting = ", ".join(f"`{name}`" for name in HEADS if HEADS[name].takes_shared)
            raise ValueError(f"`shared` layers fit heads of kind {fitting} only")
        if self.dropout > 0.0 and (self.head is None or self.head.reads == "hidden-states"):
            raise ValueError("`dropout` of a mode needs a head that reads vectors")
        return self
