from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tercet
from tercet.evaluation.suites.geometry import (
    Geometry,
    alignment,
    anisotropy,
    project,
    spectrum,
    uniformity,
)


@pytest.fixture
def vectors() -> np.ndarray:
    drawn = np.random.default_rng(0).normal(size=(2100, 8)) + 0.5
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_alignment_and_uniformity_are_those_of_the_paper(vectors: np.ndarray) -> None:
    """As in the published code of Wang and Isola, which SimCSE uses."""
    x, y = torch.from_numpy(vectors[:1000]), torch.from_numpy(vectors[1000:2000])
    assert alignment(vectors[:1000], vectors[1000:2000]) == pytest.approx(
        (x - y).norm(dim=1).pow(2).mean().item()
    )
    distances = torch.pdist(torch.from_numpy(vectors), p=2)
    expected = distances.pow(2).mul(-2).exp().mean().log().item()
    assert uniformity(vectors) == pytest.approx(expected)


def test_anisotropy_is_the_mean_cosine_of_different_sentences(vectors: np.ndarray) -> None:
    cosines = vectors @ vectors.T
    expected = cosines[np.triu_indices(len(vectors), 1)].mean()
    assert anisotropy(vectors) == pytest.approx(expected)


def test_spectrum_of_known_spreads() -> None:
    even = np.vstack([np.eye(4), -np.eye(4)])
    assert spectrum(even).shares == pytest.approx([0.25] * 4)
    assert spectrum(even).effective_rank == pytest.approx(4.0)
    line = np.outer([-1.0, 0.0, 1.0], [3.0, 4.0])
    assert spectrum(line).effective_rank == pytest.approx(1.0)
    assert spectrum(np.ones((5, 3))).effective_rank is None


def test_a_projection_keeps_what_lies_in_a_plane() -> None:
    plane = np.random.default_rng(1).normal(size=(50, 2)) * [5.0, 1.0]
    rotation, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))
    points, explained = project(plane @ rotation[:2])
    assert sum(explained) == pytest.approx(1.0)
    assert explained[0] > explained[1]
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    assert distances == pytest.approx(np.linalg.norm(plane[:, None] - plane, axis=2))


def test_too_few_vectors_have_undefined_measures() -> None:
    assert uniformity(np.ones((1, 3))) is None
    assert anisotropy(np.ones((1, 3))) is None
    assert alignment(np.empty((0, 3)), np.empty((0, 3))) is None


def test_dev_sentences_of_all_tasks_are_mapped(headed, suite_data: Path, run) -> None:
    result = run(Geometry(), headed, suite_data)
    assert result.missing == []
    assert result.alignment > 0
    assert set(result.map.groups) == {"sentiment", "paraphrase", "similarity"}
    assert len(result.map.points) == len(result.map.texts) <= 120
    document = result.to_json()
    assert np.shape(document["map"]["points"]) == (len(result.map.texts), 2)
    assert "texts" not in document["map"]
    assert sum(document["spectrum"]["shares"]) == pytest.approx(1.0, abs=1e-3)


def test_a_model_without_heads_is_mapped_on_sts_b(tiny_encoder, suite_data: Path, run) -> None:
    result = run(Geometry(), tercet.load(tiny_encoder), suite_data)
    assert set(result.map.groups) == {"STS-B"}
    (suite_data / "senteval/STS/STSBenchmark/sts-test.csv").unlink()
    result = run(Geometry(), tercet.load(tiny_encoder), suite_data)
    assert [each.file for each in result.missing] == ["STS/STSBenchmark/sts-test.csv"]
    assert (result.uniformity, result.spectrum, result.map) == (None, None, None)
    assert result.to_json()["map"] is None
