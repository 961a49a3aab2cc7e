"""Size and SHA-256 of a whole stream, without OpenSSL where it is short.

A thread of its own for the hash was measured: on two cores it costs as much as it brings.
"""

from __future__ import annotations

from runguard.guard.provenance import small_sha256
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash

_SMALL_BYTES = 64 << 10  # up to here the stream is hashed without OpenSSL, which takes 2 ms to load


class Total(NamedTuple):
    """One whole stream."""

    bytes: int
    sha256: str | None  # None: there was no memory for it


class StreamHash:
    """Size and SHA-256 of what `feed` is given."""

    __slots__ = ("_first", "_hash", "_lost", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        self._first: list[bytes] = []
        self._hash: _Hash | None = None
        self._lost = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.bytes += len(data)
        try:
            if self._hash is not None:
                self._hash.update(data)
            elif not self._lost:
                self._begin(data)
        except (MemoryError, ImportError, OSError):  # OpenSSL is a large library
            self._lost = True
            self._hash = None
            self._first = []

    def total(self) -> Total:
        """Return what came so far."""
        if self._lost:
            return Total(self.bytes, None)
        if self._hash is not None:
            return Total(self.bytes, self._hash.hexdigest())
        return Total(self.bytes, small_sha256(b"".join(self._first)))

    def _begin(self, data: bytes) -> None:
        self._first.append(data)
        if self.bytes > _SMALL_BYTES:
            from hashlib import sha256  # OpenSSL: four times as fast, worth its 2 ms from here on

            self._hash = sha256(b"".join(self._first))
            self._first = []
        elif len(self._first) > 1024:
            self._first = [b"".join(self._first)]
