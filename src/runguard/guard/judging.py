"""The verdict on every window of a job over any span, from what is on record and what lives now."""

from __future__ import annotations

from runguard.coverage import verdicts
from runguard.coverage.verdicts import MARGIN_US, Judged
from runguard.guard import liveness
from runguard.instant import DAY_S, SECOND_US
from runguard.record import NamedTuple
from runguard.store import recoveries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.guard.expecting import Expecting
    from runguard.store.answered import Start
    from runguard.store.reads import Reader

_PIECE_US = 31 * DAY_S * SECOND_US  # 44,640 windows of a minutely job are held at once


class Moment(NamedTuple):
    """When verdicts are given, and what they need to know of now."""

    now_us: int
    grace_us: int
    runs: str  # the directory of the files of living runs


def judged(
    store: Reader, job: str, expected: Expecting | None, after_us: int, until_us: int, moment: Moment
) -> Iterator[Judged]:
    """Yield every window of `after < due <= until` with its verdict, ascending: expected, or on record only.

    A run that is on record as running is lost where its guard and command have gone. Raises StoreError.
    """
    until_us = min(until_us, moment.now_us)
    lost = recoveries.look(store)
    while after_us < until_us:
        end_us = min(after_us + _PIECE_US, until_us)
        first_us, last_us = after_us - MARGIN_US, end_us + MARGIN_US
        windows = expected.succession.between(max(first_us, expected.since_us), last_us) if expected else ()
        starts = [_now(start, moment.runs) for start in store.coverage(job, first_us, last_us)]
        waivers = store.waivers(job, first_us, last_us)
        span = (after_us, end_us)
        found = verdicts.judge(windows, starts, waivers, moment.now_us, moment.grace_us, span=span)
        ascending = sorted(found, key=lambda each: each.window.due_us)
        yield from (_with_doubt(each, lost) for each in ascending) if lost.found else ascending
        after_us = end_us


def _with_doubt(each: Judged, lost: recoveries.Recoveries) -> Judged:
    """Return a missing window with a word on that its start may have been lost with the store."""
    clause = lost.over(each.window.due_us) if each.verdict == "missing" else ""
    return each._replace(because=f"{each.because}; {clause}") if clause else each


def _now(start: Start, runs: str) -> Start:
    if start.outcome != "running":
        return start
    life = liveness.judge(start.run_id, start.guard_pid, start.boot_id, runs)
    return start._replace(outcome="lost", why=life.because) if life.state == liveness.LOST else start
