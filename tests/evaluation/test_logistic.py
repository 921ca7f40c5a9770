from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tercet.evaluation.logistic import Regressions

PENALTIES = (0.25, 8.0)


@pytest.mark.parametrize("classes", [2, 4])
def test_every_fit_is_the_one_of_scikit_learn(classes: int) -> None:
    generator = np.random.default_rng(classes)
    centres = generator.normal(size=(classes, 12))
    labels = generator.integers(classes, size=400)
    vectors = (centres[labels] + 2.0 * generator.normal(size=(400, 12)) + 3.0).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    used = generator.random((400, 3)) < 0.7
    said = Regressions(vectors, labels, used=used, penalties=PENALTIES).predict(vectors)
    for place in range(3):
        rows = used[:, place]
        for number, penalty in enumerate(PENALTIES):
            peer = LogisticRegression(C=penalty, tol=1e-8, max_iter=1_000)
            peer.fit(vectors[rows].astype(np.float64), labels[rows])
            # A row on the border may fall to either side.
            assert (said[:, place, number] != peer.predict(vectors)).sum() <= 1


def test_vectors_that_tell_nothing_are_given_the_commoner_class() -> None:
    vectors, labels = np.ones((9, 4), np.float32), np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    used = np.ones((9, 1), bool)
    assert (Regressions(vectors, labels, used=used, penalties=[1.0]).predict(vectors) == 1).all()
