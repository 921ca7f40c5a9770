"""Refusals of requests, in the two formats that clients expect."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

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
"""Characters of an invalid value that a message quotes."""


class RefusalError(Exception):
    """An answer other than 200.

    field: the invalid field of the body, such as `texts.3`
    retry_after: seconds after which the same request may succeed
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

    def response(self, path: str) -> Response:
        """The answer in the format of OpenAI or of text-embeddings-inference."""
        headers = {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status == 408:
            headers["Connection"] = "close"
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        content = self._openai() if path.startswith("/v1/") else self._plain()
        return JSONResponse(content, self.status, headers)

    def _openai(self) -> dict[str, Any]:
        kind = OPENAI_TYPES.get(self.status, "invalid_request_error")
        error = {"message": self.sentence, "type": kind, "param": self.field, "code": self.code}
        return {"error": error}

    def _plain(self) -> dict[str, Any]:
        kind = ERROR_TYPES.get(self.status, "Validation")
        return {"error": self.sentence, "error_type": kind, "field": self.field}


def too_many(field: str, count: int, most: int) -> RefusalError:
    """The refusal of a field with too many inputs."""
    return RefusalError(
        413, f"`{field}` has {count} inputs; a request may have {most}.", field=field
    )


def shown(value: object) -> str:
    """A value as a message quotes it, shortened; the rest of a long one is never written."""
    text = ""
    for part in json.JSONEncoder(default=str).iterencode(
        value[:SHOWN] if isinstance(value, str) else value
    ):
        text += part
        if len(text) > SHOWN:
            return text[: SHOWN - 3] + "..."
    return text
