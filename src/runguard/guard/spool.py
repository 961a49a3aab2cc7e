"""Output kept on disk until it is known whether anybody wants it (`--output on-failure`)."""

from __future__ import annotations

import errno
import os

from runguard import private
from runguard.guard.frames import HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE_BYTES = 64 << 10


class Spool:
    """An unlinked file of frames in `directory`: whatever happens to us, it leaves nothing behind.

    The directory is made where it is missing. Raises OSError where it is not private, and where the file cannot be made
    or written; what was added before stays readable.
    """

    __slots__ = ("_end", "_fd", "left")

    def __init__(self, directory: str) -> None:
        if flaw := private.make(directory):
            raise OSError(errno.EPERM, f"{directory}: {flaw}")
        self._fd = _unlinked_file(directory)
        self._end = 0
        self.left = 0  # bytes that are not replayed yet

    def add(self, stream: int, data: bytes) -> None:
        """Append what `stream` wrote."""
        content = HEADER.pack(stream, 0, len(data)) + data
        view = memoryview(content)
        at = self._end
        while view:
            written = os.pwrite(self._fd, view, at)
            view = view[written:]
            at += written
        self._end = at
        self.left += len(data)

    def replay(self) -> Iterator[tuple[int, bytes]]:
        """Yield (stream, bytes) in the order they were added, in pieces of at most 64 KiB, then close the file."""
        at = 0
        while at < self._end:
            stream, _, left = HEADER.unpack(os.pread(self._fd, HEADER.size, at))
            at += HEADER.size
            while left:
                piece = os.pread(self._fd, min(left, _PIECE_BYTES), at)
                if not piece:
                    break
                at += len(piece)
                left -= len(piece)
                self.left -= len(piece)
                yield stream, piece
        self.close()

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
