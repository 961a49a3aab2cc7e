"""Instants that people type at a terminal: `--since 7d`, `--until 2026-03-29`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runguard import values
from runguard.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of(option: str, text: str, now_us: int) -> int:
    """Return the UTC microseconds of an ISO date or instant, or of a duration ago (`7d`, `90m`).

    Without an offset it is local time; a date is its beginning. Raises UsageError, which names the option.
    """
    try:
        if text[-1:].isalpha() and text[:1].isdigit() and "T" not in text and not text.endswith(("Z", "z")):
            return now_us - round(values.duration(text) * 1_000_000)
        at = datetime.fromisoformat(text)
        return (at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError, OSError):
        why = (
            f"{values.short(text)} is no instant (2026-03-29, 2026-03-29T02:30, …+01:00) and no duration ago (7d, 90m)"
        )
        raise UsageError(f"{option}: {why}") from None


def local(at_us: int) -> str:
    """Return an instant in local time, to the second, with its offset: for people."""
    at = _EPOCH + timedelta(microseconds=at_us)
    return at.astimezone().isoformat(sep=" ", timespec="seconds")


def span(duration_s: float | None) -> str:
    """Return a duration for people: `0.42s`, `59.1s`, `1h02m`, `3d04h`; nothing where there is none."""
    if duration_s is None:
        return ""
    if duration_s < 10:
        return f"{duration_s:.2f}s"
    if duration_s < 60:
        return f"{duration_s:.1f}s"
    minutes, seconds = divmod(round(duration_s), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02d}h"
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"
