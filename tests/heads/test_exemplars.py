from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tercet.errors import TercetError
from tercet.heads.exemplars import ExemplarHead
from tercet.heads.nearest import NearestHead

WIDTH, CLASSES = 6, 3


def known(rows: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(rows, WIDTH, generator=generator), torch.arange(rows) % CLASSES


def test_an_exemplar_head_is_a_linear_layer_on_cosines_and_labels() -> None:
    vectors, labels = known(4)
    head = ExemplarHead(width=WIDTH, outputs=CLASSES, count=5)
    head.exemplars.fill(vectors, labels)
    read = torch.randn(2, WIDTH)
    cosines = F.cosine_similarity(read[:, None], vectors[None], dim=-1)
    empty = torch.zeros(2, 1)
    joined = torch.cat([cosines, empty, labels.float().expand(2, -1), empty], dim=1)
    torch.testing.assert_close(head(read), F.linear(joined, head.final.weight, head.final.bias))


def test_the_nearest_of_all_gives_its_label() -> None:
    vectors, labels = known()
    head = NearestHead(width=WIDTH, outputs=CLASSES, count=12).eval()
    head.exemplars.fill(vectors, labels)
    read = torch.randn(20, WIDTH)
    nearest = F.cosine_similarity(read[:, None], vectors[None], dim=-1).argmax(dim=1)
    assert torch.equal(head(read).argmax(dim=1), labels[nearest])
    assert torch.equal(head(vectors).argmax(dim=1), labels)


def test_while_training_a_sentence_is_not_its_own_nearest() -> None:
    vectors, labels = known()
    head = NearestHead(width=WIDTH, outputs=CLASSES, count=9).train()
    head.exemplars.fill(vectors, labels)
    cosines = F.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    others = cosines.masked_fill(torch.eye(9, dtype=torch.bool), -1.0).argmax(dim=1)
    assert torch.equal(head(vectors).argmax(dim=1), labels[others])


@pytest.mark.parametrize("kind", [ExemplarHead, NearestHead])
def test_exemplars_are_saved_with_the_head(kind: type[torch.nn.Module]) -> None:
    vectors, labels = known()
    head, other = (kind(width=WIDTH, outputs=CLASSES, count=9).eval() for _ in range(2))
    head.exemplars.fill(vectors, labels)
    other.load_state_dict(head.state_dict())
    assert torch.equal(head(vectors), other(vectors))


def test_more_exemplars_than_places_are_refused() -> None:
    with pytest.raises(TercetError, match="9 exemplars do not fit into 8 places"):
        ExemplarHead(width=WIDTH, outputs=CLASSES, count=8).exemplars.fill(*known())
