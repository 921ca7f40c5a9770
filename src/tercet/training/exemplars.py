"""Labelled sentences that a head compares others with, encoded at the start of a stage."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from tercet.data.labels import Labels
from tercet.errors import TercetError
from tercet.heads.exemplars import StoresExemplars
from tercet.infer.engine import Engine
from tercet.training.losses import Losses


def fill_exemplars(losses: Losses, task: str, *, seed: int) -> None:
    """Set the exemplars of a task's heads to vectors of training sentences."""
    table = losses.tables[task]
    for network in losses.network.all_depths():
        for head in network.heads_of(task).children() if task in network.tasks else ():
            if not isinstance(head, StoresExemplars):
                continue
            assert table.labels is not None
            rows = choose(table.labels, len(head.exemplars), alike=head.balanced, seed=seed)
            engine = Engine(network, losses.template, losses.max_tokens)
            vectors = torch.from_numpy(engine.vectors(table.columns[0], rows))
            head.exemplars.fill(vectors, torch.from_numpy(np.asarray(table.labels[rows])))


def choose(labels: Labels, count: int, *, alike: bool, seed: int) -> NDArray[np.int64]:
    """Rows of at most `count` exemplars, int64; `alike`: as many of each class."""
    generator = np.random.default_rng(seed)
    if not alike:
        return np.sort(generator.permutation(len(labels))[:count])
    classes = np.unique(labels)
    each = count // len(classes)
    if each == 0:
        raise TercetError(f"`count` of exemplars is {count}, but there are {len(classes)} classes.")
    parts = [generator.permutation(np.flatnonzero(labels == label))[:each] for label in classes]
    return np.sort(np.concatenate(parts))
