"""The settings of a server, and its limits in inputs, tokens, bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tercet.errors import ArgumentError

LongPolicy = Literal["truncate", "windows", "refuse"]
"""What is done with inputs that are too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of the server; the default of a limit that is None depends on the model.

    layers: how many of the model's layers are read; None: all
    keys, listed_keys: a file of API keys, and keys separated by commas
    origins: other sites whose pages may send requests (CORS)
    allowed_hosts: names of this server besides its address and localhost
    """

    model: str | None
    layers: int | None
    index: Path | None
    keys: Path | None
    listed_keys: str | None
    origins: list[str]
    allowed_hosts: list[str]
    max_inputs: int
    max_tokens: int | None
    max_body: int
    long_inputs: LongPolicy | None
    queue_inputs: int
    queue_tokens: int
    batch_tokens: int | None
    max_wait: float
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests and on the queue.

    inputs: texts or pairs per request
    tokens: tokens per input, special ones included; longer inputs are truncated, read in windows
        or refused
    body: bytes per request
    queue_inputs, queue_tokens: inputs and tokens that are queued or being encoded
    batch_tokens: tokens that are encoded together
    wait: expected seconds of queueing above which requests are refused
    timeout: seconds from the first byte of a request to the last of its answer
    """

    inputs: int
    tokens: int
    body: int
    long_inputs: LongPolicy
    queue_inputs: int
    queue_tokens: int
    batch_tokens: int
    wait: float
    timeout: float

    def check(self, *, model_tokens: int) -> None:
        """Raise if two limits contradict each other."""
        if self.tokens > model_tokens:
            raise ArgumentError(
                f"`max_tokens` {self.tokens}: the model reads at most {model_tokens} tokens.",
                "max_tokens",
            )
        pairs = [
            ("max_inputs", self.inputs, "queue_inputs", self.queue_inputs),
            ("max_tokens", self.tokens, "batch_tokens", self.batch_tokens),
            ("batch_tokens", self.batch_tokens, "queue_tokens", self.queue_tokens),
            ("max_wait", self.wait, "timeout", self.timeout),
            # The shortest input and its comma are three bytes.
            ("max_inputs", 3 * self.inputs, "max_body", self.body),
        ]
        for name, low, other, high in pairs:
            if low > high:
                value = low if name != "max_inputs" else self.inputs
                raise ArgumentError(
                    f"`{name}` {value:g} contradicts `{other}` {high:g}: the second refuses what "
                    "the first allows; lower the first or raise the second.",
                    name,
                    other,
                )
