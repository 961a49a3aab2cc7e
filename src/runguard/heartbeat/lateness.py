"""What a monitor may still be told of an outcome that it did not hear in time.

It takes the time of receipt for the time of the run. So a late success would hide a missed run, and an older one after
a failure would turn a failed check green: a success counts only until the next one is due.
"""

from __future__ import annotations

from runguard.heartbeat.body import Body
from runguard.instant import SECOND_US, rfc3339, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.heartbeat.slot import Slot
    from runguard.heartbeat.styles import Event
    from runguard.schedule.windows import Timetable

WITHOUT_SCHEDULE_US = 3600 * SECOND_US
_SLEWED_US = 60 * SECOND_US  # so far ahead may a clock have been that is right otherwise


def valid_until_us(from_us: int, timetable: Timetable | None) -> int | None:
    """Return until when a success that counts from `from_us` on may be told as one: until the job's next due.

    Without a `timetable` it is an hour. None: nothing is due any more.
    """
    if timetable is None:
        return from_us + WITHOUT_SCHEDULE_US
    following = timetable.next(from_us)
    return None if following is None else following.due_us


def is_too_soon(slot: Slot, now_us: int) -> bool:
    """Tell whether an outcome would count for the window before. After the clock was set back nobody knows."""
    return now_us < slot.from_us and not _is_of_the_future(slot, now_us)


def kind_now(slot: Slot, now_us: int, *, superseded: bool = False) -> str:
    """Return as what a slot is told: success, failure or log. `superseded`: there is a newer outcome.

    A success that claims to be of the future is none to rely on: the clock was set back, nobody knows how old it is.
    """
    if slot.event == "failure":
        return "failure"
    stale = slot.until_us is not None and now_us >= slot.until_us
    return "log" if superseded or stale or _is_of_the_future(slot, now_us) else "success"


def late_event(slot: Slot, kind: str, now_us: int) -> Event:
    """Return the event of `kind` that tells a slot, its body saying how late that is, and when the run ended."""
    body = slot.told.body
    said = f"delivered late by {_spaced(span(now_us - slot.at_us))} (it ended {rfc3339(slot.at_us)}): {body.summary}"
    return slot.told._replace(kind=kind, body=Body(said, body.tail, body.omitted_bytes))


def _is_of_the_future(slot: Slot, now_us: int) -> bool:
    return slot.at_us > now_us + _SLEWED_US


def _spaced(text: str) -> str:
    """Return `2h13m` as `2h 13m`."""
    for unit in "dhm":
        larger, found, smaller = text.partition(unit)
        if found and smaller:
            return f"{larger}{unit} {smaller}"
    return text
