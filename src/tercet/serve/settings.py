"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tercet.serve.limits import LongInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of the server; the default of a limit that is None depends on the model.

    keys, listed_keys: a file of API keys, and keys separated by commas
    origins: other sites whose pages may send requests (CORS)
    """

    model: str | None
    index: Path | None
    host: str
    port: int
    workers: int
    keys: Path | None
    listed_keys: str | None
    origins: list[str]
    max_inputs: int
    max_tokens: int | None
    max_body: int
    long_inputs: LongInputs
    queue_inputs: int
    queue_tokens: int
    batch_tokens: int | None
    max_wait: float
    timeout: float
