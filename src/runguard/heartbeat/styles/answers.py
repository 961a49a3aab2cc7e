"""What an answer means: a 2xx is not proof."""

from __future__ import annotations

VERDICTS = ("accepted", "retry", "final")

_RETRIED = (408, 429)  # and every 5xx


def judge(status: int, body: bytes) -> str:
    """Judge by the status, and by the two answers with which a 200 of the hosted Healthchecks means no."""
    if 200 <= status <= 299:
        answer = body.strip().lower()
        if answer == b"ok (not found)":
            return "final"
        return "retry" if answer == b"ok (rate limited)" else "accepted"
    if status < 200:  # not the answer, only what was said before it
        return "retry"
    return "retry" if status in _RETRIED or status >= 500 else "final"
