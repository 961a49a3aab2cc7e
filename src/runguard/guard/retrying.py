"""`--retries`: whether a failed run is tried again in its window, and the wait before it. Imported where it is set."""

from __future__ import annotations

import os
import select
import stat

from runguard import clock
from runguard.errors import NoTraceError, StoreError, UnsafeError
from runguard.guard.start import new_run_id
from runguard.instant import SECOND_US, seconds
from runguard.model import Earlier
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runguard.guard.ending import Verdict
    from runguard.guard.flow import Attempt, Edges
    from runguard.guard.prepare import Prepared
    from runguard.guard.signals import Signals
    from runguard.guard.telling import Monitor
    from runguard.model import Window
    from runguard.settings import Settings


_LONGEST_DELAY_S = 86_400.0  # doubling ends here
_TRIED_AGAIN = ("failed", "killed")


class Again(NamedTuple):
    """Another attempt is to follow after `delay_s`; None: none is, because `because`, or for a plain reason ("")."""

    delay_s: float | None
    because: str = ""


def until_it_works(
    prepared: Prepared,
    monitor: Monitor | None,
    edges: Edges,
    attempt_once: Callable[[Prepared, Monitor | None, int], Attempt],
) -> Attempt:
    """Try, and try again in the same window as long as the settings allow; return the last attempt that ran.

    Raises the errors that refuse a start for the first attempt alone: after it there is a status of the command's own.
    """
    tried, stdin_at = 1, _stdin_at()
    attempt = attempt_once(prepared, monitor, tried)
    while attempt.done is not None:
        hidden = _where_its_output_is(prepared, attempt.verdict, tried)
        if not _is_to_follow(prepared, attempt, tried, edges, hidden):
            break
        prepared, tried = _next_start(prepared, attempt.verdict.outcome, attempt.number), tried + 1
        monitor = attempt.monitor.again(prepared) if attempt.monitor is not None else None
        _rewind_stdin(stdin_at)
        try:
            following = attempt_once(prepared, monitor, tried)
        except (UnsafeError, NoTraceError, StoreError) as error:
            edges.voice(f"{error}: not tried again{hidden}")
            break
        if following.done is None:
            if hidden:
                edges.voice(f"not tried again{hidden}")
            break
        attempt = following
    return attempt


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


def _is_to_follow(prepared: Prepared, attempt: Attempt, tried: int, edges: Edges, hidden: str) -> bool:
    """Say what follows the `tried`-th attempt, and wait for it; return whether another one is to be made now."""
    places, signals, voice = edges
    settings, verdict = prepared.settings, attempt.verdict
    found = again(verdict, settings, tried, attempt.window, clock.look().wall_us)
    if found.delay_s is None:
        if found.because:
            voice(f"{found.because}{hidden}")
        return False
    how = verdict.outcome.replace("_", " ")
    of = f"attempt {tried} of {settings.retries + 1} {how}, status {verdict.returned}"
    if signals.stop is None:
        # Of a job that is to be quiet unless it fails, the record alone has it while tries are left.
        (voice.keep if settings.output == "on-failure" else voice)(f"{of}; the next in {seconds(found.delay_s)}")
    if attempt.monitor is not None and attempt.done is not None:
        attempt.monitor.tell_attempt(attempt.done, attempt.window)
    if _wait(signals, found.delay_s):
        return True
    from runguard.guard.ending_others import ordered_by  # only where we were told to stop

    by = ordered_by(places.runs, prepared.start.run_id)
    stopped = f"stopped to make way for run {by} (--overlap kill)" if by else f"told to stop by signal {signals.stop}"
    voice(f"{stopped}: not tried again{hidden}")
    return False


def _wait(signals: Signals, delay_s: float) -> bool:
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


def _next_start(prepared: Prepared, outcome: str, attempt: int) -> Prepared:
    """Return the start once more, after `attempt`, with that outcome: a run of its own, now, for the same window."""
    before = prepared.start
    replaces = Earlier(before.run_id, None, outcome, attempt, prepared.author.host)
    look = clock.look()
    start = before._replace(run_id=new_run_id(), waited_s=0.0, ended=(), replaces=replaces).begun(
        look.wall_us, look.since_boot_s
    )
    return prepared._replace(start=start)


def _where_its_output_is(prepared: Prepared, verdict: Verdict, tried: int) -> str:
    """Return a clause on output that was kept back, since a failure was not the last word, or ""."""
    settings = prepared.settings
    hidden = settings.output == "on-failure" and tried <= settings.retries and verdict.outcome in _TRIED_AGAIN
    return f"; its output: runguard show {prepared.start.run_id} --output" if hidden else ""


def _stdin_at() -> int | None:
    """Return how far the file that is our stdin has been read, or None where it is no file."""
    try:
        return os.lseek(0, 0, os.SEEK_CUR) if stat.S_ISREG(os.fstat(0).st_mode) else None
    except OSError:
        return None


def _rewind_stdin(stdin_at: int | None) -> None:
    """Let the next attempt find its input where the first one did: at its end, it would find nothing, and succeed."""
    if stdin_at is not None:
        os.lseek(0, stdin_at, os.SEEK_SET)
