"""The gradient of a step: forward and backward of every draw, summed over tasks and processes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tercet.recipe import Recipe
from tercet.specs import StageSpec
from tercet.training.first_step import is_bf16, takes_fused
from tercet.training.grad_cache import GradCache
from tercet.training.gradients import GradientRows
from tercet.training.graphs import Graphs
from tercet.training.losses import Losses
from tercet.training.plan import Draw
from tercet.training.surgery import GradientSurgery, cosines

if TYPE_CHECKING:
    from tercet.nn.fused import FusedEncoder


class Backward:
    """Computes the gradient of each step of a stage, into the parameters."""

    def __init__(
        self, recipe: Recipe, stage: StageSpec, losses: Losses, *, short: bool = False
    ) -> None:
        """Call `choose_trainable` first.

        short: the stage ends before compiled kernels and CUDA graphs would have paid
        """
        self._recipe = recipe
        self._stage = stage
        self._losses = losses
        self._world = losses.world
        self.surgery = GradientSurgery(stage.surgery) if stage.surgery is not None else None
        self.rows = self._gradient_rows(recipe.stage_tasks(stage))
        self._fused = None if short else self._fused_where_possible()
        self._graphs = None if short else self._graphs_where_possible()
        self._compiling = self._compile_where_fused()

    def _gradient_rows(self, tasks: Sequence[str]) -> GradientRows:
        networks = self._losses.network.all_depths()
        # Poolers of lesser depths among them; what depths share counts once.
        every = [p for network in networks for p in network.encoder.parameters()]
        heads: dict[str, list[nn.Parameter]] = {task: [] for task in tasks}
        for network in networks:
            for task in filter(network.tasks.__contains__, tasks):
                modes = network.tasks[task].modes
                for mode, head in network.heads_of(task).items():
                    # A task like another may train only one of its heads.
                    heads[task] += head.parameters() if mode in modes else ()
                if (side := network.side_of(task)) is not None:
                    heads[task] += network.sides[side].parameters()
                for name in sorted(network.shared_by(task)):
                    heads[task] += network.shared[name].parameters()
            if self.surgery is not None:
                # Gradients of tasks may conflict in shared layers too.
                every += network.shared.parameters()
        body = [p for p in dict.fromkeys(every) if p.requires_grad]
        apart = set(body)
        return GradientRows(
            body,
            {
                task: [p for p in own if p.requires_grad and p not in apart]
                for task, own in heads.items()
            },
            rows=len(tasks) if self.surgery is not None else 1,
            device=self._world.device,
        )

    def _fused_where_possible(self) -> FusedEncoder | None:
        encoder = self._losses.network.encoder
        if not takes_fused(encoder, self._stage, self._world.device):
            return None
        from tercet.nn.fused import FusedEncoder

        return FusedEncoder(encoder)

    def _compile_where_fused(self) -> Future[None] | None:
        """Compile what the first step launches, while it is prepared."""
        if self._fused is None:
            return None
        from tercet.nn.compiling import compile_ahead

        max_tokens, device = self._losses.max_tokens, self._world.device
        return compile_ahead(self._losses.network.encoder, max_tokens=max_tokens, device=device)

    def follow_weights(self) -> None:
        """Update what depends on the weights, after each step."""
        if self._fused is not None:
            self._fused.refresh()

    def _graphs_where_possible(self) -> Graphs | None:
        """Replay forward and backward on a GPU, but not where processes gather vectors."""
        if self._world.device.type != "cuda" or self._world.size > 1:
            return None
        if not self._losses.network.encoder.config.architecture.cuda_graphs:
            return None
        return Graphs(self._losses, bf16=self._is_bf16)

    @property
    def _is_bf16(self) -> bool:
        return is_bf16(self._stage, self._world.device)

    def __call__(self, draws: Sequence[Draw], *, step: int) -> tuple[Tensor, Tensor | None]:
        """The losses [draws] and, with surgery, the cosines between tasks [draws, draws].

        step: of the run; randomness depends only on the seed, the step and the rank
        """
        if self._compiling is not None:
            self._compiling.result()
            self._compiling = None
        self._seed(step, self._world.rank)
        self.rows.clear()
        losses = []
        encoder = self._losses.network.encoder
        with encoder.replaced(self._fused) if self._fused is not None else nullcontext():
            for number, draw in enumerate(draws):
                row = number if self.surgery is not None else 0
                self.rows.write_to(row, task=draw.task)
                losses.append(self._backward(draw, row=row, step=step))
        summed = torch.stack(losses)
        self._world.sum_(summed)
        self.rows.add_over_ranks(self._world)
        if self.surgery is None:
            return summed, None
        gramian = self.rows.gramian(len(draws))
        # Some surgeries draw a random order of tasks, which all processes must share.
        self._seed(step, 0)
        self.rows.combine(self.surgery.weights(gramian))
        return summed, cosines(gramian)

    def _backward(self, draw: Draw, *, row: int, step: int) -> Tensor:
        """Add the gradient of a draw to `.grad`; its loss, detached."""
        size = self._recipe.tasks[draw.task].batch or self._stage.batch
        whole = torch.zeros((), device=self._world.device)
        for begin in range(0, len(draw.rows), size):
            rows = draw.rows[begin : begin + size]
            whole += self._batch_backward(draw, rows, row=row, place=(step, begin))
        return whole

    def _batch_backward(
        self, draw: Draw, rows: NDArray[np.int64], *, row: int, place: tuple[int, int]
    ) -> Tensor:
        """The same of one batch at `place`: (step, its first row in the draw)."""
        task, total = self._recipe.tasks[draw.task], len(draw.rows)
        if task.chunk is not None and task.chunk < len(rows):
            cache = GradCache(self._losses, self._is_bf16, partial(self._seed_chunk, place))
            return cache.backward(
                draw.task, rows, total=total, weight=task.weight, chunk=task.chunk
            )
        batch = self._losses.batch(draw.task, rows, total=total)
        if self._graphs is not None and self._losses.network.side_of(draw.task) is None:
            return self._graphs.backward(batch, weight=task.weight, row=row)
        with torch.autocast(self._world.device.type, torch.bfloat16, enabled=self._is_bf16):
            loss = self._losses.loss(batch)
        torch.autograd.backward(loss * task.weight)
        return loss.detach()

    def _seed(self, *words: int) -> None:
        """Seed torch by the recipe's seed and these numbers."""
        sequence = np.random.SeedSequence([self._recipe.seed, *words])
        seed = int(sequence.generate_state(1, np.uint64)[0] >> 1)
        # `torch.manual_seed` seeds every kind of device, which is slow.
        torch.default_generator.manual_seed(seed)
        if self._world.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _seed_chunk(self, place: tuple[int, int], number: int) -> None:
        self._seed(*place, self._world.rank, number)
