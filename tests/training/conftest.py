"""A small network of four tasks on the tiny encoder, with tables of a few rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.data.examples import Examples
from tercet.data.table import TaskTable, build_table
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

FILE = "rows.tsv"
MakeNetwork = Callable[..., Network]
MakeTable = Callable[..., TaskTable]


@pytest.fixture(scope="session")
def tokenizer(tiny_encoder: Path) -> Tokenizer:
    return Tokenizer.load(tiny_encoder)


@pytest.fixture(scope="session")
def make_network(tiny_encoder: Path) -> MakeNetwork:
    """A network of the given task blocks, the same each time; without dropout unless given."""

    def make(
        blocks: dict[str, Any], *, pooling: Any = "mean", dropout: float = 0.0, seed: int = 0
    ) -> Network:
        tasks = {name: TaskSpec.model_validate(block) for name, block in blocks.items()}
        encoder = load_encoder(tiny_encoder, dropout=dropout, attention_dropout=dropout)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return Network(encoder, pooling=pooling, tasks=tasks)

    return make


@pytest.fixture(scope="session")
def make_table(tokenizer: Tokenizer) -> MakeTable:
    """A table of text columns and labels; its rows stand on the lines 10, 11, ... of one file."""

    def make(*columns: list[str], labels: list[Any] | None = None) -> TaskTable:
        rows = len(columns[0])
        graded = labels is not None and isinstance(labels[0], float)
        examples = Examples(
            texts=columns,
            labels=None if labels is None else np.array(labels, np.float32 if graded else np.int64),
            lines=np.arange(10, 10 + rows),
            sources=np.zeros(rows, np.int32),
            files=(Path(FILE),),
            skipped=[],
        )
        return build_table(examples, tokenizer, limit=64)

    return make
