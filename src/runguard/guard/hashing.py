"""Size and SHA-256 of a whole stream: without OpenSSL where it is short, in a thread of its own where it is long.

The hash is what much output costs most. Beside reading and writing, even on two cores, output into a file takes two
thirds of the time, into a pipe nine tenths.
"""

from __future__ import annotations

from runguard.guard.outlet import start_thread
from runguard.guard.provenance import small_sha256
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _queue import SimpleQueue
    from hashlib import _Hash
    from typing import Any

_SMALL_BYTES = 64 << 10  # up to here the stream is hashed without OpenSSL, which takes 2 ms to load
_LONG_BYTES = 4 << 20  # from here on a thread does it
_PIECE_BYTES = 64 << 10  # what is smaller is not worth handing over
_MOST_BEHIND = 2  # pieces; a read is at most a mebibyte
_LOOK_S = 0.1


class Total(NamedTuple):
    """One whole stream."""

    bytes: int
    sha256: str | None  # None: nobody wanted it, or there was no memory for it


class StreamHash:
    """Size and, where `wanted`, SHA-256 of what `feed` is given."""

    __slots__ = ("_beside", "_first", "_hash", "_lost", "bytes")

    def __init__(self, *, wanted: bool = True) -> None:
        self.bytes = 0
        self._first: list[bytes] = []
        self._hash: _Hash | None = None
        self._beside: _Beside | None = None
        self._lost = not wanted

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.bytes += len(data)
        try:
            if self._beside is not None:
                self._beside.feed(data)
            elif self._hash is not None:
                self._hash.update(data)
                if self.bytes > _LONG_BYTES:
                    self._beside = _Beside(self._hash)
            elif not self._lost:
                self._begin(data)
        except (MemoryError, ImportError, OSError):  # OpenSSL is a large library
            self._lose()

    def total(self) -> Total:
        """Return what came so far."""
        if self._beside is not None:
            try:
                self._beside.settle()
            except MemoryError:
                self._lose()
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

    def _lose(self) -> None:
        self._lost = True
        self._hash = None
        self._beside = None
        self._first = []


class _Beside:
    """A hash that a thread keeps up, a few pieces behind at most; where there can be no thread, it is never behind."""

    __slots__ = ("_behind", "_done", "_failed", "_hash", "_todo")

    def __init__(self, hash: _Hash) -> None:
        self._hash = hash
        self._behind = 0
        self._failed = False
        self._done: SimpleQueue[Any] | None = None
        self._todo: SimpleQueue[Any] | None = start_thread(self._keep_up)
        if self._todo is not None:
            self._done = type(self._todo)()

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises MemoryError where the thread had none."""
        if self._todo is None or len(data) < _PIECE_BYTES:
            self.settle()
            self._hash.update(data)
            return
        self._todo.put(data)
        self._behind += 1
        self.settle(_MOST_BEHIND)

    def settle(self, most: int = 0) -> None:
        """Wait until at most so many pieces are left to the thread. Raises MemoryError where it had none."""
        from _queue import Empty

        while self._behind > most:
            assert self._done is not None
            try:
                self._done.get(timeout=_LOOK_S)
            except Empty:
                if self._failed:
                    raise MemoryError("the thread that hashes had none") from None
                continue
            self._behind -= 1

    def _keep_up(self, todo: SimpleQueue[Any]) -> None:
        try:
            while True:
                self._hash.update(todo.get())
                assert self._done is not None
                self._done.put(None)
        except BaseException:  # noqa: BLE001 - whatever it is, who waits for us must learn of it
            self._failed = True
