"""API keys from a file or a list, compared in constant time, reloaded on demand."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from tercet.errors import ArgumentError, TercetError

SCHEME = b"bearer "


class Keys:
    """The keys of the server; without any, no key is needed."""

    def __init__(self, *, file: Path | None, listed: str | None) -> None:
        """file: one key per line, # starts a comment; listed: keys separated by commas"""
        self._file = file
        self._listed = listed
        self._digests: list[bytes] = []
        self.reload()

    @property
    def closed(self) -> bool:
        """Whether a key is needed."""
        return self._file is not None or self._listed is not None

    def reload(self) -> None:
        """Read the file again; if it cannot be read, the old keys stay valid."""
        entries = [key.strip() for key in (self._listed or "").split(",")]
        if self._file is not None:
            entries += _lines(self._file)
        keys = [key for key in entries if key]
        if self.closed and not keys:
            source = self._file if self._file is not None else "TERCET_KEYS"
            raise TercetError(f"{source}: has no keys.")
        self._digests = [_digest(key.encode()) for key in keys]

    def admit(self, header: bytes | None) -> bool:
        """Whether the value of an `Authorization` header has a valid key."""
        if not self.closed:
            return True
        if header is None or header[: len(SCHEME)].lower() != SCHEME:
            return False
        digest = digest_of(header)
        # All are compared, so that the time does not depend on which one is nearly right.
        return sum(hmac.compare_digest(digest, known) for known in self._digests) > 0


def digest_of(header: bytes) -> bytes:
    """What a key is known by, however the header writes its scheme and blanks."""
    return _digest(header[len(SCHEME) :].strip())


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise ArgumentError(f"{file}: does not exist; `keys` is a file of keys.", "keys") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TercetError(f"{file}: cannot be read as keys, one per line.") from error
    return [line.partition("#")[0].strip() for line in lines]


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
