"""A process that has left its group ends without it."""

from __future__ import annotations

import os
import subprocess
import sys

# In a process of its own, because what matters is what was imported before the group began. One
# process is a whole group here.
LEAVING = """
import gc
import weakref

import torch
import torch.distributed as dist

from tercet.training.distributed import World

begin = dist.init_process_group
dist.init_process_group = lambda kind: begin(kind, store=dist.HashStore(), rank=0, world_size=1)
world = World.join("cpu")
group = weakref.ref(dist.group.WORLD)
layer = torch.nn.Linear(2, 2)
optimiser = torch.optim.AdamW(layer.parameters())
layer(torch.ones(1, 2)).sum().backward()
world.sum_(layer.weight.grad)
optimiser.step()
assert group() is not None
world.leave()
gc.collect()
assert group() is None, gc.get_referrers(group())
"""


def test_nothing_keeps_a_group_that_was_left() -> None:
    """Its threads abort the process if they free a tensor while Python ends."""
    environment = {**os.environ, "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", LEAVING], env=environment, text=True, capture_output=True
    )
    assert ended.returncode == 0, ended.stderr
