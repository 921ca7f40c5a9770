"""API keys: from a file or the environment, compared in constant time, read again on demand."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from tercet.errors import TercetError

SCHEME = b"bearer "


class Keys:
    """The keys that open the server; without any, everybody may ask."""

    def __init__(self, *, file: Path | None, listed: str | None) -> None:
        """file: one key a line, # begins a comment; listed: keys with commas between"""
        self._file = file
        self._listed = listed
        self._digests: list[bytes] = []
        self.reload()

    @property
    def closed(self) -> bool:
        """Whether a key is needed."""
        return self._file is not None or self._listed is not None

    def reload(self) -> None:
        """Read the file again; the old keys stay where it cannot be read."""
        found = [key.strip() for key in (self._listed or "").split(",")]
        if self._file is not None:
            found += _lines(self._file)
        keys = [key for key in found if key]
        if self.closed and not keys:
            source = self._file if self._file is not None else "TERCET_KEYS"
            raise TercetError(f"{source}: holds no key; write one a line, or leave the option out.")
        self._digests = [_digest(key.encode()) for key in keys]

    def admit(self, header: bytes | None) -> bool:
        """Whether the value of an `Authorization` header holds a key."""
        if not self.closed:
            return True
        if header is None or header[: len(SCHEME)].lower() != SCHEME:
            return False
        given = _digest(header[len(SCHEME) :].strip())
        # All are compared, so that time does not tell which one was nearly right.
        return sum(hmac.compare_digest(given, known) for known in self._digests) > 0


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except FileNotFoundError as error:
        raise TercetError(f"{file}: does not exist; --keys names a file of keys.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TercetError(f"{file}: cannot be read as keys, one a line.") from error
    return [line.partition("#")[0].strip() for line in lines]


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
