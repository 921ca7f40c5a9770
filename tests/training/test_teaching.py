"""Teachers: what they say of rows, how it is kept, and how a run learns from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tercet
from tercet.data import examples
from tercet.data.examples import read_examples
from tercet.data.held_out import held_out_rows
from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.scaling import calibrate
from tercet.evaluation.suite import Context
from tercet.evaluation.suites.tasks import Tasks
from tercet.infer.engine import Engine
from tercet.network.network import Network
from tercet.recipe import Recipe
from tercet.specs import PairsSpec, TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.distributed import World
from tercet.training.listener import Silent
from tercet.training.losses import Losses
from tercet.training.pairing import make_pairs
from tercet.training.run import train_recipe
from tercet.training.teaching import Teachers

CPU = torch.device("cpu")
MLP = {"kind": "mlp", "dropout": 0.0}
CROSS_ENTROPY = {"kind": "cross-entropy"}
SQUARES = {"kind": "mean-squared-error", "targets": [0, 1]}
SENTIMENT: dict[str, Any] = {
    "data": {"layout": "cs224n-sst", "limit": 24},
    "labels": ["0", "1", "2", "3", "4"],
    "single": {"head": MLP, "objective": CROSS_ENTROPY},
}
PARAPHRASE: dict[str, Any] = {
    "data": {"layout": "cs224n-quora", "limit": 24},
    "labels": ["no", "yes"],
    "bi": {
        "head": {"kind": "features", "features": ["u", "v"], "dropout": 0.0},
        "objective": CROSS_ENTROPY,
    },
    "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
}
SIMILARITY: dict[str, Any] = {
    "data": {"layout": "cs224n-sts", "limit": 24},
    "range": [0, 5],
    "bi": {"head": {"kind": "cosine"}, "objective": SQUARES},
    "cross": {"head": MLP, "objective": SQUARES},
}
TASKS = {"sentiment": SENTIMENT, "paraphrase": PARAPHRASE, "similarity": SIMILARITY}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))


def write_tree(encoder: Path, tasks: dict[str, Any], **blocks: Any) -> dict[str, Any]:
    return {
        "name": "taught",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(encoder), "max_tokens": 24},
        "tasks": tasks,
        "stages": [{"steps": 4, "batch": 6, "optimiser": {"lr": 1e-3}}],
        "evaluation": {"every": 0, "keep": "last"},
        "checkpoint": {"every": 2, "keep": 5},
        **blocks,
    }


@pytest.fixture(scope="session")
def teachers(
    tiny_encoder: Path, sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Two models of all three tasks, trained for a few steps."""
    folder = tmp_path_factory.mktemp("teachers")
    found = []
    for seed in (1, 2):
        tree = write_tree(tiny_encoder, TASKS, seed=seed)
        recipe = Recipe.from_tree(tree, where="teacher")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TERCET_CACHE", str(folder / "cache"))
            out = folder / str(seed)
            train_recipe(recipe, data=sample_data, out=out, device="cpu", listener=Silent())
        found.append(str(out))
    return found


@pytest.fixture
def train(tiny_encoder: Path, sample_data: Path, tmp_path: Path) -> Callable[..., Path]:
    def run(
        tasks: dict[str, Any], *, out: str = "run", resume: bool = False, **blocks: Any
    ) -> Path:
        recipe = Recipe.from_tree(write_tree(tiny_encoder, tasks, **blocks), where="taught")
        folder = tmp_path / out
        train_recipe(
            recipe, data=sample_data, out=folder, resume=resume, device="cpu", listener=Silent()
        )
        return folder

    return run


def taught(block: dict[str, Any], folder: str | list[str], **keys: Any) -> dict[str, Any]:
    return {**block, "teacher": {"folder": folder, **keys}}


def ask(name: str, block: dict[str, Any], data: Path, *, width: int = 32) -> np.ndarray:
    task = TaskSpec.model_validate(block)
    texts = read_examples(task, "train", data).texts
    return Teachers(device=CPU, listener=Silent()).targets(name, task, texts, width=width)


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-values))


def test_targets_are_the_teachers_predictions(teachers: list[str], sample_data: Path) -> None:
    model = tercet.load(teachers[0], device="cpu")
    sentences = read_examples(TaskSpec.model_validate(SENTIMENT), "train", sample_data).texts[0]
    found = ask("sentiment", taught(SENTIMENT, teachers[0]), sample_data)
    np.testing.assert_allclose(found, model.predictions("sentiment", sentences), rtol=1e-5)

    read = read_examples(TaskSpec.model_validate(SIMILARITY), "train", sample_data).texts
    pairs = list(zip(*read, strict=True))
    found = ask("similarity", taught(SIMILARITY, teachers[0]), sample_data)
    np.testing.assert_allclose(found[:, 0], model.predictions("similarity", pairs), rtol=1e-5)


def test_an_ensemble_and_several_modes_are_averaged_at_the_temperature(
    teachers: list[str], sample_data: Path
) -> None:
    block = taught(PARAPHRASE, teachers, modes=["cross", "bi"], temperature=2.0)
    found = ask("paraphrase", block, sample_data)
    read = read_examples(TaskSpec.model_validate(PARAPHRASE), "train", sample_data).texts
    parts = []
    for folder in teachers:
        model = tercet.load(folder, device="cpu")
        columns = [model.pieces(column) for column in read]
        joint = model.engine.outputs("paraphrase", "cross", columns)[:, 0]
        apart = model.engine.outputs("paraphrase", "bi", columns)
        parts += [sigmoid(joint / 2.0), sigmoid((apart[:, 1] - apart[:, 0]) / 2.0)]
    np.testing.assert_allclose(found[:, 1], np.mean(parts, axis=0), rtol=1e-4)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)


def test_outputs_are_computed_once_and_for_each_text_and_teacher_anew(
    teachers: list[str], sample_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[str] = []
    outputs = Engine.outputs

    def noted(self: Engine, task: str, *arguments: Any, **options: Any) -> Any:
        computed.append(task)
        return outputs(self, task, *arguments, **options)

    monkeypatch.setattr(Engine, "outputs", noted)
    block = taught(SENTIMENT, teachers[0])
    first = ask("sentiment", block, sample_data)
    again = ask("sentiment", taught(SENTIMENT, teachers[0], weight=1.0), sample_data)
    assert (first == again).all()
    ask("sentiment", taught(SENTIMENT, teachers[0], temperature=3.0), sample_data)
    assert computed == ["sentiment"]
    ask("sentiment", taught(SENTIMENT, teachers[1]), sample_data)
    fewer = {**SENTIMENT, "data": {"layout": "cs224n-sst", "limit": 20}}
    assert len(ask("sentiment", taught(fewer, teachers[0]), sample_data)) == 20
    assert len(computed) == 3


def test_vectors_of_a_plain_encoder(tiny_encoder: Path, sample_data: Path) -> None:
    block: dict[str, Any] = {
        "data": {"layout": "cs224n-quora", "limit": 9},
        "bi": {"objective": {"kind": "teacher-vectors"}},
        "teacher": {"folder": str(tiny_encoder)},
    }
    found = ask("kept", block, sample_data)
    read = read_examples(TaskSpec.model_validate(block), "train", sample_data).texts
    model = tercet.load(tiny_encoder, device="cpu")
    expected = [model.engine.vectors(model.pieces(column)) for column in read]
    np.testing.assert_allclose(found, np.concatenate(expected, axis=1), rtol=1e-5)
    with pytest.raises(TercetError, match="32 wide, but the encoder's are 48"):
        ask("kept", block, sample_data, width=48)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"task": "mood"}, "no task `mood`"),
        ({"task": "paraphrase"}, "other labels for `paraphrase`"),
        ({"modes": ["cross"]}, "cannot teach it in mode `cross`; it has single"),
    ],
)
def test_a_teacher_that_does_not_fit_is_told(
    teachers: list[str], sample_data: Path, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(TercetError, match=message):
        ask("sentiment", taught(SENTIMENT, teachers[0], **keys), sample_data)


def test_other_weights_under_a_known_name_teach_nothing(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_encoder, tmp_path / "shelf" / "all-minilm-l6-v2")
    monkeypatch.setenv("TERCET_WEIGHTS", str(tmp_path / "shelf"))
    block: dict[str, Any] = {
        "data": {"layout": "cs224n-quora", "limit": 9},
        "bi": {"objective": {"kind": "teacher-vectors"}},
        "teacher": {"folder": "all-minilm-l6-v2"},
    }
    with pytest.raises(TercetError, match=r"`kept`: .* holds other weights than all-minilm-l6-v2"):
        ask("kept", block, sample_data)


def test_an_absent_teacher_is_told_with_its_recipe(sample_data: Path) -> None:
    block = taught(SENTIMENT, "runs/absent/one", recipe="tercet/base")
    with pytest.raises(TercetError, match=r"`sentiment` \(made by recipe tercet/base\): There is"):
        ask("sentiment", block, sample_data)


FIRST = ["a fine film", "how do i learn the guitar?", "dull", "the cat sits on the mat", "it is"]
SECOND = ["a good movie indeed", "learn guitar", "lively and long", "a cat sits", "is it so"]
ROWS = np.array([4, 0, 2, 3])


@pytest.fixture
def make_losses(
    make_network: Callable[..., Network],
    make_table: Callable[..., TaskTable],
    tokenizer: Tokenizer,
) -> Callable[..., Losses]:
    def make(
        block: dict[str, Any],
        *columns: list[str],
        labels: list[Any] | None = None,
        targets: np.ndarray | None = None,
        dropout: float = 0.0,
    ) -> Losses:
        return Losses(
            network=make_network({"t": block}, dropout=dropout).train(),
            tasks={"t": TaskSpec.model_validate(block)},
            tables={"t": make_table(*columns, labels=labels)},
            template=tokenizer.template,
            max_tokens=24,
            world=World(rank=0, size=1, device=CPU),
            targets={} if targets is None else {"t": targets},
        )

    return make


def soft(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).dirichlet(np.ones(shape[1]), shape[0]).astype(np.float32)


def loss_of(losses: Losses, rows: np.ndarray = ROWS) -> torch.Tensor:
    return losses.loss(losses.batch("t", rows, total=len(ROWS)))


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_labels_and_teacher_share_the_loss(
    make_losses: Callable[..., Losses], weight: float
) -> None:
    block = taught(SENTIMENT, "somewhere", weight=weight, temperature=2.0)
    labels, targets = [0, 4, 2, 1, 3], soft(5, 5)
    read = labels if weight < 1.0 else None
    losses = make_losses(block, FIRST, labels=read, targets=targets)
    raw = losses.network.outputs("t", "single", tokens_of(losses, "single"))
    teacher = torch.from_numpy(targets[ROWS])
    kl = F.kl_div((raw / 2.0).log_softmax(dim=-1), teacher, reduction="batchmean")
    hard = F.cross_entropy(raw, torch.tensor(labels)[ROWS])
    torch.testing.assert_close(loss_of(losses), weight * 4.0 * kl + (1.0 - weight) * hard)
    parts = loss_of(losses, ROWS[:1]) + loss_of(losses, ROWS[1:])
    torch.testing.assert_close(parts, loss_of(losses))


def tokens_of(losses: Losses, mode: Any) -> Any:
    from tercet.nn.device_tokens import DeviceTokens

    tokens = losses.tables["t"].tokens(ROWS, mode=mode, template=losses.template, max_tokens=24)
    return DeviceTokens.from_host(tokens, CPU)


def test_both_modes_learn_from_one_teacher(make_losses: Callable[..., Losses]) -> None:
    labels, targets = [0.0, 5.0, 2.5, 1.25, 4.0], 5.0 * np.random.rand(5, 1).astype(np.float32)
    block = taught(SIMILARITY, "somewhere", weight=0.25)
    losses = make_losses(block, FIRST, SECOND, labels=labels, targets=targets)
    expected = torch.zeros(())
    for mode in ("cross", "bi"):
        raw = losses.network.outputs("t", mode, tokens_of(losses, mode))[:, 0]
        grades = torch.from_numpy(targets[ROWS, 0])
        expected = expected + 0.25 * F.mse_loss(raw, grades / 5.0)
        expected = expected + 0.75 * F.mse_loss(raw, torch.tensor(labels)[ROWS] / 5.0)
    torch.testing.assert_close(loss_of(losses), expected)


def test_kept_vectors_of_both_columns(make_losses: Callable[..., Losses]) -> None:
    block: dict[str, Any] = {
        "data": {"layout": "cs224n-quora"},
        "bi": {"objective": {"kind": "teacher-vectors", "distance": "euclidean"}},
        "teacher": {"folder": "somewhere"},
    }
    targets = np.random.default_rng(2).normal(size=(5, 64)).astype(np.float32)
    losses = make_losses(block, FIRST, SECOND, targets=targets)
    u, v = losses.network.columns(tokens_of(losses, "bi"), rows=len(ROWS))
    kept = torch.from_numpy(targets[ROWS])
    expected = 0.5 * (F.mse_loss(u, kept[:, :32]) + F.mse_loss(v, kept[:, 32:]))
    torch.testing.assert_close(loss_of(losses), expected)


@pytest.mark.parametrize("mode", ["single", "bi", "cross"])
def test_r_drop_sends_rows_through_twice(make_losses: Callable[..., Losses], mode: str) -> None:
    base = {"single": SENTIMENT, "bi": PARAPHRASE, "cross": PARAPHRASE}[mode]
    block = {key: value for key, value in base.items() if key not in ("single", "bi", "cross")}
    columns = [FIRST] if mode == "single" else [FIRST, SECOND]
    labels = [0, 1, 1, 0, 1]

    def losses(r_drop: float, dropout: float) -> Losses:
        modes = {mode: {**base[mode], "r_drop": r_drop}}
        return make_losses({**block, **modes}, *columns, labels=labels, dropout=dropout)

    # Without dropout the two agree, and their mean is the plain loss.
    torch.testing.assert_close(loss_of(losses(3.0, 0.0)), loss_of(losses(0.0, 0.0)))
    seen: list[torch.Tensor] = []
    made = losses(3.0, 0.3)
    head = made.network.heads_of("t")[mode]
    head.register_forward_hook(lambda module, inputs, out: seen.append(out))
    torch.manual_seed(0)
    loss = loss_of(made)
    objective = made.network.objectives["t", mode]
    first, second = seen[0].chunk(2)
    assert not torch.isclose(first, second).any()
    own = torch.tensor(labels)[ROWS]
    hard = 0.5 * (objective.loss(first, own, total=4) + objective.loss(second, own, total=4))
    apart = objective.disagreement(first, second, total=4)
    torch.testing.assert_close(loss, hard + 3.0 * apart)
    taught_too = taught({**block, mode: {**base[mode], "r_drop": 1.0}}, "somewhere")
    targets = soft(5, len(base["labels"]))
    assert torch.isfinite(
        loss_of(make_losses(taught_too, *columns, labels=labels, targets=targets, dropout=0.3))
    )


def all_taught(teachers: list[str], encoder: Path) -> dict[str, Any]:
    """Every way to learn from teachers at once."""
    return {
        "sentiment": taught({**SENTIMENT, "held_out": 0.25}, teachers, temperature=2.0),
        "paraphrase": taught(PARAPHRASE, teachers[0]),
        "similarity": taught(SIMILARITY, teachers[1], weight=0.8),
        "made": {
            "like": "paraphrase",
            "data": {
                "layout": "cs224n-sst",
                "limit": 24,
                "pairs": {"random": 9, "nearest": 15, "among": 3},
            },
            "teacher": {"folder": teachers, "weight": 1},
        },
        "kept": {
            "data": {"layout": "cs224n-sts", "limit": 24},
            "bi": {"objective": {"kind": "teacher-vectors"}},
            "teacher": {"folder": str(encoder)},
        },
    }


def test_a_taught_run_resumes_exactly_and_asks_nobody_again(
    train: Callable[..., Path],
    teachers: list[str],
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = all_taught(teachers, tiny_encoder)
    stages = [{"steps": 12, "batch": 6, "optimiser": {"lr": 1e-3}}]
    whole = train(tasks, out="whole", stages=stages)
    sewn = tmp_path / "sewn"
    shutil.copytree(whole, sewn)
    shutil.rmtree(sewn / "model")
    (sewn / "summary.json").unlink()
    for step in (8, 10, 12):
        shutil.rmtree(sewn / "checkpoints" / f"step-{step:08d}")
    requested = property(lambda teacher: pytest.fail("asked again"))
    monkeypatch.setattr("tercet.training.teaching._Teacher.engine", requested)
    train(tasks, out="sewn", resume=True, stages=stages)
    for file in ("metrics.jsonl", "model/model.safetensors", "model/heads.safetensors"):
        assert (sewn / file).read_bytes() == (whole / file).read_bytes()
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    info = (whole / "model" / "tercet.json").read_text("utf-8")
    assert teachers[0] not in info
    card = (whole / "model" / "README.md").read_text("utf-8")
    assert "teacher: 1 and 2" in card
    trained = {task for line in lines for task in line.get("loss", {})}
    assert trained == set(tasks)
    assert set(lines[-1]["dev"]) == {"sentiment", "paraphrase", "similarity"}


def test_a_task_like_another_trains_its_heads(
    train: Callable[..., Path], teachers: list[str], tiny_encoder: Path
) -> None:
    tasks = all_taught(teachers, tiny_encoder)
    stages = [{"steps": 3, "batch": 6, "tasks": ["made"], "freeze": ["encoder"]}]
    model = tercet.load(train(tasks, stages=stages), device="cpu")
    assert list(model.tasks) == ["sentiment", "paraphrase", "similarity"]
    fresh = tercet.load(
        train(
            tasks, out="fresh", stages=[{**stages[0], "tasks": ["kept"], "steps": 1, "freeze": []}]
        ),
        device="cpu",
    )
    for name, before in fresh.network.head_state().items():
        same = torch.equal(before, model.network.head_state()[name])
        assert same == (not name.startswith("paraphrase.")), name
    with pytest.raises(TercetError, match="`made` trained the heads of `paraphrase`"):
        model.predict("made", [("a", "b")])


def test_a_task_like_another_with_a_mode_of_its_own_trains_only_that_head(
    train: Callable[..., Path],
) -> None:
    more = {"data": PARAPHRASE["data"], "like": "paraphrase", "cross": PARAPHRASE["cross"]}
    tasks = {"paraphrase": PARAPHRASE, "more": more}
    stages = [{"steps": 2, "batch": 6, "tasks": ["more"], "freeze": ["encoder"]}]
    run = train(tasks, stages=stages)
    fresh = train(tasks, out="fresh", stages=[{**stages[0], "optimiser": {"lr": 1e-30}}])
    before, after = (tercet.load(each, device="cpu").network.head_state() for each in (fresh, run))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert changed == {name for name in before if name.startswith("paraphrase.cross.")}
    # What is written down says the same when it is read again.
    known = Recipe.load(run / "recipe.toml").tasks
    assert (list(known["more"].modes), list(known["paraphrase"].modes)) == (
        ["cross"],
        ["cross", "bi"],
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"like": "mood"}, "is like `mood`, but no task"),
        ({"labels": ["a", "b"]}, "heads of `paraphrase` and needs the same labels"),
        (
            {
                "cross": {
                    "head": {**MLP, "hidden": [3]},
                    "objective": {"kind": "binary-cross-entropy"},
                }
            },
            "same head, shared layers and kind of objective in mode `cross`",
        ),
        ({"teacher": {"folder": "x"}}, "need a `teacher` with `weight = 1`"),
        ({"teacher": {"folder": "x", "weight": 0}}, "greater than 0"),
    ],
)
def test_what_is_unlike_or_untaught_is_told(
    teachers: list[str], tiny_encoder: Path, change: dict[str, Any], message: str
) -> None:
    tasks = all_taught(teachers, tiny_encoder)
    tasks["made"] |= change
    with pytest.raises(TercetError, match=message):
        Recipe.from_tree(write_tree(tiny_encoder, tasks), where="taught")


def test_pairs_join_different_sentences_near_ones_among_them(
    make_network: Callable[..., Network],
    make_table: Callable[..., TaskTable],
    tokenizer: Tokenizer,
) -> None:
    sentences = [*FIRST, *SECOND, FIRST[0], FIRST[0]]
    texts = make_table(sentences).columns[0]
    engine = Engine(make_network({}), tokenizer.template, 24)

    def pairs(**keys: int) -> tuple[np.ndarray, np.ndarray]:
        return make_pairs(texts, PairsSpec(**keys), engine=engine, listener=Silent())

    first, second = pairs(random=200)
    assert all(sentences[a] != sentences[b] for a, b in zip(first, second, strict=True))
    assert set(first) == set(second) == set(range(10))
    assert np.array_equal(np.stack(pairs(random=200)), np.stack([first, second]))
    assert not np.array_equal(np.stack(pairs(random=200, seed=1)), np.stack([first, second]))

    vectors = engine.vectors(texts)[:10]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T - 3.0 * np.eye(10)
    first, second = pairs(nearest=10, among=1)
    assert sorted(first) == list(range(10))
    assert (second == cosines[first].argmax(axis=1)).all()
    first, second = pairs(nearest=30, among=3)
    ranks = (cosines[first] > cosines[first, second][:, None]).sum(axis=1)
    assert set(ranks) == {0, 1, 2}


def test_held_out_rows_never_train(
    train: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Losses] = []
    loss = Losses.loss

    def noted(self: Losses, batch: Any) -> Any:
        seen.append(self)
        return loss(self, batch)

    monkeypatch.setattr(Losses, "loss", noted)
    phrases = {"like": "sentiment", "data": {"layout": "cs224n-sst", "limit": 30}}
    train({"sentiment": {**SENTIMENT, "held_out": 0.25}, "phrases": phrases})
    # The same sentences come again under another name, and these too are left out.
    assert 0 < len(seen[0].tables["phrases"]) <= 24
    lines = seen[0].tables["sentiment"].lines
    left_out = held_out_rows(24, share=0.25)
    assert len(lines) == 18
    # The header is line 1, and rows are counted from 0.
    assert not set(lines - 2) & set(left_out)


def test_a_run_is_calibrated_on_its_held_out_rows(
    train: Callable[..., Path], sample_data: Path
) -> None:
    run = train({"sentiment": {**SENTIMENT, "held_out": 0.25}, "similarity": SIMILARITY})
    model = tercet.load(run, device="cpu")
    assert model.info.scalings == calibrate(model, sample_data).scalings
    assert set(model.info.scalings) == {"sentiment"}
    assert tercet.load(train({"sentiment": SENTIMENT}, out="other")).info.scalings is None


def test_figures_of_a_run_are_those_of_its_calibrated_model(
    train: Callable[..., Path], sample_data: Path
) -> None:
    task = {key: value for key, value in PARAPHRASE.items() if key != "bi"}
    run = train({"paraphrase": {**task, "held_out": 0.25, "prior": 0.02}})
    model = tercet.load(run, device="cpu")
    found = Tasks().run(Context(EncodedTexts(model), sample_data)).tasks["paraphrase"]
    assert model.info.metrics is not None
    for mode, result in model.info.metrics["paraphrase"].items():
        measured = {name: one.value for name, one in found.modes[mode].metrics.items()}
        assert measured == pytest.approx(result)


def test_rows_of_dev_never_train_by_another_name(train: Callable[..., Path]) -> None:
    again = {"layout": "cs224n-sst", "train": ["ids-sst-dev.csv"], "limit": 24}
    with pytest.raises(TercetError, match="`again`: no row is left to train on"):
        train({"sentiment": SENTIMENT, "again": {"like": "sentiment", "data": again}})


def test_files_are_read_once_per_task_and_split(
    train: Callable[..., Path], teachers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[tuple[str, str]] = []
    read = examples.read_examples

    def counted(task: TaskSpec, split: Any, data_dir: Path) -> Any:
        reads.append(("phrases" if task.like else "sentiment", split))
        return read(task, split, data_dir)

    monkeypatch.setattr(examples, "read_examples", counted)
    teacher = {"folder": teachers[:1]}
    phrases = {"like": "sentiment", "data": {"layout": "cs224n-sst", "limit": 30}}
    train(
        {
            "sentiment": {**SENTIMENT, "held_out": 0.25, "teacher": teacher},
            "phrases": {**phrases, "teacher": teacher},
        }
    )
    assert sorted(reads) == [("phrases", "train"), ("sentiment", "dev"), ("sentiment", "train")]
