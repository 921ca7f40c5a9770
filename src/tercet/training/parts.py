"""Which parameters of a network train in a stage, and their learning rate."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.heads.exemplars import Exemplars
from tercet.network.network import Network
from tercet.specs import OptimiserSpec, StageSpec

_BESIDES_ENCODER = ("heads.", "sides.", "shared.")
_DEPTH = re.compile(r"depths\.\d+\.")


def choose_trainable(network: Network, stage: StageSpec, *, tasks: Sequence[str]) -> None:
    """Set `requires_grad` on everything that the tasks of a stage use, except frozen parts."""
    frozen = tuple(
        prefix for part in stage.freeze for prefix in _prefixes(part, len(network.encoder.layers))
    )
    unused = () if network.pooling == "pooler" else ("encoder.pooler.",)
    heads = tuple(prefix for task in tasks for prefix in _of_task(network, task))
    for name, parameter in network.named_parameters():
        part = part_of(name)
        used = part.startswith((*heads, "encoder."))
        parameter.requires_grad = used and not part.startswith((*frozen, *unused))
    _check_trains(network, stage, tasks)


def part_of(parameter: str) -> str:
    """The name of a parameter, or of its counterpart at the full depth."""
    own = _DEPTH.sub("", parameter)
    # A lesser depth has its own pooler beside its heads; that of the full depth is the encoder's.
    return f"encoder.{own}" if own.startswith("pooler.") else own


def _check_trains(network: Network, stage: StageSpec, tasks: Sequence[str]) -> None:
    """Every task needs something to train, or its loss has no gradient."""
    trains = [
        part_of(name) for name, parameter in network.named_parameters() if parameter.requires_grad
    ]
    trains_encoder = any(name.startswith("encoder.") for name in trains)
    for task in tasks:
        if trains_encoder and any(
            isinstance(part, Exemplars) for part in network.heads_of(task).modules()
        ):
            raise TercetError(
                f"stage `{stage.name}` trains the encoder, and task `{task}` keeps exemplars as "
                "the encoder sees them at the stage's start; put `encoder` into `freeze`."
            )
        if not any(name.startswith(("encoder.", *_of_task(network, task))) for name in trains):
            raise TercetError(
                f"stage `{stage.name}` freezes everything that task `{task}` could train; leave a "
                "part out of `freeze`, or the task out of `tasks`."
            )


def _of_task(network: Network, task: str) -> list[str]:
    """The prefixes of the parameters of a task's heads, shared layers and side weights."""
    own = [f"{kind}.{network.owner(task)}." for kind in ("heads", "sides")]
    return [*own, *(f"shared.{name}." for name in sorted(network.shared_by(task)))]


def set_modes(network: Network) -> None:
    """Training mode, but without dropout in a frozen encoder."""
    network.train()
    if not any(parameter.requires_grad for parameter in network.encoder.parameters()):
        network.encoder.eval()


def _prefixes(part: str, layers: int) -> list[str]:
    """The prefixes of the parameters of a frozen part."""
    if part == "encoder":
        return ["encoder."]
    if part.startswith(_BESIDES_ENCODER):
        return [f"{part}."]
    if not part.startswith("layers."):
        return [f"encoder.{part}."]
    bounds = [int(number) for number in re.findall(r"\d+", part)]
    first, last = bounds[0], bounds[-1]
    if not first <= last < layers:
        raise TercetError(
            f"freeze {part!r}: the encoder's layers are numbered from 0 to {layers - 1}."
        )
    return [f"encoder.layers.{number}." for number in range(first, last + 1)]


def build_optimiser(network: Network, spec: OptimiserSpec) -> torch.optim.AdamW:
    """AdamW over the parameters that train."""
    return adamw(network.named_parameters(), spec)


def adamw(parameters: Iterable[tuple[str, nn.Parameter]], spec: OptimiserSpec) -> torch.optim.AdamW:
    """AdamW over the named parameters that train; no decay on biases and norms."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in parameters:
        if parameter.requires_grad:
            besides = part_of(name).startswith(_BESIDES_ENCODER)
            lr = spec.head_lr or spec.lr if besides else spec.lr
            decay = spec.weight_decay if parameter.ndim >= 2 else 0.0
            groups.setdefault((lr, decay), []).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": members, "lr": _rate_of(members, lr), "peak_lr": lr, "weight_decay": decay}
            for (lr, decay), members in groups.items()
        ],
        betas=spec.betas,
        eps=spec.eps,
        fused=True,
        capturable=any(members[0].is_cuda for members in groups.values()),
    )


def _rate_of(members: Sequence[nn.Parameter], lr: float) -> float | Tensor:
    """On a GPU a tensor, which CUDA graphs read at each replay."""
    return torch.tensor(lr, device=members[0].device) if members[0].is_cuda else lr


def set_rate(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Scale every group's own peak learning rate."""
    for group in optimiser.param_groups:
        rate = group["peak_lr"] * factor
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def scheduled_step(step: int, *, steps: int, shortened: Sequence[tuple[int, int]] | None) -> float:
    """Where in the learning rate's schedule of so many steps a step (from 0) of a stage is.

    shortened: [step, steps] each; the rest of the schedule is compressed into the steps left
    """
    place, since, pace = 0.0, 0, 1.0
    for after, end in shortened or ():
        if after > step:
            break
        place, since = place + pace * (after - since), after
        pace = (steps - place) / (end - after)
    return place + pace * (step - since)


def rate(spec: OptimiserSpec, *, step: float, steps: int) -> float:
    """The factor on the peak learning rate at a step (from 0) of a stage."""
    rise = round(spec.warmup * steps)
    if step < rise:
        return (step + 1) / rise
    if spec.decay == "constant":
        return 1.0
    left = 1.0 - (step - rise) / max(1, steps - rise)
    return left if spec.decay == "linear" else 0.5 * (1.0 + math.cos(math.pi * (1.0 - left)))
