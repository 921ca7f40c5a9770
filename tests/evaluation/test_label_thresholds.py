from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_curve

from tercet.evaluation.label_thresholds import choose_label_thresholds


def test_thresholds_raise_f1_on_other_rows() -> None:
    generator = np.random.default_rng(1)
    labels = (generator.random((4000, 3)) < [0.3, 0.1, 0.5]).astype(np.int64)
    logits = generator.normal(size=labels.shape) + 2.0 * labels + [-1.0, -3.5, -1.0]
    logits[:, 2] = 4.0 * labels[:, 2] - 2.0
    probabilities = 1.0 / (1.0 + np.exp(-logits))
    thresholds = choose_label_thresholds(labels[:2000], probabilities[:2000])
    assert thresholds[2] == 0.5  # separates the third label without a mistake
    for label in (0, 1):
        rows = labels[:2000, label], probabilities[:2000, label]
        precision, recall, values = precision_recall_curve(*rows)
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
        assert thresholds[label] == pytest.approx(values[f1[:-1].argmax()], abs=0.1)
    judged, expected = probabilities[2000:], labels[2000:]
    chosen = f1_score(expected, judged >= thresholds, average="macro")
    assert chosen > f1_score(expected, judged >= 0.5, average="macro") + 0.1


def test_smoothing_beats_the_best_cut_of_few_rows() -> None:
    generator = np.random.default_rng(2)

    def draw(rows: int) -> tuple[np.ndarray, np.ndarray]:
        labels = (generator.random(rows) < 0.08).astype(np.int64)
        logits = generator.normal(size=rows) + 2.0 * labels - 2.0
        return labels, 1.0 / (1.0 + np.exp(-logits))

    smoothed, cut = [], []
    for _ in range(60):
        labels, probabilities = draw(120)
        judged = draw(2000)
        (threshold,) = choose_label_thresholds(labels[:, None], probabilities[:, None])
        smoothed.append(f1_score(judged[0], judged[1] >= threshold))
        precision, recall, values = precision_recall_curve(labels, probabilities)
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
        cut.append(f1_score(judged[0], judged[1] >= values[f1[:-1].argmax()]))
    assert np.mean(smoothed) > np.mean(cut)


def test_a_label_with_too_few_rows_keeps_one_half() -> None:
    labels = np.zeros((100, 2), np.int64)
    labels[:4, 0] = labels[:5, 1] = 1
    probabilities = np.where(labels == 1, 0.3, 0.1)
    few, enough = choose_label_thresholds(labels, probabilities)
    assert few == 0.5
    assert 0.1 < enough <= 0.3
    assert choose_label_thresholds(np.ones((9, 1)), np.full((9, 1), 0.3)) == [0.5]
    assert choose_label_thresholds(np.zeros((9, 1)), np.full((9, 1), 0.3)) == [0.5]
