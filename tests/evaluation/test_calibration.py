from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, precision_recall_curve

import tercet
from tercet.data.examples import read_examples
from tercet.data.held_out import held_out_rows
from tercet.errors import TercetError
from tercet.evaluation.calibration import BINS, choose_threshold, measure_calibration
from tercet.evaluation.scaling import calibrate, fit_scaling, judged_rows
from tercet.evaluation.suites.tasks import Tasks
from tercet.folders.model_card import ModelInfo
from tercet.model import Model


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 80),
    classes=st.integers(2, 5),
    decimals=st.sampled_from([0, 1, 2, 8]),
)
def test_bins_and_error_agree_with_scikit_learn(
    seed: int, rows: int, classes: int, decimals: int
) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=rows)
    # Few decimals make ties and constant predictions.
    probabilities = generator.dirichlet(np.ones(classes), size=rows).round(decimals)
    confidence, said = probabilities.max(axis=1), probabilities.argmax(axis=1)
    found = measure_calibration(labels, probabilities)
    right = (said == labels).astype(int)
    accuracies, confidences = calibration_curve(right, confidence, n_bins=BINS)
    filled = [one for one in found.bins if one.rows]
    assert [one.accuracy for one in filled] == pytest.approx(accuracies.tolist())
    assert [one.confidence for one in filled] == pytest.approx(confidences.tolist())
    weights = np.array([one.rows for one in filled]) / rows
    assert found.ece == pytest.approx(float(weights @ np.abs(accuracies - confidences)))
    assert sum(one.rows for one in found.bins) == rows
    assert len(found.bins) == BINS


def test_likelihood_agrees_with_scikit_learn() -> None:
    generator = np.random.default_rng(1)
    probabilities, labels = generator.dirichlet(np.ones(3), size=50), generator.integers(3, size=50)
    expected = log_loss(labels, probabilities, labels=[0, 1, 2])
    assert measure_calibration(labels, probabilities).nll == pytest.approx(expected)


def test_two_classes_may_come_in_one_column() -> None:
    labels, ones = [1, 0, 1, 1], np.array([0.9, 0.2, 0.4, 0.5])
    both = np.stack([1.0 - ones, ones], axis=1)
    assert measure_calibration(labels, ones) == measure_calibration(labels, both)


def test_constant_and_empty_predictions() -> None:
    always = measure_calibration([0, 1, 1, 1], [1.0, 1.0, 1.0, 1.0])
    assert always.ece == pytest.approx(0.25)
    assert np.isfinite(always.nll)
    nothing = measure_calibration([], np.empty((0, 3)))
    assert (nothing.ece, nothing.nll) == (None, None)
    assert nothing.to_json()["bins"][0] == {
        "from": 0.0,
        "to": pytest.approx(1 / BINS),
        "rows": 0,
        "confidence": None,
        "accuracy": None,
    }


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), temperature=st.floats(0.3, 4.0), binary=st.booleans())
def test_a_temperature_undoes_the_one_that_spoilt_the_outputs(
    seed: int, temperature: float, binary: bool
) -> None:
    generator = np.random.default_rng(seed)
    raw = generator.normal(size=(4000, 2 if binary else 4)) * 2.0
    if binary:
        raw[:, 0] = 0.0
    chances = softmax(raw, axis=1).cumsum(axis=1)
    labels = (generator.random((4000, 1)) > chances).sum(axis=1).clip(max=raw.shape[1] - 1)
    outputs = (raw[:, 1:] if binary else raw) * temperature
    fitted = fit_scaling(outputs, labels)
    assert fitted.temperature == pytest.approx(temperature, rel=0.15)
    assert fitted.shift == 0.0
    assert fit_scaling(outputs, labels) == fitted


def test_a_temperature_allows_for_another_prior() -> None:
    generator = np.random.default_rng(3)
    labels = (generator.random(40_000) < 0.37).astype(int)
    noise = (1.0 + 3.0 * labels) * generator.normal(size=len(labels))
    outputs = (3.0 * (labels - 0.5) + noise)[:, None]
    rarer = np.flatnonzero((labels == 0) | (generator.random(len(labels)) < 0.2))
    wanted = fit_scaling(outputs, labels).temperature
    share = float(labels.mean())
    found = fit_scaling(outputs[rarer], labels[rarer], prior=share)
    assert found.temperature == pytest.approx(wanted, rel=0.1)
    unweighted = fit_scaling(outputs[rarer], labels[rarer])
    assert unweighted.temperature != pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize("prior", [None, 0.2])
def test_a_scaling_with_a_shift_is_logistic_regression(prior: float | None) -> None:
    generator = np.random.default_rng(5)
    labels = (generator.random(3000) < 0.45).astype(int)
    outputs = (4.0 * labels - 0.5 + 3.0 * generator.normal(size=3000))[:, None]
    counts = np.bincount(labels)
    shares = counts / len(labels) if prior is None else np.array([1 - prior, prior])
    weights = (shares / counts)[labels]
    # Each row stands there as both classes: as its own with n + 1 of n + 2 of its weight.
    sure = ((counts + 1) / (counts + 2))[labels]
    reference = LogisticRegression(C=np.inf, tol=1e-10).fit(
        np.concatenate([outputs, outputs]),
        np.concatenate([labels, 1 - labels]),
        np.concatenate([weights * sure, weights * (1 - sure)]) * 3000,
    )
    found = fit_scaling(outputs, labels, shifted=True, prior=prior)
    assert 1 / found.temperature == pytest.approx(reference.coef_.item(), rel=1e-3)
    assert found.shift == pytest.approx(reference.intercept_.item(), abs=1e-3)


def test_a_few_rows_do_not_shift_far() -> None:
    found = fit_scaling([[0.3], [0.1], [0.2]], [1, 1, 1], shifted=True)
    # Three of three: four of five at the most.
    assert 0.5 < 1 / (1 + np.exp(-(0.2 / found.temperature + found.shift))) < 0.81


def test_only_one_output_is_shifted() -> None:
    outputs = np.random.default_rng(0).normal(size=(50, 3))
    assert fit_scaling(outputs, np.zeros(50, int), shifted=True).shift == 0.0


@pytest.mark.parametrize(("rows", "most"), [(2, 0.84), (9, 0.96), (300, 0.999)])
def test_a_few_rows_that_are_all_right_do_not_make_it_certain(rows: int, most: float) -> None:
    outputs = np.tile([3.0, 0.0], (rows, 1))
    found = fit_scaling(outputs, np.zeros(rows, int))
    assert rows / (rows + 1) < softmax(np.array([3.0, 0.0]) / found.temperature)[0] < most


def test_a_temperature_stays_within_bounds_where_every_row_is_wrong() -> None:
    wrong = fit_scaling([[3.0, 0.0], [0.0, 3.0]], [1, 0])
    assert 19 < wrong.temperature <= 20
    assert abs(fit_scaling([[3.0], [-3.0]], [1, 1], shifted=True).shift) <= 10
    with pytest.raises(TercetError, match="needs rows"):
        fit_scaling(np.empty((0, 2)), [])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(2, 60), decimals=st.sampled_from([0, 1, 8]))
def test_thresholds_reach_what_scikit_learn_says_is_reachable(
    seed: int, rows: int, decimals: int
) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(rows) % 2)
    ones = generator.random(rows).round(decimals)
    precisions, recalls, thresholds = precision_recall_curve(labels, ones)
    wanted = 0.7
    reached = precisions[:-1] >= wanted
    best = recalls[:-1][reached].max(initial=0.0)
    found = choose_threshold(labels, ones, precision=wanted)
    if best == 0.0:
        assert found is None
    else:
        assert found.recall == pytest.approx(best)
        said = ones >= found.value
        assert labels[said].mean() == pytest.approx(found.precision)
        assert found.precision >= wanted - 1e-12
    plain = choose_threshold(labels, ones)
    accuracies = [np.mean((ones >= one) == labels) for one in thresholds]
    assert plain.accuracy == pytest.approx(max(accuracies))


def test_a_rarer_class_needs_a_higher_threshold() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(2000) % 2
    ones = 1 / (1 + np.exp(-generator.normal(size=2000) - 2 * labels + 1))
    rare, even = (choose_threshold(labels, ones, prior=prior) for prior in (0.05, 0.5))
    assert rare.value > even.value
    assert rare.prior == 0.05
    strict = choose_threshold(labels, ones, prior=0.05, precision=0.6)
    assert strict.precision >= 0.6
    with pytest.raises(TercetError, match=r"prior 1\.5 must be between 0 and 1"):
        choose_threshold(labels, ones, prior=1.5)
    with pytest.raises(TercetError, match="rows of both classes"):
        choose_threshold([1, 1], [0.2, 0.4])


def test_a_calibrated_model_keeps_its_scalings(
    headed: Model, sample_data: Path, tmp_path: Path, run
) -> None:
    info = calibrate(headed, sample_data)
    assert set(info.scalings) == {"sentiment", "paraphrase"}
    assert set(info.scalings["paraphrase"]) == {"cross", "bi"}
    Model(headed.network, headed.tokenizer, info).save(tmp_path / "model")
    loaded = tercet.load(tmp_path / "model", device="cpu")
    assert loaded.info.scalings == info.scalings
    pairs = [("a good film", "a bad film"), ("one", "two")]
    before, after = (one.predictions("paraphrase", pairs, "cross") for one in (headed, loaded))
    odds, odds_after = np.log(before / (1 - before)), np.log(after / (1 - after))
    temperature = info.scalings["paraphrase"]["cross"].temperature
    assert np.allclose(odds / temperature, odds_after, atol=1e-4)
    assert np.allclose(headed.similarity(pairs), loaded.similarity(pairs), atol=1e-5)
    result = run(Tasks(), loaded, sample_data)
    calibration = result.tasks["paraphrase"].modes["bi"].calibration
    assert calibration.scaling == info.scalings["paraphrase"]["bi"]


def test_only_classifiers_have_scalings(headed: Model) -> None:
    facts = headed.info.model_dump()
    for wrong in ({"similarity": {"cross": {}}}, {"none": {"bi": {}}}):
        with pytest.raises(ValueError, match="not a classifier"):
            ModelInfo.model_validate(facts | {"scalings": wrong})


def test_held_out_rows_are_the_same_every_time() -> None:
    rows = held_out_rows(1000, share=0.1)
    assert rows.tolist() == held_out_rows(1000, share=0.1).tolist() == sorted(set(rows.tolist()))
    assert len(rows) == 100


def test_a_scaling_is_judged_on_rows_that_it_was_not_fitted_on(
    headed: Model, sample_data: Path, run
) -> None:
    calibrated = Model(headed.network, headed.tokenizer, calibrate(headed, sample_data))
    found = run(Tasks(), calibrated, sample_data).tasks["sentiment"]
    (mode,) = found.modes.values()
    judged = np.setdiff1d(np.arange(found.rows), held_out_rows(found.rows, share=0.5))
    assert len(judged) == found.rows // 2
    assert (
        mode.calibration.ece
        == measure_calibration(mode.labels[judged], mode.predictions[judged]).ece
    )


def test_rows_that_training_left_out_spare_dev(headed: Model, sample_data: Path) -> None:
    spec = headed.tasks["sentiment"].model_copy(update={"held_out": 0.25})
    assert judged_rows(spec, 40).tolist() == list(range(40))
    info = headed.info.model_copy(update={"tasks": {"sentiment": spec}})
    model = Model(headed.network, headed.tokenizer, info)
    found = calibrate(model, sample_data).scalings["sentiment"]["single"]
    train = read_examples(spec, "train", sample_data)
    rows = held_out_rows(len(train), share=0.25)
    pieces = model.pieces([train.texts[0][row] for row in rows])
    outputs = model.engine.outputs("sentiment", "single", [pieces])
    expected = fit_scaling(outputs, train.labels[rows])
    assert found.temperature == pytest.approx(expected.temperature, rel=1e-4)


def test_held_out_rows_of_two_classes_give_a_shift_that_predictions_are_made_with(
    headed: Model, sample_data: Path, tmp_path: Path
) -> None:
    spec = headed.tasks["paraphrase"].model_copy(update={"held_out": 0.25})
    info = headed.info.model_copy(update={"tasks": {**headed.info.tasks, "paraphrase": spec}})
    model = Model(headed.network, headed.tokenizer, info)
    info = calibrate(model, sample_data)
    found = info.scalings["paraphrase"]["cross"]
    assert found.shift != 0.0
    Model(headed.network, headed.tokenizer, info).save(tmp_path / "model")
    pairs = [("a good film", "a bad film"), ("one", "two")]
    loaded = tercet.load(tmp_path / "model", device="cpu")
    before, after = (one.predictions("paraphrase", pairs, "cross") for one in (headed, loaded))
    odds, odds_after = np.log(before / (1 - before)), np.log(after / (1 - after))
    assert np.allclose(odds / found.temperature + found.shift, odds_after, atol=1e-4)
    # Dev measures what is predicted, so it is not asked where predictions change.
    plain = calibrate(headed, sample_data).scalings["paraphrase"]
    assert {one.shift for one in plain.values()} == {0.0}
