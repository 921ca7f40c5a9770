"""The network: one encoder, and the heads and objectives that a recipe's tasks ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.heads import HEADS, feature_width
from tercet.nn.masked_words import MaskedWordsHead
from tercet.nn.pooling import pool
from tercet.nn.shared import SharedLayers
from tercet.nn.swapped import swapped
from tercet.objectives import (
    OBJECTIVES,
    MaskedLanguageModel,
    PredictiveObjective,
    TeacherVectors,
    VectorObjective,
)
from tercet.specs import (
    CONTRASTIVE,
    MASKED_WORDS,
    DensePairHeadSpec,
    FeatureHeadSpec,
    HeadSpec,
    LayersHeadSpec,
    MaskedLanguageModelSpec,
    Mode,
    ModeSpec,
    ObjectiveSpec,
    Pooling,
    SharedSpec,
    TaskSpec,
    TeacherVectorsSpec,
)


class Network(nn.Module):
    """Tokens to vectors, and vectors to the predictions of every task and mode."""

    def __init__(
        self, encoder: Encoder, *, pooling: Pooling, tasks: Mapping[str, TaskSpec]
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.objectives: dict[tuple[str, Mode], PredictiveObjective] = {}
        self.contrastive_objectives: dict[tuple[str, Mode], VectorObjective] = {}
        self.masked_objectives: dict[tuple[str, Mode], MaskedLanguageModel] = {}
        self.heads = nn.ModuleDict()
        self.shared = nn.ModuleDict()
        self.teacher_objectives: dict[tuple[str, Mode], TeacherVectors] = {}
        self._specs: dict[tuple[str, Mode], ModeSpec] = {}
        self._owners: dict[str, str] = {}
        for name, task in tasks.items():
            if hasattr(self.heads, name):
                raise TercetError(f"no task can be called `{name}`: torch keeps that name.")
            if task.like is None:
                self.heads[name] = nn.ModuleDict()
            else:
                self._owners[name] = task.like
            for mode, spec in task.modes.items():
                self._add_mode(name, mode, spec, task)

    def _add_mode(self, name: str, mode: Mode, spec: ModeSpec, task: TaskSpec) -> None:
        self._specs[name, mode] = spec
        if isinstance(spec.objective, MaskedLanguageModelSpec):
            self.masked_objectives[name, mode] = MaskedLanguageModel(share=spec.objective.share)
            self._add_masked_words()
            return
        if isinstance(spec.objective, TeacherVectorsSpec):
            self.teacher_objectives[name, mode] = TeacherVectors(distance=spec.objective.distance)
            return
        if spec.head is None:
            self.contrastive_objectives[name, mode] = build_contrastive_objective(spec.objective)
            return
        objective = build_objective(spec.objective, task)
        self.objectives[name, mode] = objective
        if task.like is not None:
            return
        options = spec.head.model_dump(exclude={"kind"})
        if spec.head.kind == "layers":
            options["config"] = self.encoder.config
        if spec.shared is not None:
            self._add_shared(spec.shared, spec.head)
            options["shared"] = spec.shared.hidden[-1]
        head = HEADS[spec.head.kind](
            width=self.encoder.config.width, outputs=objective.outputs, **options
        )
        self.heads_of(name)[mode] = head

    def _add_masked_words(self) -> None:
        config = self.encoder.config
        if MASKED_WORDS not in self.shared:
            self.shared[MASKED_WORDS] = MaskedWordsHead(
                width=config.width, vocabulary=config.vocabulary, norm_eps=config.norm_eps
            )

    def _add_shared(self, spec: SharedSpec, head: HeadSpec) -> None:
        """Make shared layers when the first head names them."""
        width = self.encoder.config.width
        if isinstance(head, FeatureHeadSpec):
            width = feature_width(head.features, width)
        if spec.name not in self.shared:
            self.shared[spec.name] = SharedLayers(width=width, **spec.model_dump(exclude={"name"}))
        if (first := self.shared[spec.name].width) != width:
            raise TercetError(
                f"shared layers `{spec.name}` read {first} numbers in one head and {width} in "
                "another; give heads that read as many, or layers of their own."
            )

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    def owner(self, task: str) -> str:
        """The task whose heads a task trains: itself, or the one that it is like."""
        return self._owners.get(task, task)

    def heads_of(self, task: str) -> nn.ModuleDict:
        """The heads that a task trains, by mode."""
        heads = self.heads[self.owner(task)]
        assert isinstance(heads, nn.ModuleDict)
        return heads

    def head(self, task: str, mode: Mode) -> Callable[..., Tensor]:
        """The head of a task in one mode, with the shared layers that stand in it."""
        heads = self.heads_of(task)
        shared = self._specs[task, mode].shared
        if shared is None:
            return heads[mode]
        return partial(heads[mode], shared=self.shared[shared.name])

    def reads_vectors(self, task: str, mode: Mode) -> bool:
        """Whether a head reads nothing but vectors that may have been stored, one a text or pair;
        others need the tokens."""
        return not isinstance(self._specs[task, mode].head, DensePairHeadSpec | LayersHeadSpec)

    def shared_by(self, task: str) -> set[str]:
        """Names of the shared layers that a task's modes go through."""
        names = {
            spec.shared.name
            for (name, _), spec in self._specs.items()
            if name == task and spec.shared is not None
        }
        masks = any(name == task for name, _ in self.masked_objectives)
        return names | {MASKED_WORDS} if masks else names

    def head_state(self) -> dict[str, Tensor]:
        """All tensors but the encoder's: `TASK.MODE...` of heads, `shared/NAME...` of shared."""
        shared = {f"shared/{name}": value for name, value in self.shared.state_dict().items()}
        return {**self.heads.state_dict(), **shared}

    def load_head_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `head_state` gave."""
        shared = {
            name.removeprefix("shared/"): value
            for name, value in tensors.items()
            if name.startswith("shared/")
        }
        self.shared.load_state_dict(shared)
        self.heads.load_state_dict({k: v for k, v in tensors.items() if "/" not in k})

    def vectors(self, tokens: DeviceTokens) -> Tensor:
        """One vector a sentence or joined pair, [tokens.used, width]."""
        hidden = self.encoder(tokens)
        pooled = pool(hidden, tokens, how=self.pooling, pooler=self.encoder.pooler)
        return pooled[: tokens.used]

    def columns(self, tokens: DeviceTokens, *, rows: int) -> tuple[Tensor, ...]:
        """Vectors of sentences that lie column after column, as one [rows, width] a column."""
        vectors = self.vectors(tokens)
        return vectors.view(-1, rows, vectors.shape[-1]).unbind(0)

    def outputs(self, task: str, mode: Mode, tokens: DeviceTokens) -> Tensor:
        """What the head gives before it becomes a prediction, [rows, outputs].

        tokens: the sentences (single), the joined pairs (cross), or all first and then all second
        sentences (bi)
        """
        if mode == "bi":
            u, v = self.columns(tokens, rows=tokens.used // 2)
            return self.compare(task, u, v)
        head = self._specs[task, mode].head
        if isinstance(head, LayersHeadSpec):
            return self.head(task, mode)(self.encoder(tokens), tokens)
        if isinstance(head, DensePairHeadSpec):
            back = swapped(tokens, separators=self.encoder.config.architecture.pair_separators)
            return self.head(task, mode)(self.vectors(tokens), self.vectors(back))
        return self.head(task, mode)(self.vectors(tokens))

    def compare(self, task: str, u: Tensor, v: Tensor) -> Tensor:
        """The bi head's output for vectors that may have been stored, [rows, outputs]."""
        return self.head(task, "bi")(u, v)

    def masked_words(self, tokens: DeviceTokens, places: Tensor) -> Tensor:
        """Logits of the words at some places of the tokens, [places, vocabulary]."""
        hidden = self.encoder(tokens).index_select(0, places)
        logits: Tensor = self.shared[MASKED_WORDS](hidden, self.encoder.embeddings.words.weight)
        return logits

    def predict(self, task: str, mode: Mode, raw: Tensor) -> Tensor:
        """Outputs to probabilities [rows, classes] or [rows], or to grades [rows]."""
        return self.objectives[task, mode].predict(raw)


def build_objective(spec: ObjectiveSpec, task: TaskSpec) -> PredictiveObjective:
    """The objective of a head, told the task's classes or range of grades."""
    objective: PredictiveObjective = OBJECTIVES[spec.kind](
        classes=len(task.labels) if task.labels is not None else None,
        label_range=task.range,
        **spec.model_dump(exclude={"kind"}),
    )
    return objective


def build_contrastive_objective(spec: ObjectiveSpec) -> VectorObjective:
    """The objective of a task without head."""
    assert isinstance(spec, CONTRASTIVE)
    objective: VectorObjective = OBJECTIVES[spec.kind](**spec.model_dump(exclude={"kind"}))
    return objective
