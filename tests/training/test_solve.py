"""Heads that are solved exactly: the same answers as scikit-learn's on the encoder's vectors."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV

import tercet.training.loop as loop
from tercet.data.examples import read_examples
from tercet.errors import TercetError
from tercet.model import Model
from tercet.model import load as load_on
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.regression import ALPHAS, NEVER, fit_classes, fit_grades
from tercet.training.run import train_recipe

# Runs are trained on the CPU; on a GPU their models would answer in another precision.
load = partial(load_on, device="cpu")
UNIT = {"kind": "mlp", "normalise": True, "dropout": 0.0}
FEATURES = ["u", "v", "absdiff", "product", "cosine"]
SOLVE = {"name": "heads", "solve": True, "freeze": ["encoder"]}
CLASSES: Any = {
    "data": {"layout": "cs224n-sst", "limit": 80},
    "labels": ["0", "1", "2", "3", "4"],
    "single": {"head": UNIT, "objective": {"kind": "cross-entropy"}},
}
TWO: Any = {
    "data": {"layout": "cs224n-quora", "limit": 60},
    "labels": ["no", "yes"],
    "bi": {
        "head": {"kind": "features", "features": FEATURES, "normalise": True, "dropout": 0.0},
        "objective": {"kind": "binary-cross-entropy"},
    },
}
GRADES: Any = {
    "data": {"layout": "cs224n-sts", "limit": 60},
    "range": [0, 5],
    "bi": {
        "head": {"kind": "features", "features": ["absdiff", "product"], "normalise": True},
        "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
    },
}
Train = Callable[..., Path]


@pytest.fixture
def train(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Train:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))

    def run(name: str, *, resume: bool = False, **blocks: Any) -> Path:
        tree = {
            "name": "solved",
            "summary": "A recipe of the tests",
            "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
            "stages": [SOLVE],
            **blocks,
        }
        recipe = Recipe.from_tree(tree, where="solved")
        train_recipe(
            recipe,
            data=sample_data,
            out=tmp_path / name,
            resume=resume,
            device="cpu",
            listener=Silent(),
        )
        return tmp_path / name

    return run


def rows_of(model: Model, task: str, data: Path) -> tuple[list[list[str]], NDArray[Any]]:
    examples = read_examples(model.tasks[task], "train", data)
    assert examples.labels is not None
    return list(examples.texts), examples.labels


def outputs_of(model: Model, task: str, texts: list[list[str]]) -> NDArray[Any]:
    mode = model.resolve_mode(task)
    return model.engine.outputs(task, mode, [model.pieces(column) for column in texts])


def test_classes_are_those_of_logistic_regression(train: Train, sample_data: Path) -> None:
    model = load(train("run", tasks={"sentiment": CLASSES}))
    texts, labels = rows_of(model, "sentiment", sample_data)
    vectors = model.embed(texts[0])
    reference = LogisticRegression(C=1.0, max_iter=1000).fit(vectors, labels)
    # scikit-learn stops before the minimum, at slightly other places for slightly other inputs.
    np.testing.assert_allclose(
        outputs_of(model, "sentiment", texts), reference.decision_function(vectors), atol=5e-3
    )
    found = [each.label for each in model.predict("sentiment", texts[0])]
    assert found == reference.predict(vectors).tolist()


@pytest.mark.parametrize("prior", [None, 0.2])
def test_two_classes_of_pairs_and_their_prior(
    train: Train, sample_data: Path, prior: float | None
) -> None:
    task = TWO if prior is None else {**TWO, "prior": prior}
    model = load(train("run", tasks={"same": task}))
    texts, labels = rows_of(model, "same", sample_data)
    u, v = (model.embed(column) for column in texts)
    parts = [u, v, np.abs(u - v), u * v, (u * v).sum(axis=1, keepdims=True)]
    # Every feature counts alike: each is scaled to the mean length 1 first.
    scaled = [part / np.sqrt((part**2).sum(axis=1).mean()) for part in parts]
    inputs = np.concatenate(scaled, axis=1)
    reference = LogisticRegression(C=1.0, max_iter=1000).fit(inputs, labels)
    odds = reference.decision_function(inputs)
    if prior is not None:
        share = labels.mean()
        odds -= np.log(share / (1 - share)) - np.log(prior / (1 - prior))
    np.testing.assert_allclose(outputs_of(model, "same", texts)[:, 0], odds, atol=5e-3)


def test_grades_are_those_of_ridge_regression(train: Train, sample_data: Path) -> None:
    model = load(train("run", tasks={"similarity": GRADES}))
    texts, labels = rows_of(model, "similarity", sample_data)
    u, v = (model.embed(column) for column in texts)
    scaled = [part / np.sqrt((part**2).sum(axis=1).mean()) for part in (np.abs(u - v), u * v)]
    inputs = np.concatenate(scaled, axis=1)
    reference = RidgeCV(alphas=ALPHAS).fit(inputs, labels / 5.0)
    expected = np.clip(5.0 * reference.predict(inputs), 0.0, 5.0)
    pairs = list(zip(*texts, strict=True))
    np.testing.assert_allclose(model.predict("similarity", pairs), expected, atol=1e-3)


def test_the_ridge_is_the_best_by_leave_one_out_errors() -> None:
    draw = np.random.default_rng(1)
    inputs = draw.normal(size=(30, 4)).astype(np.float32)
    inputs /= np.sqrt((inputs**2).sum(axis=1).mean())
    grades = (inputs @ [1.0, -2.0, 0.0, 0.5] + draw.normal(size=30)).astype(np.float32)

    def errors(alpha: float) -> float:
        kept = [np.arange(30) != row for row in range(30)]
        return sum(
            float(
                Ridge(alpha).fit(inputs[rows], grades[rows]).predict(inputs[~rows])[0]
                - grades[~rows][0]
            )
            ** 2
            for rows in kept
        )

    best = min(ALPHAS, key=errors)
    expected = Ridge(best).fit(inputs, grades).predict(inputs)
    np.testing.assert_allclose(
        fit_grades(inputs, grades).outputs(inputs)[:, 0], expected, atol=1e-5
    )


def random_rows(classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(90, 6)).astype(np.float32)
    labels = np.abs(inputs[:, :classes] + draw.normal(size=(90, classes))).argmax(axis=1)
    # As a whole they have the mean length 1, so that scaling changes nothing.
    return inputs / np.sqrt((inputs.astype(np.float64) ** 2).sum(axis=1).mean()), labels


@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 0.5]])
def test_weights_of_classes(weights: list[float] | None) -> None:
    inputs, labels = random_rows(3)
    given = None if weights is None else np.array(weights)
    found = fit_classes(inputs, labels, outputs=3, class_weights=given)
    by_class = None if weights is None else dict(enumerate(weights))
    reference = LogisticRegression(C=1.0, max_iter=1000, class_weight=by_class).fit(inputs, labels)
    np.testing.assert_allclose(
        found.outputs(inputs), reference.decision_function(inputs), atol=5e-3
    )


def test_balanced_weights_reach_the_solved_head(train: Train, sample_data: Path) -> None:
    model = load(train("run", tasks={"sentiment": {**CLASSES, "class_weights": "balanced"}}))
    texts, labels = rows_of(model, "sentiment", sample_data)
    vectors = model.embed(texts[0])
    reference = LogisticRegression(C=1.0, max_iter=1000, class_weight="balanced")
    reference.fit(vectors, labels)
    found = [each.label for each in model.predict("sentiment", texts[0])]
    assert found == reference.predict(vectors).tolist()


def test_a_class_without_rows_is_never_predicted() -> None:
    inputs, labels = random_rows(3)
    numbers = np.array([0, 2, 4])[labels]
    found = fit_classes(inputs, numbers, outputs=5).outputs(inputs)
    reference = LogisticRegression(C=1.0, max_iter=1000).fit(inputs, numbers)
    np.testing.assert_allclose(found[:, [0, 2, 4]], reference.decision_function(inputs), atol=5e-3)
    assert set(found.argmax(axis=1)) <= {0, 2, 4}
    assert (found[:, [1, 3]] < found[:, [0, 2, 4]].min()).all()


def test_two_of_three_classes_and_only_one() -> None:
    inputs, labels = random_rows(2)
    found = fit_classes(inputs, 2 * labels, outputs=3).outputs(inputs)
    odds = LogisticRegression(C=1.0, max_iter=1000).fit(inputs, labels).decision_function(inputs)
    np.testing.assert_allclose(found[:, 2] - found[:, 0], odds, atol=5e-3)
    assert (found[:, 1] < found[:, [0, 2]].min(axis=1)).all()
    alone = fit_classes(inputs, np.full(90, 1), outputs=3)
    assert (alone.outputs(inputs) == [-NEVER, 0.0, -NEVER]).all()
    odds = fit_classes(inputs, np.zeros(90, np.int64), outputs=1).outputs(inputs)
    np.testing.assert_allclose(odds, np.log(0.5 / 90.5), rtol=1e-6)


def test_several_labels_are_regressions_of_their_own() -> None:
    inputs, _ = random_rows(2)
    draw = np.random.default_rng(3)
    labels = (inputs[:, :3] + 0.2 * draw.normal(size=(90, 3)) > 0.1).astype(np.int64)
    labels[:, 2] = 0
    weights = np.array([1.0, 4.0, 2.0])
    found = fit_classes(inputs, labels, outputs=3, class_weights=weights).outputs(inputs)
    for place in (0, 1):
        reference = LogisticRegression(
            C=1.0, max_iter=1000, class_weight={0: 1.0, 1: weights[place]}
        )
        reference.fit(inputs, labels[:, place])
        np.testing.assert_allclose(found[:, place], reference.decision_function(inputs), atol=5e-3)
    assert (found[:, 2] < -4.0).all()


def test_a_head_without_a_regression_is_refused_and_a_cosine_stays(
    train: Train, tmp_path: Path
) -> None:
    hinge = {"kind": "hinge"}
    task = {**GRADES, "bi": {**GRADES["bi"], "objective": hinge}}
    with pytest.raises(
        TercetError, match=r"task `similarity`: objective `hinge` has no regression"
    ):
        train("hinge", tasks={"similarity": task})
    cosine = {**GRADES, "bi": {**GRADES["bi"], "head": {"kind": "cosine"}}}
    tasks = {"similarity": cosine, "sentiment": CLASSES}
    model = load(train("cosine", tasks=tasks, stages=[{"solve": True}]))
    assert model.predict("similarity", [("a film", "a film")])[0] == pytest.approx(5.0, abs=1e-4)


STEPS = {"steps": 3, "batch": 8, "optimiser": {"lr": 1e-2}}
STAGES = [SOLVE, {**STEPS, "name": "tune"}, {**SOLVE, "name": "last"}]


@pytest.mark.parametrize(
    ("dying", "call", "resumed"),
    [("solve", 1, 0), ("step", 1, 1), ("step", 3, 3), ("solve", 2, 4), ("finish", 1, 5)],
)
def test_a_run_killed_around_a_solved_stage_resumes_exactly(
    train: Train, monkeypatch: pytest.MonkeyPatch, dying: str, call: int, resumed: int
) -> None:
    """dying: what dies at its `call`; resumed: the step that the resumed run starts after"""
    blocks = {"tasks": {"sentiment": CLASSES}, "stages": STAGES, "checkpoint": {"every": 1}}
    whole = train("whole", **blocks)
    calls: list[int] = []

    def fatal(real: Any) -> Any:
        def maybe(*arguments: Any, **options: Any) -> Any:
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
            return real(*arguments, **options)

        return maybe

    import tercet.training.run as run

    owner, name = {
        "solve": (loop, "solve_heads"),
        "step": (loop.Update, "__call__"),
        "finish": (run.Run, "_finish"),
    }[dying]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fatal(getattr(owner, name)))
        with pytest.raises(KeyboardInterrupt):
            train("killed", **blocks)
    said: list[str] = []
    monkeypatch.setattr(Silent, "say", lambda self, sentence: said.append(sentence))
    killed = train("killed", resume=True, **blocks)
    start = f"Resuming after step {resumed}." if resumed else "No checkpoint to resume from: "
    assert any(sentence.startswith(start) for sentence in said)
    for file in ("model.safetensors", "heads.safetensors"):
        assert (whole / "model" / file).read_bytes() == (killed / "model" / file).read_bytes()
    logs = [json.loads(line) for line in (killed / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in logs if "dev" in line] == [1, 4, 5]


@pytest.mark.parametrize(("stage", "step"), [(1, 1), (2, 5)])
def test_an_interrupt_while_heads_are_solved_is_not_lost(
    train: Train, monkeypatch: pytest.MonkeyPatch, stage: int, step: int
) -> None:
    blocks = {"tasks": {"sentiment": CLASSES}, "stages": STAGES}
    real, calls = loop.solve_heads, list[int]()

    def interrupted(*arguments: Any, **options: Any) -> None:
        calls.append(1)
        if len(calls) == stage:
            signal.raise_signal(signal.SIGINT)
        real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "solve_heads", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train("run", **blocks)
    assert len(calls) == stage
    said: list[str] = []
    monkeypatch.setattr(Silent, "say", lambda self, sentence: said.append(sentence))
    train("run", resume=True, **blocks)
    assert f"Resuming after step {step}." in said


def test_given_decisions_reach_the_model_folder_before_fitted_ones(train: Train) -> None:
    given = {"temperature": 2.5, "shift": 0.25}
    task = {**CLASSES, "held_out": 0.2, "single": {**CLASSES["single"], "scaling": given}}
    fitted = {**TWO, "held_out": 0.2}
    run = train("run", tasks={"sentiment": task, "same": fitted})
    info = load(run).info
    assert info.scalings is not None
    assert info.scalings["sentiment"]["single"].model_dump() == given
    assert info.scalings["same"]["bi"].temperature != 1.0
    stored = json.loads((run / "model" / "tercet.json").read_text())
    assert stored["scalings"]["sentiment"] == {"single": given}


def test_a_solved_stage_leaves_the_encoder_as_it_is(train: Train, tiny_encoder: Path) -> None:
    run = train("run", tasks={"sentiment": CLASSES})
    trained = load_file(run / "model" / "model.safetensors")
    untouched = load(tiny_encoder).network.encoder
    from tercet.nn.fingerprint import fingerprint

    assert fingerprint(load(run).network.encoder) == fingerprint(untouched)
    assert trained
    summary = json.loads((run / "summary.json").read_text())
    assert summary["steps"] == summary["kept"] == 1


def test_given_thresholds_reach_the_model_folder(train: Train, tmp_path: Path) -> None:
    from tercet.training.assessment import with_given_decisions

    info = load(train("run", tasks={"sentiment": CLASSES})).info
    tags = {
        **CLASSES,
        "labels": ["a", "b"],
        "multi_label": True,
        "single": {
            "head": UNIT,
            "objective": {"kind": "binary-cross-entropy"},
            "thresholds": [0.3, 0.6],
        },
    }
    spec = type(info.tasks["sentiment"]).model_validate(tags)
    update = {"tasks": {"tags": spec}, "thresholds": {"tags": {"single": [0.5, 0.5]}}}
    found = with_given_decisions(info.model_copy(update=update), {"tags": spec})
    assert found.thresholds == {"tags": {"single": [0.3, 0.6]}}
    assert found.scalings is None


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({**GRADES, "bi": {**GRADES["bi"], "scaling": {"temperature": 2}}}, "predicts classes"),
        ({**TWO, "bi": {**TWO["bi"], "thresholds": [0.5, 0.5]}}, r"needs `multi_label = true`"),
    ],
)
def test_decisions_that_do_not_fit_are_refused(task: Any, message: str) -> None:
    with pytest.raises(TercetError, match=message):
        Recipe.from_tree(
            {
                "name": "x",
                "summary": "x",
                "encoder": {"name": "x"},
                "tasks": {"same": task},
                "stages": [SOLVE],
            },
            where="x",
        )
