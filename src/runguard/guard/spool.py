"""Output kept on disk until it is known whether anybody wants it (`--output on-failure`)."""

from __future__ import annotations

import errno
import os
from collections import deque

from runguard import private
from runguard.guard.frames import HEADER

_PIECE_BYTES = 256 << 10


class Spool:
    """An unlinked file of frames in `directory`: whatever happens to us, it leaves nothing behind.

    The directory is made where it is missing. Raises OSError where it is not private, and where the file cannot be made
    or written; what was added before stays readable. `left` counts the bytes that are not taken yet.
    """

    __slots__ = ("_at", "_end", "_fd", "_followers", "_frame", "left")

    def __init__(self, directory: str) -> None:
        if flaw := private.make(directory):
            raise OSError(errno.EPERM, f"{directory}: {flaw}")
        self._fd = _unlinked_file(directory)
        self._at = 0  # where to go on taking
        self._end = 0
        self._frame = (0, 0)  # its stream, and the bytes of it that are not taken yet
        self._followers: deque[tuple[int, bytes]] = deque()
        self.left = 0

    def add(self, stream: int, data: bytes) -> None:
        """Append what `stream` wrote: the whole of it, or, where this raises OSError, nothing."""
        parts = [memoryview(HEADER.pack(stream, 0, len(data))), memoryview(data)]
        at = self._end
        while parts:
            written = os.pwritev(self._fd, parts, at)
            at += written
            while parts and written >= len(parts[0]):
                written -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][written:]
        self._end = at
        self.left += len(data)

    def follow(self, stream: int, data: bytes) -> None:
        """Keep in memory what comes after all that was added."""
        self._followers.append((stream, data))
        self.left += len(data)

    def take(self) -> tuple[int, bytes] | None:
        """Return the next (stream, bytes), in the order in which they came, or None at the end."""
        while self._at < self._end:
            stream, length = self._frame
            if not length:
                stream, _, length = HEADER.unpack(os.pread(self._fd, HEADER.size, self._at))
                self._at += HEADER.size
            piece = os.pread(self._fd, min(length, _PIECE_BYTES), self._at)
            self._at += len(piece)
            self._frame = (stream, length - len(piece))
            if piece:
                self.left -= len(piece)
                return stream, piece
            self._at = self._end  # somebody has cut the file
        if not self._followers:
            return None
        stream, piece = self._followers.popleft()
        self.left -= len(piece)
        return stream, piece

    def close(self) -> None:
        """Let the file go."""
        os.close(self._fd)


def _unlinked_file(directory: str) -> int:
    try:
        return os.open(directory, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError:  # not every file system knows O_TMPFILE; for other reasons the second try fails too
        path = os.path.join(directory, f".spool-{os.getpid()}-{os.urandom(6).hex()}")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.unlink(path)
        return fd
