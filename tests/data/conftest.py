"""Tasks that tests of data read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tercet.specs import TaskSpec

MakeTask = Callable[..., TaskSpec]


@pytest.fixture(scope="session")
def make_task() -> MakeTask:
    """A task by kind, one of KINDS, and data."""

    def make(kind: str, **data: Any) -> TaskSpec:
        return TaskSpec.model_validate({**KINDS[kind], "data": data})

    return make


PAIR_HEAD = {"kind": "features", "features": ["u", "v"]}
KINDS: dict[str, dict[str, Any]] = {
    "sentiment": {
        "labels": ["awful", "bad", "so-so", "good", "great"],
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
    },
    "paraphrase": {
        "labels": ["different", "paraphrase"],
        "bi": {"head": PAIR_HEAD, "objective": {"kind": "binary-cross-entropy"}},
        "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
    },
    "similarity": {
        "range": [0, 5],
        "bi": {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}},
    },
    "taught": {
        "range": [0, 5],
        "bi": {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}},
        "teacher": {"folder": "anywhere", "weight": 1.0},
    },
    "tags": {
        "labels": ["billing", "refund"],
        "multi_label": True,
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
    },
    "ranking": {"bi": {"objective": {"kind": "multiple-negatives-ranking"}}},
    "simcse": {"bi": {"objective": {"kind": "simcse"}}},
    "triplet": {"bi": {"objective": {"kind": "triplet"}}},
}
