"""Kept output with its secrets masked."""

from __future__ import annotations

from runguard.guard.frames import decode, encode
from runguard.heartbeat.redact import mask_bytes


def masked(frames: bytes, secrets: tuple[str, ...], patterns: tuple[str, ...]) -> bytes:
    """Return encoded frames (frames.py) with every secret in their data masked, frame by frame.

    Best effort: a secret that a job wrote in two pieces more than a tenth of a second apart is not recognised.
    """
    return encode(
        frame._replace(data=mask_bytes(bytes(frame.data), secrets, patterns)) for frame in decode(frames, torn=True)
    )


def last_bytes(frames: bytes) -> bytes:
    """Return the data of encoded frames, both streams in the order in which they came."""
    return b"".join(frame.data for frame in decode(frames, torn=True))
