"""Rows that were encoded together are what they are when they are encoded on their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.infer.engine import Engine
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import Mode, TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.encoded_rows import EncodedRows

HEAD: Any = {"kind": "mlp", "normalise": True}
GRADES: Any = {"kind": "mean-squared-error"}
TASK = TaskSpec.model_validate(
    {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "single": {"head": HEAD, "objective": GRADES},
        "bi": {"head": {"kind": "features", "features": ["u", "v"]}, "objective": GRADES},
        "cross": {"head": HEAD, "objective": GRADES},
    }
)
SENTENCE = "the plot is dull and long , but the cast is fine . "
FIRST = ["a film", SENTENCE * 4, "", "good", "good music , bad film . " + SENTENCE * 2, "a film"]
SECOND = ["the film", "bad", SENTENCE * 3, "a film", "good", "z"]
ROWS = np.array([4, 1, 5])


@pytest.mark.parametrize("mode", ["single", "bi", "cross"])
@pytest.mark.parametrize("is_whole", [False, True], ids=["truncated", "windows"])
def test_some_rows_of_all(tiny_encoder: Path, mode: Mode, is_whole: bool) -> None:
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks={"task": TASK})
    tokenizer = Tokenizer.load(tiny_encoder)
    engine = Engine(network, tokenizer.template, 24)
    read = tokenizer.whole_pieces if is_whole else tokenizer.pieces
    columns = [read(texts, limit=24) for texts in (FIRST, SECOND)]
    some = [column.take(ROWS) for column in columns]
    taken = EncodedRows.of(engine, "task", mode, columns).take(ROWS)
    own = EncodedRows.of(engine, "task", mode, some)
    assert (own.windows is not None) == (is_whole and mode != "bi")
    for found, expected in zip(taken.columns, own.columns, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    expected = engine.outputs("task", mode, some[: 1 if mode == "single" else 2])
    assert len(np.unique(expected)) == len(ROWS)
    np.testing.assert_allclose(taken.outputs(engine, "task", mode), expected, atol=1e-5)
