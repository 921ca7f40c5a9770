"""What a run on a GPU starts beside its preparation, so that its first step is not kept waiting."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from threading import Thread

import torch

from tercet.network.network import Network
from tercet.nn.encoder import Encoder
from tercet.recipe import Recipe
from tercet.specs import StageSpec
from tercet.training.parts import choose_trainable

# Steps; on a GPU, compiling and capturing takes as long as this many plain steps.
SHORT = 300


def start_ahead(recipe: Recipe, network: Network, device: torch.device) -> None:
    """Import and compile in the background what the first stage that trains by steps needs."""
    stage = next((stage for stage in recipe.stages if not stage.solve), None)
    if device.type != "cuda" or stage is None:
        return
    # Optimisers import torch's compiler, hundreds of files, which others only read meanwhile.
    Thread(target=import_module, args=("torch._dynamo",), daemon=True).start()
    if stage.steps is not None and stage.steps < SHORT:
        return
    choose_trainable(network, stage, tasks=recipe.stage_tasks(stage))
    if takes_fused(network.encoder, stage, device):
        from tercet.nn.compiling import compile_ahead

        compile_ahead(network.encoder, max_tokens=recipe.encoder.max_tokens, device=device)


def takes_fused(encoder: Encoder, stage: StageSpec, device: torch.device) -> bool:
    """Whether a stage trains with the fused layers of `nn.fused`."""
    if device.type != "cuda" or not is_bf16(stage, device) or find_spec("triton") is None:
        return False
    from tercet.nn.fused import is_fused  # needs Triton, which comes with torch for GPUs alone

    return is_fused(encoder)


def is_bf16(stage: StageSpec, device: torch.device) -> bool:
    """Whether a stage computes in bf16."""
    return stage.precision == "bf16" or (stage.precision == "auto" and device.type == "cuda")
