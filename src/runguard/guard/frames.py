"""Output as frames: which stream wrote which bytes when.

A frame is 13 bytes of header and its bytes: stream (1 stdout, 2 stderr; one byte), milliseconds since the start
(eight bytes), length (four bytes), all little endian.
"""

from __future__ import annotations

from _struct import Struct

from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Reversible, Sequence

HEADER = Struct("<BQI")
STREAMS = (1, 2)


class Frame(NamedTuple):
    """Bytes that one stream wrote, the first of them `at_ms` after the start."""

    stream: int
    at_ms: int
    data: bytes | bytearray | memoryview


def encode(frames: Iterable[Frame]) -> bytes:
    """Return the bytes of `frames`, those without data left out."""
    parts: list[bytes | bytearray | memoryview] = []
    for frame in frames:
        if len(frame.data):
            parts.append(HEADER.pack(frame.stream, frame.at_ms, len(frame.data)))
            parts.append(frame.data)
    return b"".join(parts)


def decode(encoded: bytes, *, torn: bool = False) -> list[Frame]:
    """Return the frames of what `encode` wrote.

    Raises ValueError where it is damaged; with `torn`, return what can be read before the damage instead, the last
    frame as long as its bytes go.
    """
    frames: list[Frame] = []
    at = 0
    while at < len(encoded):
        if len(encoded) - at < HEADER.size:
            return _damaged(frames, at, torn)
        stream, at_ms, length = HEADER.unpack_from(encoded, at)
        if stream not in STREAMS or not length:
            return _damaged(frames, at, torn)
        at += HEADER.size
        data = encoded[at : at + length]
        if len(data) < length and not torn:
            return _damaged(frames, at, torn)
        if data:
            frames.append(Frame(stream, at_ms, data))
        at += length
    return frames


def last(frames: Reversible[Frame], limit: int) -> list[Frame]:
    """Return the frames of the last `limit` bytes of data, looking at no more frames than that takes."""
    kept: list[Frame] = []
    for frame in reversed(frames):
        if limit <= 0:
            break
        kept.append(frame if len(frame.data) <= limit else frame._replace(data=frame.data[-limit:]))
        limit -= len(frame.data)
    kept.reverse()
    return kept


def size(frames: Iterable[Frame]) -> int:
    """Return the bytes of data in `frames`."""
    return sum(len(frame.data) for frame in frames)


def omitted_bytes(counts: Sequence[int], kept: Iterable[bytes]) -> tuple[int, int]:
    """Return how many bytes of stdout and of stderr, of `counts` altogether, are not in the encoded frames `kept`."""
    missing = list(counts)
    for encoded in kept:
        at = 0
        while at + HEADER.size <= len(encoded):
            stream, _, length = HEADER.unpack_from(encoded, at)
            at += HEADER.size
            if stream not in STREAMS or not length:
                break
            missing[stream - 1] -= min(length, len(encoded) - at)
            at += length
    return max(0, missing[0]), max(0, missing[1])


def _damaged(frames: list[Frame], at: int, torn: bool) -> list[Frame]:
    if torn:
        return frames
    raise ValueError(f"no output frame at byte {at}")
