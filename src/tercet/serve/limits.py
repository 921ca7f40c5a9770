"""The server's limits, counted in inputs and tokens; those that contradict each other are named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tercet.errors import TercetError

LongInputs = Literal["truncate", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request may ask for, and what may wait.

    inputs: texts or pairs of a request
    tokens: of an input, special ones included; longer ones are cut or refused
    body: bytes of a request
    queue_inputs, queue_tokens: what waits for the encoder and what it works on, of all requests
    batch_tokens: what the encoder is given at once
    wait: seconds that the queue may be expected to take; above, requests are refused
    timeout: seconds from the first byte of a request to the last of its answer
    """

    inputs: int
    tokens: int
    body: int
    long_inputs: LongInputs
    queue_inputs: int
    queue_tokens: int
    batch_tokens: int
    wait: float
    timeout: float

    def check(self, *, model_tokens: int) -> None:
        """Raise where two limits cannot both hold."""
        if self.tokens > model_tokens:
            raise TercetError(
                f"--max-tokens {self.tokens}: the model takes {model_tokens} tokens at most."
            )
        pairs = [
            ("--max-inputs", self.inputs, "--queue-inputs", self.queue_inputs),
            ("--max-tokens", self.tokens, "--batch-tokens", self.batch_tokens),
            ("--batch-tokens", self.batch_tokens, "--queue-tokens", self.queue_tokens),
            ("--max-wait", self.wait, "--timeout", self.timeout),
            # The shortest input and its comma are three bytes.
            ("--max-inputs", 3 * self.inputs, "--max-body", self.body),
        ]
        for name, low, other, high in pairs:
            if low > high:
                told = low if name != "--max-inputs" else self.inputs
                raise TercetError(
                    f"{name} {told:g} contradicts {other} {high:g}: what the one lets in, the "
                    "other always refuses; lower the first or raise the second."
                )
