"""A window as a person names it: by key, by label or nominal minute, or by due instant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from runguard import values
from runguard.errors import UsageError
from runguard.guard.expecting import Expecting
from runguard.guard.start import window_of
from runguard.instant import DAY_S, SECOND_US, rfc3339
from runguard.model import Window
from runguard.schedule.zone import Zone
from runguard.store.reads import Reader, Run

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)
_US = timedelta(microseconds=1)
# A local minute and the due instant that it got lie no further apart: an offset from UTC, and a gap.
_AROUND_US = 2 * DAY_S * SECOND_US


class Wanted(NamedTuple):
    """The window that a person means: its key, else its due instant, else its local minute."""

    text: str
    key: str | None = None
    due_us: int | None = None
    minute: str | None = None

    def matches(self, run: Run) -> bool:
        """Return whether the run was for that window."""
        return self.names(run.window_key, run.due_us, run.nominal, run.label)

    def names(self, key: str | None, due_us: int | None, nominal: str | None, label: str | None) -> bool:
        """Return whether that is the window with this key, due instant, local minute and label."""
        if self.key is not None:
            return key == self.key
        if self.due_us is not None:
            return due_us == self.due_us
        return key is not None and self.minute in (nominal, (label or "")[:16])

    def about_us(self, expected: Expecting | None) -> int:
        """Return the instant that is meant; of a local minute, about that."""
        if self.due_us is not None:
            return self.due_us
        minute = self.minute or (self.key or "")[1:].partition("~")[0].removesuffix("Z")
        local_us = (datetime.fromisoformat(minute) - _NAIVE_EPOCH) // _US
        zone = zone_of(expected) if self.key is None or self.key.startswith("L") else None
        return local_us if zone is None else local_us - zone.offset_at(local_us // SECOND_US) * SECOND_US


def wanted(option: str, text: str) -> Wanted:
    """Return what `text` names: `L2026-03-29T02:30`, `2026-03-29T03:30+01:00`, `2026-03-29T02:30Z`, `2026-03-29T02:30`.

    Raises UsageError, which names the option.
    """
    try:
        if text[:1] in ("L", "U"):
            datetime.fromisoformat(text[1:].partition("~")[0])
            return Wanted(text, key=text)
        at = datetime.fromisoformat(text)
    except ValueError:
        known = "a key L2026-03-29T02:30, a label 2026-03-29T03:30+01:00, a due instant"
        raise UsageError(f"{option}: {values.short(text)} is no window ({known})") from None
    if at.tzinfo is not None:
        return Wanted(text, due_us=(at - _EPOCH) // _US)
    return Wanted(text, minute=at.isoformat(timespec="minutes"))


def target(command: str, text: str) -> tuple[str, Wanted]:
    """Return the job and the window of `JOB@WINDOW`. Raises UsageError, which names the command."""
    job, at, window = text.partition("@")
    if not at or not job or not window:
        example = "letters@L2026-03-29T02:30, letters@2026-03-29T03:30+01:00"
        raise UsageError(f"{command}: {values.short(text)} names no window: JOB@WINDOW is wanted ({example})")
    return job, wanted(command, window)


def zone_of(expected: Expecting | None) -> Zone | None:
    """Return the time zone that a job has now, or had last."""
    timetables = [piece.timetable for piece in expected.succession.pieces if piece.timetable] if expected else []
    return timetables[-1].zone if timetables else None


def find_window(records: Reader, job: str, expected: Expecting | None, named: Wanted) -> Window:
    """Return the one window of a job that is meant, expected or on record; what was recorded is never derived again.

    Raises UsageError with the nearest windows where there is none, with all of them where several are meant.
    """
    about_us = named.about_us(expected)
    found = {window.key: window for window in _expected(expected, named, about_us)}
    for window in _recorded(records, job, named, about_us):
        found[window.key] = window
    if len(found) > 1:
        raise UsageError(f"{job}@{named.text} is several windows: {', '.join(sorted(found))}")
    for window in found.values():
        return window
    pruned = "; what was due before {} was pruned".format
    forgotten = "".join(pruned(rfc3339(us)) for (us,) in records.rows("forgotten") if us is not None and about_us < us)
    raise UsageError(f"no window {values.short(named.text)} of {job}{_nearest(expected, about_us)}{forgotten}")


def _expected(expected: Expecting | None, named: Wanted, about_us: int) -> Iterator[Window]:
    if expected is None:
        return
    after_us = max(about_us - _AROUND_US, expected.since_us)
    for window in expected.succession.between(after_us, about_us + _AROUND_US):
        minute = named.minute if named.key is None else named.key[1:]
        if named.names(window.key, window.due_us, window.nominal, window.label) or minute in window.collapsed:
            yield window


def _recorded(records: Reader, job: str, named: Wanted, about_us: int) -> Iterator[Window]:
    """Yield the windows as starts recorded them, refused starts first, then by sequence: the last one counts."""
    starts = records.coverage(job, about_us - _AROUND_US, about_us + _AROUND_US)
    for start in sorted(starts, key=lambda start: (start.outcome != "refused", start.seq)):
        if start.key is not None and named.names(start.key, start.due_us, start.nominal, start.label):
            yield window_of(records.entries(start.run_id)[0]["window"])


def _nearest(expected: Expecting | None, about_us: int) -> str:
    if expected is None:
        return ": it has no schedule, so no windows are expected of it"
    before = expected.succession.previous(about_us)
    if before is not None and before.due_us <= expected.since_us:
        before = None
    after = expected.succession.next(max(about_us, expected.since_us))
    keys = [window.key for window in (before, after) if window is not None]
    if not keys:
        return ": no windows are expected of it"
    return f"; the nearest {'is' if len(keys) == 1 else 'are'} {' and '.join(keys)}"
