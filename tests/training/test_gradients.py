from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
import torchjd.aggregation as torchjd
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

from tercet.specs import OptimiserSpec, Surgery
from tercet.training.distributed import World
from tercet.training.gradients import GradientRows
from tercet.training.parts import adamw
from tercet.training.surgery import GradientSurgery

TASKS = ("sst", "qqp", "sts")
ALONE = World(rank=0, size=1, device=torch.device("cpu"))
AGGREGATORS: dict[Surgery, torchjd.Aggregator] = {
    "pcgrad": torchjd.PCGrad(),
    "gradvac": torchjd.GradVac(),
    "mgda": torchjd.MGDA(),
    "aligned-mtl": torchjd.AlignedMTL(),
    "imtl-g": torchjd.IMTLG(),
}


class Small(nn.Module):
    """A body that all tasks share and a head a task."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Tanh(), nn.Linear(7, 4))
        self.heads = nn.ModuleDict({task: nn.Linear(4, 2) for task in TASKS})

    def loss(self, task: str, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(10 * seed + TASKS.index(task))
        inputs = torch.randn(6, 5, generator=generator)
        wanted = torch.randn(6, 2, generator=generator)
        return F.mse_loss(self.heads[task](self.body(inputs)), wanted)

    def head_of(self, task: str) -> list[nn.Parameter]:
        return list(self.heads[task].parameters())


def twins() -> tuple[Small, Small]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        first, second = Small(), Small()
    second.load_state_dict(first.state_dict())
    return first, second


def rows_for(network: Small, *, rows: int) -> GradientRows:
    heads = {task: network.head_of(task) for task in TASKS}
    device = torch.device("cpu")
    return GradientRows(list(network.body.parameters()), heads, rows=rows, device=device)


def backward(network: Small, rows: GradientRows, tasks: Sequence[str], *, seed: int = 0) -> None:
    """A step's backward passes, each into its own row while there are several."""
    rows.clear()
    for number, task in enumerate(tasks):
        rows.write_to(number if len(rows.rows) > 1 else 0, task=task)
        torch.autograd.backward(network.loss(task, seed))


def jacobian(network: Small, tasks: Sequence[str], *, seed: int = 0) -> Tensor:
    """Each task's gradient of the body by plain autograd, [tasks, parameters]."""
    parameters = list(network.body.parameters())
    gradients = [torch.autograd.grad(network.loss(task, seed), parameters) for task in tasks]
    return torch.stack([flat(parts) for parts in gradients])


def flat(parts: Sequence[Tensor | None]) -> Tensor:
    return torch.cat([part.flatten() for part in parts if part is not None])


def body_gradient(network: Small) -> Tensor:
    return flat([parameter.grad for parameter in network.body.parameters()])


def gradients_in(rows: GradientRows, network: Small, numbers: Sequence[int]) -> Tensor:
    """What stands in some rows, [rows, parameters]."""
    found = []
    for number in numbers:
        rows.write_to(number, task=TASKS[0])
        found.append(body_gradient(network))
    return torch.stack(found)


@settings(deadline=None, max_examples=20)
@given(st.permutations(TASKS), st.integers(1, 3))
def test_rows_are_the_gradients_of_each_task(order: list[str], count: int) -> None:
    ours, plain = twins()
    rows = rows_for(ours, rows=3)
    backward(ours, rows, order[:count])
    found = gradients_in(rows, ours, range(count))
    torch.testing.assert_close(found, jacobian(plain, order[:count]))
    assert not rows.rows[count:].any()


def test_gradients_of_a_step_do_not_leak_into_the_next() -> None:
    ours, plain = twins()
    rows = rows_for(ours, rows=3)
    backward(ours, rows, TASKS)
    rows.combine(torch.ones(3))
    backward(ours, rows, TASKS[1:], seed=1)
    assert all(parameter.grad is None for parameter in ours.head_of(TASKS[0]))
    found = gradients_in(rows, ours, range(2))
    torch.testing.assert_close(found, jacobian(plain, TASKS[1:], seed=1))


def test_several_batches_of_a_task_add_up_in_its_row() -> None:
    ours, plain = twins()
    rows = rows_for(ours, rows=2)
    rows.clear()
    rows.write_to(1, task="qqp")
    for seed in (1, 2):
        torch.autograd.backward(ours.loss("qqp", seed))
    expected = jacobian(plain, ["qqp"], seed=1) + jacobian(plain, ["qqp"], seed=2)
    torch.testing.assert_close(gradients_in(rows, ours, [1]), expected)


def test_the_inner_products_are_those_of_the_used_rows() -> None:
    ours, plain = twins()
    rows = rows_for(ours, rows=3)
    backward(ours, rows, TASKS[:2])
    gradients = jacobian(plain, TASKS[:2])
    torch.testing.assert_close(rows.gramian(2), gradients @ gradients.T)


def aggregator(name: str) -> torchjd.Aggregator:
    if name == "cagrad":
        pytest.importorskip("cvxpy")
        return torchjd.CAGrad(c=0.5)
    if name in ("upgrad", "dualproj"):
        pytest.importorskip("quadprog")
        pytest.importorskip("qpsolvers")
        return torchjd.UPGrad() if name == "upgrad" else torchjd.DualProj()
    aggregator = AGGREGATORS[name]
    if name == "gradvac":
        aggregator.reset()
    return aggregator


@pytest.mark.parametrize("name", [*AGGREGATORS, "upgrad", "cagrad", "dualproj"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_surgery_is_torchjds_own_on_the_stacked_gradients(name: str, count: int) -> None:
    """Three steps, so that what an algorithm remembers is used too."""
    expected_of = aggregator(name)
    ours, plain = twins()
    rows, surgery = rows_for(ours, rows=3), GradientSurgery(name)
    for seed in range(3):
        backward(ours, rows, TASKS[:count], seed=seed)
        gradients = jacobian(plain, TASKS[:count], seed=seed)
        torch.manual_seed(seed)
        rows.combine(surgery.weights(rows.gramian(count)))
        torch.manual_seed(seed)
        torch.testing.assert_close(
            body_gradient(ours), expected_of(gradients), rtol=1e-3, atol=1e-5
        )


def test_surgery_leaves_heads_alone() -> None:
    ours, plain = twins()
    rows = rows_for(ours, rows=3)
    backward(ours, rows, TASKS)
    rows.combine(torch.tensor([0.5, -2.0, 0.0]))
    for task in TASKS:
        expected = torch.autograd.grad(plain.loss(task), plain.head_of(task))
        for parameter, gradient in zip(ours.head_of(task), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)


def test_without_surgery_the_gradient_is_the_plain_sum() -> None:
    ours, plain = twins()
    backward(ours, rows_for(ours, rows=1), TASKS)
    torch.autograd.backward(sum(plain.loss(task) for task in TASKS))
    for ours_of, plain_of in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours_of.grad, plain_of.grad)


def test_a_head_that_is_not_drawn_has_no_gradient_and_does_not_move() -> None:
    ours, _ = twins()
    rows = rows_for(ours, rows=1)
    optimiser = adamw(ours.named_parameters(), OptimiserSpec(lr=0.1, weight_decay=0.1))
    backward(ours, rows, TASKS)
    optimiser.step()
    before = {name: value.clone() for name, value in ours.state_dict().items()}
    backward(ours, rows, ["qqp"], seed=1)
    assert all(parameter.grad is None for parameter in ours.head_of("sst"))
    optimiser.step()
    moved = {name for name, value in ours.state_dict().items() if not value.equal(before[name])}
    assert moved == {name for name in before if name.startswith(("body.", "heads.qqp."))}


@settings(deadline=None, max_examples=20)
@given(st.floats(1e-3, 10.0), st.integers(1, 3))
def test_clipping_is_torchs(greatest: float, count: int) -> None:
    ours, plain = twins()
    rows = rows_for(ours, rows=1)
    backward(ours, rows, TASKS[:count])
    torch.autograd.backward(sum(plain.loss(task) for task in TASKS[:count]))
    norm = rows.clip(greatest)
    torch.testing.assert_close(norm, clip_grad_norm_(plain.parameters(), greatest))
    for ours_of, plain_of in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours_of.grad, plain_of.grad)


def test_clip_zero_leaves_the_gradient_alone_and_still_tells_its_norm() -> None:
    ours, plain = twins()
    rows = rows_for(ours, rows=1)
    backward(ours, rows, TASKS)
    before = body_gradient(ours).clone()
    norm = rows.clip(0.0)
    torch.autograd.backward(sum(plain.loss(task) for task in TASKS))
    torch.testing.assert_close(norm, clip_grad_norm_(plain.parameters(), torch.inf))
    assert body_gradient(ours).equal(before)


def test_after_surgery_the_combined_gradient_is_clipped() -> None:
    ours, _ = twins()
    rows = rows_for(ours, rows=3)
    backward(ours, rows, TASKS)
    rows.combine(torch.tensor([1.0, 2.0, 3.0]))
    expected = flat([parameter.grad for parameter in ours.parameters()])
    torch.testing.assert_close(rows.clip(0.01), expected.norm())
    shortened = flat([parameter.grad for parameter in ours.parameters()])
    torch.testing.assert_close(shortened, expected * 0.01 / expected.norm(), rtol=1e-3, atol=1e-8)


def test_a_body_that_is_wholly_frozen_trains_its_heads() -> None:
    ours, plain = twins()
    ours.body.requires_grad_(False)
    heads = {task: ours.head_of(task) for task in TASKS}
    rows = GradientRows([], heads, rows=1, device=torch.device("cpu"))
    backward(ours, rows, ["sts"])
    rows.add_over_ranks(ALONE)
    expected = torch.autograd.grad(plain.loss("sts"), plain.head_of("sts"))
    torch.testing.assert_close(rows.clip(0.0), flat(expected).norm())
    torch.testing.assert_close(flat([p.grad for p in ours.head_of("sts")]), flat(expected))
