from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from torchjd import aggregation as torchjd

from tercet.errors import TercetError
from tercet.specs import SURGERIES
from tercet.training.surgery import GradientSurgery, cosines

PLAIN = ["pcgrad", "pcgrad-mean", "gradvac", "mgda", "aligned-mtl", "imtl-g"]


def gramian(seed: int, tasks: int = 3, width: int = 8) -> Tensor:
    gradients = torch.randn(tasks, width, generator=torch.Generator().manual_seed(seed))
    return gradients @ gradients.T


def weights(surgery: GradientSurgery, seed: int) -> Tensor:
    torch.manual_seed(seed)
    return surgery.weights(gramian(seed))


def test_gradvac_goes_on_from_what_another_remembers() -> None:
    unbroken, broken = GradientSurgery("gradvac"), GradientSurgery("gradvac")
    for seed in range(4):
        weights(unbroken, seed)
        weights(broken, seed)
    resumed, forgetful = GradientSurgery("gradvac"), GradientSurgery("gradvac")
    resumed.restore({name: value.clone() for name, value in broken.state().items()})
    differs = False
    for seed in range(4, 10):
        expected = weights(unbroken, seed)
        assert weights(resumed, seed).equal(expected)
        differs = differs or not weights(forgetful, seed).equal(expected)
    assert differs


@pytest.mark.parametrize("name", PLAIN)
def test_a_surgery_that_has_not_worked_yet_can_be_restored_too(name: str) -> None:
    resumed = GradientSurgery(name)
    resumed.restore(GradientSurgery(name).state())
    assert weights(resumed, 1).equal(weights(GradientSurgery(name), 1))


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "gradvac"])
def test_the_others_remember_nothing(name: str) -> None:
    surgery = GradientSurgery(name)
    weights(surgery, 0)
    assert surgery.state() == {}


@pytest.mark.parametrize("name", PLAIN)
def test_tasks_that_agree_are_not_set_against_each_other(name: str) -> None:
    found = GradientSurgery(name).weights(torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
    assert (found > 0).all()
    torch.testing.assert_close(found[0], found[1])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1000), st.integers(1, 6), st.sampled_from([2, 3, 8]))
def test_pcgrad_gives_what_torchjd_gives(seed: int, tasks: int, width: int) -> None:
    # Many tasks in few dimensions: a gradient may come to oppose the one that it began as.
    matrix = gramian(seed, tasks, width)
    torch.manual_seed(seed)
    expected = torchjd.PCGradWeighting()(matrix)
    torch.manual_seed(seed)
    found = GradientSurgery("pcgrad").weights(matrix)
    torch.testing.assert_close(found, expected)


def project(gradients: Tensor) -> Tensor:
    """The projections of the widely used PyTorch code (Tseng, 2020), gradient by gradient."""
    projected = gradients.clone()
    orders = torch.stack([torch.randperm(len(gradients)) for _ in gradients], dim=1)
    for task, order in enumerate(orders.T):
        for other in order:
            product = torch.dot(projected[task], gradients[other])
            if other != task and product < 0:
                projected[task] -= product * gradients[other] / gradients[other].norm() ** 2
    return projected


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 5))
def test_mean_and_sum_differ_by_the_number_of_tasks(seed: int, tasks: int) -> None:
    gradients = torch.randn(tasks, 4, generator=torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    projected = project(gradients)
    for name, expected in (("pcgrad", projected.sum(0)), ("pcgrad-mean", projected.mean(0))):
        torch.manual_seed(seed)
        found = GradientSurgery(name).weights(gradients @ gradients.T) @ gradients
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_pcgrad_leaves_tasks_without_gradient_alone() -> None:
    matrix = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, -0.5], [0.0, -0.5, 1.0]])
    found = GradientSurgery("pcgrad").weights(matrix)
    torch.testing.assert_close(found, torch.tensor([1.0, 1.5, 1.5]))


def test_pcgrad_takes_conflict_out() -> None:
    gradients = torch.tensor([[1.0, 0.0], [-1.0, 1.0]])
    combined = GradientSurgery("pcgrad").weights(gradients @ gradients.T) @ gradients
    torch.testing.assert_close(combined, torch.tensor([0.5, 1.5]))


@pytest.mark.parametrize("name", SURGERIES.names())
def test_every_name_of_a_recipe_has_its_algorithm(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking() -> None:
        raise ImportError

    assert SURGERIES[name].description
    monkeypatch.setitem(SURGERIES._parts, name, replace(SURGERIES[name], implementation=lacking))
    with pytest.raises(TercetError, match=f"surgery '{name}' needs further packages: pip install"):
        GradientSurgery(name)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 5))
def test_cosines(seed: int, tasks: int) -> None:
    gradients = torch.randn(tasks, 8, generator=torch.Generator().manual_seed(seed))
    expected = F.cosine_similarity(gradients[:, None], gradients[None], dim=-1)
    torch.testing.assert_close(cosines(gradients @ gradients.T), expected)


def test_a_zero_gradient_has_cosine_0() -> None:
    gradients = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert cosines(gradients @ gradients.T).tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_opposite_gradients_have_cosine_minus_1() -> None:
    gradients = torch.tensor([[1e-4, 0.0], [-1e3, 0.0]])
    torch.testing.assert_close(
        cosines(gradients @ gradients.T), torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    )
