"""Every loss of training against the same loss put together by hand, one sentence at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.objectives.masked_language_model import NOTHING
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.batch import Batch
from tercet.training.distributed import World
from tercet.training.head_loss import prior_shift
from tercet.training.losses import Losses, prior_shifts
from tercet.training.masking import Masking

CPU = torch.device("cpu")
MAX_TOKENS = 24
FIRST = ["a fine film", "how do i learn the guitar?", "dull", "the cat sits on the mat", "it is"]
SECOND = ["a good movie indeed", "learn guitar", "lively and long " * 9, "a cat sits", "is it so"]
THIRD = ["rain", "what is a film", "the end of it all", "dogs run", "no"]
ROWS = np.array([4, 0, 2, 3])

MLP = {"kind": "mlp", "hidden": [8], "activation": "tanh", "dropout": 0.0}
FEATURES = {"kind": "features", "features": ["u", "v", "absdiff", "product"], "dropout": 0.0}
COSINE = {"kind": "cosine", "projection": True}
DATA = {"layout": "cs224n-sst"}
BINARY = {"kind": "binary-cross-entropy"}


@dataclass(frozen=True, slots=True)
class Bench:
    """A network of one task `t`, its losses, and the bricks that hand computations use."""

    network: Network
    losses: Losses
    tokenizer: Tokenizer

    def loss(self, rows: Any = ROWS, *, total: int | None = None) -> Tensor:
        return self.losses.loss(self.losses.batch("t", rows, total=total or len(rows)))

    def vector(self, *texts: str) -> Tensor:
        """The mean of the hidden states of one sentence or joined pair, [width]."""
        template = self.tokenizer.template
        columns = [self.tokenizer.pieces([text], limit=MAX_TOKENS) for text in texts]
        assemble = template.single if len(texts) == 1 else template.pair
        tokens = assemble(*columns, max_tokens=MAX_TOKENS)
        return self.network.encoder(DeviceTokens.from_host(tokens, CPU)).mean(dim=0)

    def vectors(self, *columns: Sequence[str], rows: Any = ROWS) -> Tensor:
        return torch.stack([self.vector(*(column[row] for column in columns)) for row in rows])

    def linear(self, name: str, vectors: Tensor) -> Tensor:
        parameters = self.network.get_submodule(f"heads.t.{name}")
        return F.linear(vectors, parameters.weight, parameters.bias)


MakeBench = Callable[..., Bench]


@pytest.fixture
def bench(
    make_network: Callable[..., Network],
    make_table: Callable[..., TaskTable],
    tokenizer: Tokenizer,
) -> MakeBench:
    def make(
        block: dict[str, Any],
        *columns: list[str],
        labels: list[Any] | None = None,
        world: World | None = None,
        dropout: float = 0.0,
    ) -> Bench:
        block = {"data": DATA, **block}
        network = make_network({"t": block}, dropout=dropout).train()
        with torch.no_grad():
            for index, parameter in enumerate(network.heads.parameters()):
                generator = torch.Generator().manual_seed(index)
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        losses = Losses(
            network=network,
            tasks={"t": TaskSpec.model_validate(block)},
            tables={"t": make_table(*columns, labels=labels)},
            template=tokenizer.template,
            max_tokens=MAX_TOKENS,
            world=world or World(rank=0, size=1, device=CPU),
        )
        losses = replace(losses, shifts=prior_shifts(losses.tasks, losses.tables))
        return Bench(network, losses, tokenizer)

    return make


CLASSES = {"labels": ["low", "middle", "high"]}
TWO = {"labels": ["no", "yes"]}
GRADES = {"range": [0, 5]}
GRADED = [0.0, 5.0, 2.5, 1.25, 4.0]


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def by_row(values: Sequence[Any]) -> Tensor:
    return torch.tensor([values[row] for row in ROWS])


def test_single(bench: MakeBench) -> None:
    labels = [0, 1, 2, 1, 2]
    mode = {"head": MLP, "objective": {"kind": "cross-entropy"}}
    made = bench({**CLASSES, "single": mode}, FIRST, labels=labels)
    hidden = torch.tanh(made.linear("single.layers.0", made.vectors(FIRST)))
    raw = made.linear("single.layers.1", hidden)
    close(made.loss(), F.cross_entropy(raw, by_row(labels)))


def test_a_prior_shifts_what_labels_are_compared_with(bench: MakeBench) -> None:
    labels = [0, 1, 1, 0, 1]
    mode = {"head": MLP, "objective": BINARY}
    made = bench({**TWO, "prior": 0.2, "cross": mode}, FIRST, SECOND, labels=labels)
    raw = made.network.outputs(
        "t", "cross", DeviceTokens.from_host(made.losses.tokens("t", "cross", ROWS), CPU)
    )
    # Odds of 3 to 2 among the rows, of 1 to 4 where it is used: six times as likely here.
    shifted = raw[:, 0] + np.log(6.0)
    close(made.loss(), F.binary_cross_entropy_with_logits(shifted, by_row(labels).float()))


def test_a_head_without_a_clue_learns_its_prior() -> None:
    labels = np.array([1] * 48 + [0] * 52)
    chances = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    shifted = torch.logit(chances) + prior_shift(labels, 0.37)
    truth = torch.from_numpy(labels).double()
    losses = [F.binary_cross_entropy_with_logits(raw.expand(100), truth) for raw in shifted]
    assert chances[int(torch.stack(losses).argmin())] == pytest.approx(0.37)
    with pytest.raises(TercetError, match="both classes"):
        prior_shift(np.ones(4), 0.37)


def test_bi_features(bench: MakeBench) -> None:
    labels = [0, 1, 1, 0, 1]
    made = bench(
        {**TWO, "bi": {"head": FEATURES, "objective": BINARY}}, FIRST, SECOND, labels=labels
    )
    u, v = made.vectors(FIRST), made.vectors(SECOND)
    raw = made.linear("bi.mlp.layers.0", torch.cat([u, v, (u - v).abs(), u * v], dim=1))
    expected = F.binary_cross_entropy_with_logits(raw[:, 0], by_row(labels).float())
    close(made.loss(), expected)


@pytest.mark.parametrize(
    ("kind", "loss"), [("mean-squared-error", F.mse_loss), ("mean-absolute-error", F.l1_loss)]
)
def test_bi_cosine(bench: MakeBench, kind: str, loss: Callable[..., Tensor]) -> None:
    mode = {"head": COSINE, "objective": {"kind": kind, "targets": [-1, 1]}}
    made = bench({**GRADES, "bi": mode}, FIRST, SECOND, labels=GRADED)
    u, v = (made.linear("bi.projection", made.vectors(column)) for column in (FIRST, SECOND))
    close(made.loss(), loss(F.cosine_similarity(u, v), by_row(GRADED) * 0.4 - 1.0))


def test_cross(bench: MakeBench) -> None:
    mode = {"head": MLP, "objective": {"kind": "mean-squared-error"}}
    made = bench({**GRADES, "cross": mode}, FIRST, SECOND, labels=GRADED)
    hidden = torch.tanh(made.linear("cross.layers.0", made.vectors(FIRST, SECOND)))
    raw = made.linear("cross.layers.1", hidden)
    close(made.loss(), F.mse_loss(raw[:, 0], by_row(GRADED)))


def in_batch(anchors: Tensor, candidates: Tensor, *, scale: float) -> Tensor:
    cosines = F.cosine_similarity(anchors[:, None], candidates[None], dim=-1)
    return F.cross_entropy(scale * cosines, torch.arange(len(anchors)))


@pytest.mark.parametrize(
    ("objective", "scale"),
    [
        ({"kind": "simcse", "temperature": 0.1}, 10.0),
        ({"kind": "multiple-negatives-ranking", "scale": 7.0}, 7.0),
    ],
)
@pytest.mark.parametrize("negatives", [False, True])
def test_contrastive(
    bench: MakeBench, objective: dict[str, Any], scale: float, negatives: bool
) -> None:
    columns = [FIRST, SECOND, THIRD] if negatives else [FIRST, SECOND]
    made = bench({"bi": {"objective": objective}}, *columns)
    anchors, *candidates = (made.vectors(column) for column in columns)
    close(made.loss(), in_batch(anchors, torch.cat(candidates), scale=scale))


def test_triplet(bench: MakeBench) -> None:
    made = bench({"bi": {"objective": {"kind": "triplet", "margin": 0.5}}}, FIRST, SECOND, THIRD)
    vectors = [made.vectors(column) for column in (FIRST, SECOND, THIRD)]
    close(made.loss(), F.triplet_margin_loss(*vectors, margin=0.5, eps=0.0))


@pytest.mark.parametrize("mode", ["single", "bi"])
def test_unsupervised_simcse_sees_each_sentence_under_two_draws_of_dropout(
    bench: MakeBench, mode: str
) -> None:
    block = {mode: {"objective": {"kind": "simcse", "temperature": 0.1}}}
    plain = bench(block, FIRST)
    vectors = plain.vectors(FIRST)
    close(plain.loss(), in_batch(vectors, vectors, scale=10.0))

    made = bench(block, FIRST, dropout=0.3)
    seen: list[Tensor] = []
    made.network.encoder.register_forward_hook(lambda module, inputs, out: seen.append(out))
    torch.manual_seed(1)
    first = made.loss()
    assert len(seen) == 1
    twice = seen[0].view(2, -1, seen[0].shape[-1])
    assert not torch.isclose(twice[0], twice[1]).all(dim=-1).any()
    torch.manual_seed(1)
    assert made.loss().equal(first)
    assert not made.loss().equal(first)
    assert first > plain.loss()


def test_a_task_with_two_modes_adds_up_both(bench: MakeBench) -> None:
    bi = {"head": FEATURES, "objective": BINARY}
    cross = {"head": MLP, "objective": BINARY}
    labels = [0, 1, 1, 0, 1]
    made = bench({**TWO, "bi": bi, "cross": cross}, FIRST, SECOND, labels=labels)
    wanted = by_row(labels).float()
    u, v = made.vectors(FIRST), made.vectors(SECOND)
    apart = made.linear("bi.mlp.layers.0", torch.cat([u, v, (u - v).abs(), u * v], dim=1))
    hidden = torch.tanh(made.linear("cross.layers.0", made.vectors(FIRST, SECOND)))
    jointly = made.linear("cross.layers.1", hidden)
    expected = sum(
        F.binary_cross_entropy_with_logits(raw[:, 0], wanted) for raw in (apart, jointly)
    )
    close(made.loss(), expected)
    torch.autograd.backward(made.loss())
    assert all(parameter.grad is not None for parameter in made.network.heads.parameters())


def test_a_longer_step_divides_by_all_its_rows(bench: MakeBench) -> None:
    mode = {"head": MLP, "objective": {"kind": "cross-entropy"}}
    made = bench({**CLASSES, "single": mode}, FIRST, labels=[0, 1, 2, 1, 2])
    parts = made.loss(ROWS[:3], total=4) + made.loss(ROWS[3:], total=4)
    close(parts, made.loss(ROWS))


class Among(World):
    """A rank whose others all send ones."""

    def gather(self, columns: Sequence[Tensor], *, rows: int) -> tuple[Tensor, ...]:
        assert all(len(column) == len(columns[0]) for column in columns)
        return tuple(torch.ones(rows, columns[0].shape[1], requires_grad=True) for _ in columns)


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_the_shares_of_all_ranks_add_up_to_the_whole(bench: MakeBench, rows: int) -> None:
    block = {**CLASSES, "single": {"head": MLP, "objective": {"kind": "cross-entropy"}}}
    labels = [0, 1, 2, 1, 2]
    whole = bench(block, FIRST, labels=labels)
    torch.autograd.backward(whole.loss(ROWS[:rows]))
    added, gradient = torch.zeros(()), torch.zeros(32)
    name = "encoder.layers.0.attention_norm.bias"
    for rank in range(3):
        world = World(rank=rank, size=3, device=CPU)
        share = bench(block, FIRST, labels=labels, world=world)
        loss = share.loss(ROWS[:rows])
        torch.autograd.backward(loss)
        added += loss.detach()
        part = share.network.get_parameter(name).grad
        gradient += part if part is not None else 0.0
    close(added, whole.loss(ROWS[:rows]).detach())
    expected = whole.network.get_parameter(name).grad
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-5)


BLOCKS: dict[str, tuple[dict[str, Any], int]] = {
    "simcse-once": ({"single": {"objective": {"kind": "simcse"}}}, 1),
    "simcse-pairs": ({"bi": {"objective": {"kind": "simcse"}}}, 2),
    "ranking": ({"bi": {"objective": {"kind": "multiple-negatives-ranking"}}}, 3),
    "triplet": ({"bi": {"objective": {"kind": "triplet"}}}, 3),
    "cross-entropy": (
        {**CLASSES, "single": {"head": MLP, "objective": {"kind": "cross-entropy"}}},
        1,
    ),
}


@pytest.mark.parametrize("size", [2, 3, 7])
def test_processes_together_read_the_rows_of_one_in_the_same_order(
    bench: MakeBench, size: int
) -> None:
    block, columns = BLOCKS["cross-entropy"]
    made = bench(block, *[FIRST, SECOND, THIRD][:columns], labels=[0, 1, 2, 1, 2])

    def batch(*, rank: int, size: int) -> Batch:
        world = World(rank=rank, size=size, device=CPU)
        return replace(made.losses, world=world).batch("t", ROWS, total=len(ROWS))

    alone = batch(rank=0, size=1)
    shares = [batch(rank=rank, size=size) for rank in range(size)]
    ids = [tokens.ids for share in shares for tokens in share.tokens.values()]
    assert [share.first for share in shares] == list(np.cumsum([0, *[s.own for s in shares]])[:-1])
    assert np.array_equal(np.concatenate(ids), next(iter(alone.tokens.values())).ids)
    assert torch.cat([share.supervision.labels for share in shares]).equal(alone.supervision.labels)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_rank_without_rows_has_loss_0_and_still_goes_backward(
    bench: MakeBench, name: str
) -> None:
    block, columns = BLOCKS[name]
    labels = [0, 1, 2, 1, 2] if name == "cross-entropy" else None
    world = Among(rank=0, size=2, device=CPU)
    made = bench(block, *[FIRST, SECOND, THIRD][:columns], labels=labels, world=world)
    loss = made.loss(ROWS[:1])
    assert loss.item() == 0.0
    torch.autograd.backward(loss)
    for parameter in made.network.parameters():
        assert parameter.grad is None or not parameter.grad.any()


def test_dense_pair_reads_both_orders(bench: MakeBench) -> None:
    head = {"kind": "dense-pair", "activation": "tanh", "dropout": 0.0}
    labels = [0, 1, 1, 0, 1]
    # Short texts: where pairs are cut, the two orders lose different words.
    other = ["a good movie", "learn guitar", "lively", "a cat sits", "is it so"]
    made = bench({**TWO, "cross": {"head": head, "objective": BINARY}}, FIRST, other, labels=labels)
    ab, ba = made.vectors(FIRST, other), made.vectors(other, FIRST)
    parts = [
        made.linear(f"cross.branches.{i}", vectors) for i, vectors in enumerate([ab, ba, ab - ba])
    ]
    raw = made.linear("cross.final", torch.tanh(torch.cat(parts, dim=1)))[:, 0]
    close(made.loss(), F.binary_cross_entropy_with_logits(raw, by_row(labels).float()))


def test_shared_layers_stand_between_vectors_and_head(bench: MakeBench) -> None:
    labels = [0, 1, 2, 1, 2]
    shared = {"name": "common", "hidden": [7], "activation": "tanh"}
    mode = {
        "shared": shared,
        "head": {"kind": "mlp", "dropout": 0.0},
        "objective": {"kind": "cross-entropy"},
    }
    made = bench({**CLASSES, "single": mode}, FIRST, labels=labels)
    common = made.network.shared["common"].layers[0]
    hidden = torch.tanh(F.linear(made.vectors(FIRST), common.weight, common.bias))
    close(made.loss(), F.cross_entropy(made.linear("single.layers.0", hidden), by_row(labels)))


def test_each_mode_has_its_weight(bench: MakeBench) -> None:
    labels = [0, 1, 1, 0, 1]

    def loss(bi: float, cross: float) -> Tensor:
        block = {
            "bi": {"head": FEATURES, "objective": BINARY, "weight": bi},
            "cross": {"head": MLP, "objective": BINARY, "weight": cross},
        }
        return bench({**TWO, **block}, FIRST, SECOND, labels=labels).loss()

    once, twice, thrice = loss(1.0, 1.0), loss(1.0, 2.0), loss(3.0, 1.0)
    close(twice + (thrice - once) / 2, 2 * once)


def test_masked_words_are_guessed_from_the_others(bench: MakeBench) -> None:
    """Against the masked language model of transformers, on the same hidden words."""
    from transformers.models.bert.modeling_bert import BertConfig, BertLMPredictionHead

    block = {"bi": {"objective": {"kind": "masked-language-model", "share": 0.3}}}
    made = bench(block, FIRST, SECOND)
    config = made.network.encoder.config
    losses = replace(
        made.losses,
        masking=Masking(
            mask_id=made.tokenizer.mask_id,
            special_ids=made.tokenizer.special_ids,
            vocabulary=config.vocabulary,
        ),
    )
    torch.manual_seed(0)
    batch = losses.batch("t", ROWS, total=len(ROWS))
    masked = batch.supervision
    assert masked.places is not None
    assert masked.words is not None
    real = masked.words != NOTHING
    places, words = masked.places[real], masked.words[real]
    tokens = batch.tokens["bi"]
    hidden = made.network.encoder(DeviceTokens.from_host(tokens, CPU))
    peer = BertLMPredictionHead(
        BertConfig(vocab_size=config.vocabulary, hidden_size=config.width, hidden_act="gelu")
    )
    ours = made.network.shared["masked-words"]
    with torch.no_grad():
        peer.transform.dense.load_state_dict(ours.dense.state_dict())
        peer.transform.LayerNorm.load_state_dict(ours.norm.state_dict())
        peer.decoder.weight.copy_(made.network.encoder.embeddings.words.weight)
        peer.decoder.bias.zero_()
    each = F.cross_entropy(peer(hidden[places]), words, reduction="none")
    rows = torch.from_numpy(np.repeat(np.arange(len(tokens)), tokens.lengths))[places]
    sentences = [each[rows == row].mean() for row in range(len(tokens))]
    close(losses.loss(batch), torch.stack(sentences).mean())


def test_a_task_may_cut_its_rows_earlier(bench: MakeBench) -> None:
    block = {**CLASSES, "single": {"head": MLP, "objective": {"kind": "cross-entropy"}}}
    labels = [0, 1, 2, 1, 2]
    for limit, longest in ((8, 8), (200, MAX_TOKENS)):
        made = bench({**block, "max_tokens": limit}, SECOND, labels=labels)
        batch = made.losses.batch("t", ROWS, total=4)
        assert batch.tokens["single"].longest == longest
