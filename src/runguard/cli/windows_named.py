"""A window as a person names it: by key, by label or nominal minute, or by due instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from runguard import values
from runguard.errors import UsageError
from runguard.store.reads import Run

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Wanted(NamedTuple):
    """The window that a person means: its key, else its due instant, else its local minute."""

    key: str | None = None
    due_us: int | None = None
    minute: str | None = None

    def matches(self, run: Run) -> bool:
        """Return whether the run was for that window."""
        if self.key is not None:
            return run.window_key == self.key
        if self.due_us is not None:
            return run.due_us == self.due_us
        return run.window_key is not None and self.minute in (run.nominal, (run.label or "")[:16])


def wanted(option: str, text: str) -> Wanted:
    """Return what `text` names: `L2026-03-29T02:30`, `2026-03-29T03:30+01:00`, `2026-03-29T02:30Z`, `2026-03-29T02:30`.

    Raises UsageError, which names the option.
    """
    try:
        if text[:1] in ("L", "U"):
            datetime.fromisoformat(text[1:].partition("~")[0])
            return Wanted(key=text)
        at = datetime.fromisoformat(text)
    except ValueError:
        known = "a key L2026-03-29T02:30, a label 2026-03-29T03:30+01:00, a due instant"
        raise UsageError(f"{option}: {values.short(text)} is no window ({known})") from None
    if at.tzinfo is not None:
        return Wanted(due_us=(at - _EPOCH) // timedelta(microseconds=1))
    return Wanted(minute=at.isoformat(timespec="minutes"))
