"""`--retries`: whether a failed run is tried again in its window, and the wait before it. Imported where it is set."""

from __future__ import annotations

import select

from runguard import clock
from runguard.guard.start import new_run_id
from runguard.instant import SECOND_US, seconds
from runguard.model import Earlier
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.ending import Verdict
    from runguard.guard.prepare import Prepared
    from runguard.guard.signals import Signals
    from runguard.guard.voice import Voice
    from runguard.model import Window
    from runguard.settings import Settings

_LONGEST_DELAY_S = 86_400.0  # doubling ends here
_TRIED_AGAIN = ("failed", "killed")


class Again(NamedTuple):
    """Another attempt is to follow after `delay_s`; None: none is, because `because`, or for a plain reason ("")."""

    delay_s: float | None
    because: str = ""


def again(verdict: Verdict, settings: Settings, tried: int, window: Window | None, now_us: int) -> Again:
    """Return whether a further attempt follows the run that ended with `verdict`, the `tried`-th of this start.

    Never after a run that was stopped, at its time limit only where `retry_timeouts` says so, and never where the next
    would begin past the window's deadline.
    """
    wanted = (*_TRIED_AGAIN, "timed_out") if settings.retry_timeouts else _TRIED_AGAIN
    if verdict.outcome not in wanted or verdict.why == "overlap":
        timed_out = verdict.outcome == "timed_out" and settings.retries > 0
        return Again(None, "stopped at its time limit: not tried again (retry_timeouts)" if timed_out else "")
    if tried > settings.retries:
        return Again(None, f"given up after {tried} attempts" if tried > 1 else "")
    delay_s = min(settings.retry_delay_s * 2 ** min(tried - 1, 60), max(_LONGEST_DELAY_S, settings.retry_delay_s))
    if window is not None and settings.deadline_s is not None:
        begins_us = now_us + round(delay_s * SECOND_US)
        if begins_us > window.due_us + round(settings.deadline_s * SECOND_US):
            return Again(
                None, f"not tried again: that would be past the window's deadline of {seconds(settings.deadline_s)}"
            )
    return Again(delay_s)


def wait(signals: Signals, delay_s: float) -> bool:
    """Wait before the next attempt; return False as soon as we are told to stop."""
    until_s = clock.look().monotonic_s + delay_s
    poll = select.poll()
    poll.register(signals.fd, select.POLLIN)
    while signals.stop is None:
        left_s = until_s - clock.look().monotonic_s
        if left_s <= 0:
            return True
        poll.poll(left_s * 1000 + 1)
        signals.take()
    return False


def next_start(prepared: Prepared, outcome: str, attempt: int) -> Prepared:
    """Return the start once more, after `attempt`, with that outcome: a run of its own, now, for the same window."""
    before = prepared.start
    replaces = Earlier(before.run_id, None, outcome, attempt, prepared.author.host)
    look = clock.look()
    start = before._replace(run_id=new_run_id(), waited_s=0.0, ended=(), replaces=replaces).begun(
        look.wall_us, look.since_boot_s
    )
    return prepared._replace(start=start)


def say(voice: Voice, prepared: Prepared, verdict: Verdict, found: Again, tried: int) -> None:
    """Say what follows. Of a job that is to be quiet unless it fails, the record alone has it while tries are left."""
    settings, quiet = prepared.settings, prepared.settings.output == "on-failure"
    if found.delay_s is not None:
        how = verdict.outcome.replace("_", " ")
        of = f"attempt {tried} of {settings.retries + 1} {how}, status {verdict.returned}"
        (voice.keep if quiet else voice)(f"{of}; the next in {seconds(found.delay_s)}")
    elif found.because:
        hidden = quiet and tried <= settings.retries and verdict.outcome in _TRIED_AGAIN
        look = f"; its output: runguard show {prepared.start.run_id} --output" if hidden else ""
        voice(f"{found.because}{look}")
