"""Predictions without torch are the objectives' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tercet.infer.predictions import output_width, predict
from tercet.network.network import build_objective
from tercet.specs import TaskSpec
from tercet.specs.objectives import UNLABELLED, ObjectiveSpec

MLP = {"kind": "mlp"}
CLASSES = {"data": {"layout": "cs224n-sst"}, "labels": ["a", "b"]}
GRADES = {"data": {"layout": "cs224n-sts"}, "range": [1, 3]}
OBJECTIVES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (CLASSES | {"labels": ["a", "b", "c"]}, {"kind": "cross-entropy"}),
    (CLASSES, {"kind": "binary-cross-entropy"}),
    (GRADES, {"kind": "mean-squared-error"}),
    (GRADES, {"kind": "mean-squared-error", "targets": [-1, 1]}),
    (GRADES, {"kind": "mean-absolute-error", "targets": [0, 1]}),
    (GRADES, {"kind": "hinge"}),
    (GRADES, {"kind": "binned-cross-entropy", "bins": 5}),
]


@pytest.mark.parametrize(("task", "objective"), OBJECTIVES)
@pytest.mark.parametrize("rows", [0, 50])
def test_they_are_what_torch_gives(task: Any, objective: Any, rows: int) -> None:
    block = task | {"cross": {"head": MLP, "objective": objective}}
    spec = TaskSpec.model_validate(block)
    mode = spec.modes["cross"]
    wanted = build_objective(mode.objective, spec)
    assert output_width(spec, mode) == wanted.outputs
    raw = 100 * np.random.default_rng(0).standard_normal((rows, wanted.outputs))
    raw[::2] /= 100
    given = predict(spec, mode, raw.astype(np.float32))
    told = wanted.predict(torch.from_numpy(raw.astype(np.float32))).numpy()
    assert given.shape == told.shape
    assert given.dtype == np.float32
    assert np.abs(given - told).max(initial=0.0) < 1e-5


def test_no_objective_is_left_out() -> None:
    kinds = {kind.model_fields["kind"].default for kind in ObjectiveSpec.__origin__.__args__}
    unlabelled = {kind.model_fields["kind"].default for kind in UNLABELLED}
    assert kinds - unlabelled == {objective["kind"] for _, objective in OBJECTIVES}
