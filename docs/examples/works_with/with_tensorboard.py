"""TensorBoard: `tercet train --tensorboard` writes its logs into the run folder."""

import subprocess
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

command = ["train", "team.toml", "--data", ".", "--out", "runs/team", "--tensorboard"]
subprocess.run([sys.executable, "-m", "tercet", *command], check=True, capture_output=True)

events = EventAccumulator("runs/team/tensorboard").Reload()  # or: tensorboard --logdir runs
print(events.Tags()["scalars"])
