"""The network: one encoder, and the heads and objectives of a recipe's tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.errors import TercetError
from tercet.heads.masked_words import MaskedWordsHead
from tercet.heads.shared import SharedLayers
from tercet.network.one_pass import OnePass
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.pooling import pool
from tercet.nn.side import SideWeights
from tercet.nn.swapped import swapped
from tercet.objectives.base import (
    ContrastiveObjective,
    LabelContrastiveObjective,
    PredictiveObjective,
)
from tercet.objectives.masked_language_model import MaskedLanguageModel
from tercet.objectives.teacher_vectors import TeacherVectors
from tercet.specs import (
    MASKED_WORDS,
    HeadSpec,
    MaskedLanguageModelSpec,
    Mode,
    ModeSpec,
    Pooling,
    SharedSpec,
    TaskSpec,
    TeacherVectorsSpec,
    side_of,
)

Key = tuple[str, Mode]
POOLER = "pooler"
DEPTHS = "depths/"
"""What the names of tensors of lesser depths begin with in `head_state`."""


class Network(nn.Module):
    """Tokens to vectors, and vectors to the outputs of every task and mode.

    It may answer at several depths: after fewer layers, with heads of their own. All calls are for
    the full depth; `at` gives the network of another.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        pooling: Pooling,
        tasks: Mapping[str, TaskSpec],
        depths: Mapping[int, Mapping[str, TaskSpec]] | None = None,
    ) -> None:
        """depths: by number of layers, the tasks with the heads that they have there"""
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.tasks = dict(tasks)
        self.heads = nn.ModuleDict()
        self.shared = nn.ModuleDict()
        self.sides = nn.ModuleDict()
        self.objectives: dict[Key, PredictiveObjective] = {}
        self.contrastive_objectives: dict[Key, ContrastiveObjective] = {}
        self.label_contrastive_objectives: dict[Key, LabelContrastiveObjective] = {}
        self.masked_objectives: dict[Key, MaskedLanguageModel] = {}
        self.teacher_objectives: dict[Key, TeacherVectors] = {}
        for name, task in tasks.items():
            if hasattr(self.heads, name):
                raise TercetError(f"A task cannot be called `{name}`: torch reserves that name.")
            if task.like is None:
                self.heads[name] = nn.ModuleDict()
                if task.side is not None:
                    self.sides[name] = SideWeights(encoder.config, **dict(task.side))
            for mode, spec in task.modes.items():
                self._add_mode(name, mode, spec, task)
        self.depths = nn.ModuleDict()
        self._tasks_at = {depth: dict(own) for depth, own in (depths or {}).items()}
        for depth in self._tasks_at:
            self.depths[str(depth)] = self._own_parts(depth)
        self._one_pass: OnePass | None = None

    def _own_parts(self, depth: int) -> nn.ModuleDict:
        """What a lesser depth does not share with the full one."""
        own = Network(self.encoder.first(depth), pooling=self.pooling, tasks=self._tasks_at[depth])
        parts = nn.ModuleDict({"heads": own.heads, "shared": own.shared})
        if self.pooling == POOLER and self.encoder.pooler is not None:
            parts[POOLER] = deepcopy(self.encoder.pooler)
        return parts

    @property
    def lesser_depths(self) -> list[int]:
        """How many layers each depth has at which it answers, besides the full one."""
        return list(self._tasks_at)

    def at(self, depth: int) -> Network:
        """The network of one depth alone, the full one or another; it shares all its weights with
        this one."""
        shallow = self._copy()
        shallow.depths, shallow._tasks_at = nn.ModuleDict(), {}
        if depth == self.encoder.config.layers:
            return shallow
        parts = self.depths[str(depth)]
        assert isinstance(parts, nn.ModuleDict)
        shallow.encoder = self.encoder.first(depth)
        shallow.tasks = self._tasks_at[depth]
        for name, part in parts.items():
            setattr(shallow.encoder if name == POOLER else shallow, name, part)
        return shallow

    def all_depths(self) -> list[Network]:
        """The networks of all depths, the full one first."""
        return [self, *map(self.at, self._tasks_at)]

    def in_one_pass(self) -> list[Network]:
        """The same, for training: together they encode a batch once."""
        if not self._tasks_at:
            return [self]
        full = self.encoder.config.layers
        one_pass = OnePass(self.encoder, [*sorted(self._tasks_at), full])
        networks = [self._copy(), *map(self.at, self._tasks_at)]
        for network in networks:
            network._one_pass = one_pass
        return networks

    def _copy(self) -> Network:
        """A network of the same modules, in which some can be exchanged."""
        copied = copy(self)
        copied._modules = dict(self._modules)
        return copied

    def _add_mode(self, name: str, mode: Mode, spec: ModeSpec, task: TaskSpec) -> None:
        objective = spec.objective
        if objective.predicts:
            labels = {"classes": task.label_space.classes, "label_range": task.range}
            self.objectives[name, mode] = objective.build(**labels)
            if task.like is None:
                self.heads_of(name)[mode] = self._build_head(spec, outputs=task.outputs(mode))
        elif objective.contrastive:
            self.contrastive_objectives[name, mode] = objective.build()
        elif objective.reads_labels:
            self.label_contrastive_objectives[name, mode] = objective.build()
        elif isinstance(objective, MaskedLanguageModelSpec):
            self.masked_objectives[name, mode] = objective.build()
            self._add_masked_words()
        elif isinstance(objective, TeacherVectorsSpec):
            self.teacher_objectives[name, mode] = objective.build()
        else:
            raise TercetError(f"Objective `{objective.kind}` has no way to compute its loss.")

    def _build_head(self, spec: ModeSpec, *, outputs: int) -> nn.Module:
        assert spec.head is not None  # since it predicts
        config = self.encoder.config
        arguments: dict[str, Any] = {"width": config.width, "outputs": outputs}
        if spec.head.reads == "hidden-states":
            arguments["config"] = config
        if spec.shared is not None:
            self._add_shared(spec.shared, spec.head)
            arguments["shared"] = spec.shared.hidden[-1]
        head: nn.Module = spec.head.build(**arguments)
        return head

    def _add_masked_words(self) -> None:
        config = self.encoder.config
        if MASKED_WORDS not in self.shared:
            self.shared[MASKED_WORDS] = MaskedWordsHead(
                width=config.width,
                words_width=config.words_width,
                vocabulary=config.vocabulary,
                norm_eps=config.norm_eps,
            )

    def _add_shared(self, spec: SharedSpec, head: HeadSpec) -> None:
        """Make shared layers for the first head that names them."""
        width = head.input_width(self.encoder.config.width)
        if spec.name not in self.shared:
            self.shared[spec.name] = SharedLayers(width=width, **spec.model_dump(exclude={"name"}))
        if (first := self.shared[spec.name].width) != width:
            raise TercetError(
                f"Shared layers `{spec.name}` read {first} numbers in one head and {width} in "
                "another: use heads that read the same number, or separate layers."
            )

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    def owner(self, task: str) -> str:
        """The task whose heads a task trains: itself, or the one it is like."""
        return self.tasks[task].like or task

    def heads_of(self, task: str) -> nn.ModuleDict:
        """The heads that a task trains, by mode."""
        heads = self.heads[self.owner(task)]
        assert isinstance(heads, nn.ModuleDict)
        return heads

    def head(self, task: str, mode: Mode) -> Callable[..., Tensor]:
        """The head of a task in one mode, with its shared layers and the dropout before them."""
        module, spec = self.heads_of(task)[mode], self.tasks[task].modes[mode]
        head: Callable[..., Tensor] = module
        if spec.shared is not None:
            head = partial(module, shared=self.shared[spec.shared.name])
        if spec.dropout > 0.0 and module.training:
            return partial(_after_dropout, head, spec.dropout)
        return head

    def side_of(self, task: str) -> str | None:
        """The task whose side weights encode a task's texts; None: the plain encoder does."""
        return side_of(self.tasks, task)

    def shared_by(self, task: str) -> set[str]:
        """Names of the shared layers that a task uses."""
        modes = self.tasks[task].modes.values()
        names = {spec.shared.name for spec in modes if spec.shared is not None}
        masks = any(name == task for name, _ in self.masked_objectives)
        return names | {MASKED_WORDS} if masks else names

    def head_state(self) -> dict[str, Tensor]:
        """All tensors but the encoder's: `TASK.MODE...` for heads, `shared/NAME...` for shared
        layers, `sides/TASK...` for side weights; those of a lesser depth begin with `depths/N/`."""
        return {
            f"{prefix}{name}": value
            for prefix, part in self._besides_encoder().items()
            for name, value in part.state_dict().items()
        }

    def load_head_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Load what `head_state` returned."""
        by_part: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            prefix, slash, inner = name.rpartition("/")
            by_part.setdefault(prefix + slash, {})[inner] = tensor
        for prefix, part in self._besides_encoder().items():
            part.load_state_dict(by_part.get(prefix, {}))

    def _besides_encoder(self) -> dict[str, nn.Module]:
        """The modules of `head_state` by the beginnings of their names in it."""
        parts: dict[str, nn.Module] = {"": self.heads, "shared/": self.shared, "sides/": self.sides}
        for depth, own in self.depths.named_children():
            for name, part in own.named_children():
                parts[f"{depth_prefix(depth)}{'' if name == 'heads' else f'{name}/'}"] = part
        return parts

    def hidden_states(self, tokens: DeviceTokens, *, side: str | None = None) -> Tensor:
        """tokens -> [total, width]; side: the task whose side weights are added, from `side_of`"""
        if self._one_pass is not None:
            return self._one_pass.states(tokens, depth=self.encoder.config.layers)
        beside = () if side is None else (self.sides[side],)
        hidden: Tensor = self.encoder(tokens, *beside)
        return hidden

    def vectors(self, tokens: DeviceTokens, *, side: str | None = None) -> Tensor:
        """One vector per sentence or joined pair, [tokens.used, width]; side: from `side_of`"""
        hidden = self.hidden_states(tokens, side=side)
        pooled = pool(hidden, tokens, how=self.pooling, pooler=self.encoder.pooler)
        return pooled[: tokens.used]

    def columns(
        self, tokens: DeviceTokens, *, rows: int, side: str | None = None
    ) -> tuple[Tensor, ...]:
        """Vectors of sentences that are ordered by column, one [rows, width] per column."""
        vectors = self.vectors(tokens, side=side)
        return vectors.view(-1, rows, vectors.shape[-1]).unbind(0)

    def outputs(self, task: str, mode: Mode, tokens: DeviceTokens) -> Tensor:
        """The head's outputs, before they become predictions, [rows, outputs].

        tokens: the sentences (single), the joined pairs (cross), or all first and then all second
        sentences (bi)
        """
        side = self.side_of(task)
        if mode == "bi":
            u, v = self.columns(tokens, rows=tokens.used // 2, side=side)
            return self.compare(task, u, v)
        head, spec = self.head(task, mode), self.tasks[task].modes[mode].head
        assert spec is not None  # since it predicts
        if spec.reads == "hidden-states":
            return head(self.hidden_states(tokens, side=side), tokens)
        if spec.reads == "both-orders":
            back = swapped(tokens, separators=self.encoder.config.architecture.pair_separators)
            return head(self.vectors(tokens, side=side), self.vectors(back, side=side))
        return head(self.vectors(tokens, side=side))

    def compare(self, task: str, u: Tensor, v: Tensor) -> Tensor:
        """The bi head's outputs for vectors that may have been stored, [rows, outputs]."""
        return self.head(task, "bi")(u, v)

    def masked_words(self, tokens: DeviceTokens, places: Tensor) -> Tensor:
        """Logits of the words at some positions of the tokens, [places, vocabulary]."""
        hidden = self.encoder(tokens).index_select(0, places)
        logits: Tensor = self.shared[MASKED_WORDS](hidden, self.encoder.embeddings.words.weight)
        return logits


def depth_prefix(depth: int | str) -> str:
    """The beginning of the names in `head_state` of what a lesser depth has of its own."""
    return f"{DEPTHS}{depth}/"


def _after_dropout(head: Callable[..., Tensor], rate: float, *vectors: Tensor) -> Tensor:
    """A head's outputs [n, outputs] for vectors [n, width] of which a share is zeroed."""
    return head(*(functional.dropout(each, rate) for each in vectors))
