"""Classes by their probabilities: how far a student is from its teacher, or from itself."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def divergence(logits: Tensor, targets: Tensor, *, temperature: float) -> Tensor:
    """Sum over rows of KL(targets || softmax(logits / temperature)), times temperature squared.

    logits, targets: [n, classes]; the factor keeps gradients as large as at temperature 1
    (Hinton, Vinyals and Dean, 2015)
    """
    predicted = functional.log_softmax(logits.float() / temperature, dim=-1)
    return functional.kl_div(predicted, targets, reduction="sum") * temperature**2


def symmetric_divergence(first: Tensor, second: Tensor) -> Tensor:
    """Sum over rows of the mean of KL both ways between softmax of logits [n, classes] each
    (R-Drop, Liang et al., 2021)."""
    p, q = (functional.log_softmax(logits.float(), dim=-1) for logits in (first, second))
    return 0.5 * ((p.exp() - q.exp()) * (p - q)).sum()


def two_classes(raw: Tensor) -> Tensor:
    """The logit of class 1 [n, 1] as logits of both classes [n, 2]."""
    return torch.cat([torch.zeros_like(raw), raw], dim=-1)
