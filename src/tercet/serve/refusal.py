"""What a request is refused with, in the two forms that clients expect."""

from __future__ import annotations

import json
from typing import Any

ERROR_TYPES = {
    401: "Unauthorized",
    404: "NotFound",
    408: "Timeout",
    429: "Overloaded",
    500: "Backend",
    503: "Unhealthy",
    504: "Timeout",
}
OPENAI_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
    504: "timeout_error",
}
SHOWN = 60
"""Characters of a value at fault that a sentence repeats."""


class RefusalError(Exception):
    """An answer other than 200.

    field: what is at fault in the body, as `texts.3`
    retry_after: seconds after which the same request may be taken
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        field: str | None = None,
        retry_after: int | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.field = field
        self.retry_after = retry_after
        self.code = code

    def body(self, *, openai: bool) -> bytes:
        """The answer's JSON, as OpenAI or as text-embeddings-inference writes it."""
        content: dict[str, Any]
        if openai:
            kind = OPENAI_TYPES.get(self.status, "invalid_request_error")
            error = {"message": self.sentence, "type": kind, "param": self.field, "code": self.code}
            content = {"error": error}
        else:
            kind = ERROR_TYPES.get(self.status, "Validation")
            content = {"error": self.sentence, "error_type": kind, "field": self.field}
        return json.dumps(content).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers that belong to it, beside type and length."""
        if self.status == 401:
            return [(b"www-authenticate", b"Bearer")]
        if self.retry_after is not None:
            return [(b"retry-after", str(self.retry_after).encode())]
        return []


def shown(value: object) -> str:
    """A value as a sentence may repeat it: short."""
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
