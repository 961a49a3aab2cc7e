"""What is kept of the output: head, tail, and size and SHA-256 of each whole stream, in constant memory."""

from __future__ import annotations

from collections import deque

from runguard.guard.frames import Frame, encode, last, size
from runguard.guard.hashing import StreamHash, Total
from runguard.record import NamedTuple

HEAD_BYTES = 64 << 10
TAIL_BYTES = 1 << 20
COALESCE_MS = 100  # what one stream writes within this span is one frame
_SHORTEST_TAIL_BYTES = 4 << 10
_COALESCE_BYTES = 64 << 10  # a frame that has grown to this is not copied into again
# A job that dribbles bytes alternately to both streams must not make us keep a frame for each.
HEAD_FRAMES = 4096
TAIL_FRAMES = 16_384


class Kept(NamedTuple):
    """What is kept of the interleaved output, as frames (see frames.py)."""

    head: bytes
    tail: bytes
    kept_bytes: int  # of data, without the frames' headers
    omitted_bytes: int  # between head and tail


class Fresh(NamedTuple):
    """The output since some offset, as far as it is still held."""

    head: list[Frame]
    tail: list[Frame]
    gap: bool  # bytes between `head` and `tail`, or before `tail`, are no longer held


class Capture:
    """Counts, hashes and keeps the ends of what `feed` gives it.

    Where neither end is to be kept, nothing is `wanted` of the bytes: they are counted, and not hashed.
    """

    __slots__ = (
        "_closed",
        "_head",
        "_head_bytes",
        "_head_limit",
        "_streams",
        "_tail",
        "_tail_bytes",
        "_tail_limit",
        "remark",
        "wanted",
    )

    def __init__(self, head_limit: int = HEAD_BYTES, tail_limit: int = TAIL_BYTES) -> None:
        self._head_limit = head_limit
        self._tail_limit = tail_limit
        self._head: deque[Frame] = deque()
        self._tail: deque[Frame] = deque()
        self._head_bytes = 0
        self._tail_bytes = 0  # held: at least the limit where there were as many, at most one read more
        self._closed = head_limit == 0
        self.wanted = head_limit > 0 or tail_limit > 0
        self._streams = (StreamHash(wanted=self.wanted), StreamHash(wanted=self.wanted))
        self.remark: str | None = None  # why less is kept than the limits allow

    @property
    def total(self) -> int:
        """The bytes of both streams so far."""
        return self._streams[0].bytes + self._streams[1].bytes

    def count(self, stream: int) -> int:
        """Return the bytes of the stream so far."""
        return self._streams[stream - 1].bytes

    def stream(self, stream: int) -> Total:
        """Return size and SHA-256 of everything that stream 1 (stdout) or 2 (stderr) wrote so far."""
        return self._streams[stream - 1].total()

    def feed(self, stream: int, at_ms: int, data: bytes) -> None:
        """Take what `stream` wrote `at_ms` after the start. Where there is no memory to keep it, it is only counted."""
        self._streams[stream - 1].feed(data)
        if not self.wanted:
            return
        try:
            self._keep(stream, at_ms, data)
        except MemoryError:
            self.keep_less()

    def pass_by(self, stream: int, length: int) -> None:
        """Count bytes of the stream that nobody has seen; only where nothing is `wanted` of them."""
        assert not self.wanted
        self._streams[stream - 1].bytes += length

    def keep_less(self) -> bool:
        """Make room in memory: let the tail go and keep a shorter one from now on; without a tail, let the head go.

        Returns False where there was nothing to let go.
        """
        if not self._tail_limit and not self._head:
            return False
        if not self._tail_limit:
            self._head.clear()
        self._tail.clear()
        self._tail_bytes = 0
        self._tail_limit = self._tail_limit // 4 if self._tail_limit >= _SHORTEST_TAIL_BYTES else 0
        self._head_bytes = size(self._head)
        self._closed = True  # what comes from now on does not follow it
        self.remark = "there was no memory to keep all that should be kept of the output"
        return True

    def kept(self) -> Kept:
        """Return what is kept so far."""
        while True:  # each round with less
            try:
                kept = self._head_bytes + min(self._tail_bytes, self._tail_limit)
                tail = last(self._tail, self._tail_limit)
                return Kept(encode(self._head), encode(tail), kept, self.total - kept)
            except MemoryError:
                if not self.keep_less():
                    raise

    def since(self, offset: int) -> Fresh:
        """Return what came after the first `offset` bytes of the interleaved output."""
        total = self.total
        head = last(self._head, self._head_bytes - offset) if offset < self._head_bytes else []
        missing = total - max(offset, self._head_bytes)
        held = min(self._tail_bytes, self._tail_limit)
        return Fresh(head, last(self._tail, min(missing, held)), missing > held)

    def _keep(self, stream: int, at_ms: int, data: bytes) -> None:
        if not self._closed:
            room = self._head_limit - self._head_bytes
            first, data = (data, b"") if len(data) <= room else (data[:room], data[room:])
            self._head_bytes += len(first)
            _append(self._head, stream, at_ms, first)
            self._closed = self._head_bytes >= self._head_limit or len(self._head) >= HEAD_FRAMES
        if data:
            self._tail_bytes += len(data)
            _append(self._tail, stream, at_ms, data)
            while self._tail and (
                self._tail_bytes - len(self._tail[0].data) >= self._tail_limit or len(self._tail) > TAIL_FRAMES
            ):
                self._tail_bytes -= len(self._tail.popleft().data)


def _append(frames: deque[Frame], stream: int, at_ms: int, data: bytes) -> None:
    """Add `data` as a frame, or to the last frame where that is the same stream's and young and small enough."""
    if not data:
        return
    if frames:
        newest = frames[-1]
        if (
            newest.stream == stream
            and at_ms - newest.at_ms < COALESCE_MS
            and len(newest.data) + len(data) <= _COALESCE_BYTES
        ):
            if isinstance(newest.data, bytearray):
                newest.data.extend(data)
            else:
                joined = bytearray(newest.data)  # `+` on two of them says a SystemError on stderr for want of memory
                joined.extend(data)
                frames[-1] = Frame(stream, newest.at_ms, joined)
            return
    frames.append(Frame(stream, at_ms, data))
