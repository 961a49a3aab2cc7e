"""`run --catch-up`: what a start does about windows that were missed before its own."""

from __future__ import annotations

from runguard.coverage.missing import missing
from runguard.errors import RunguardError
from runguard.guard.answering import answer
from runguard.guard.expecting import expecting
from runguard.guard.prepare import early_us
from runguard.instant import SECOND_US
from runguard.model import Asked, Covers
from runguard.store.sqlite import open_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runguard.guard.flow import Result
    from runguard.guard.prepare import Prepared
    from runguard.guard.voice import Voice


def catch_up_first(prepared: Prepared, voice: Voice, run_one: Callable[[Asked], Result]) -> Prepared:
    """Catch up on the windows before the one that this start answers, and return the start as it then is.

    `all` runs each of them, oldest first, up to the limit; `latest` and `merge` let this start answer them, `merge`
    with a window that begins where the first of them does. Windows past the job's deadline are left out. A store that
    cannot be read is said: then nothing is caught up on.
    """
    mode = prepared.settings.catch_up
    try:
        missed = _missed(prepared)
    except RunguardError as error:
        voice(f"{error}; nothing is caught up on")
        return prepared
    if not missed:
        return prepared
    if mode == "all":
        _run_each(missed, prepared.settings.catch_up_limit, voice, run_one)
        return prepared
    windows = [asked.window for asked in missed if asked.window is not None]
    start_us = windows[0].start_us if mode == "merge" else None
    covers = Covers(windows[0].due_us, windows[-1].due_us, len(windows), start_us)
    return prepared._replace(start=prepared.start._replace(covers=covers))


def _missed(prepared: Prepared) -> list[Asked]:
    """Return what was missed before the window of this start, oldest first."""
    start, places = prepared.start, prepared.places
    if start.expected is None or places is None or prepared.unsafe is not None:
        return []
    with open_reader(places.store, witness_directory=places.witness) as store:
        found = answer(store, start, early_us(prepared.settings))
        if found.expected is None:
            return []
        expected = expecting(store, start.job)
        if expected is None:
            return []
        before_us = found.expected.resolution.window.due_us - 1
        deadline_s = prepared.settings.deadline_s
        worth_us = expected.since_us if deadline_s is None else start.at_us - round(deadline_s * SECOND_US)
        since_us = max(expected.since_us, worth_us)
        gaps = missing(expected.succession, store, start.job, since_us, before_us, 0)
        return [expected.ask(gap.window, "catch-up") for gap in gaps]


def _run_each(missed: list[Asked], limit: int, voice: Voice, run_one: Callable[[Asked], Result]) -> None:
    for done, asked in enumerate(missed):
        if done == limit:
            voice(f"caught up on {limit} windows, the limit; {len(missed) - limit} older than this one are left")
            return
        result = run_one(asked)
        if result.stopped or result.verdict.outcome == "refused":
            voice(f"catching up ends here: {len(missed) - done} windows before this one are left")
            return
