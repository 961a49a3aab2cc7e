"""`run --catch-up`: what a start does about windows that were missed before its own."""

from __future__ import annotations

from itertools import islice

from runguard import clock
from runguard.coverage.missing import Gap, gap, missing
from runguard.errors import NothingRecordedError, RunguardError
from runguard.guard.answering import answer
from runguard.guard.expecting import Expecting, expecting
from runguard.guard.prepare import early_us
from runguard.guard.writing import writing
from runguard.instant import SECOND_US
from runguard.model import Asked, Covers
from runguard.record import NamedTuple
from runguard.store import recoveries
from runguard.store.journal import Journal
from runguard.store.sqlite import open_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runguard.guard.flow import Result
    from runguard.guard.prepare import Prepared
    from runguard.guard.voice import Voice

# Refusals that are no obstacle to the next window.
PASSED_OVER = ("duplicate", "off-schedule", "deadline")


class Missed(NamedTuple):
    """What was missed before the window of a start: all of it as one, and the oldest to run by themselves."""

    gap: Gap
    oldest: tuple[Asked, ...]


def catch_up_first(prepared: Prepared, voice: Voice, run_one: Callable[[Asked], Result]) -> Prepared:
    """Catch up on the windows before the one that this start answers, and return the start as it then is.

    `all` runs each of them, oldest first, up to the limit; `latest` and `merge` let this start answer them, `merge`
    with a window that begins where the first of them does. Windows past the job's deadline are left. A store that
    cannot be read is said: then nothing is caught up on.
    """
    mode = prepared.settings.catch_up
    try:
        _bring_journal_over(prepared)
        found = missed(prepared)
    except NothingRecordedError:
        return prepared
    except (RunguardError, MemoryError) as error:
        voice(f"{error or 'no memory is left'}; nothing is caught up on")
        return prepared
    if found is None:
        return prepared
    if mode == "all":
        _run_each(found, voice, run_one)
        look = clock.look()  # our own run begins only now
        return prepared._replace(start=prepared.start.begun(look.wall_us, look.since_boot_s))
    start_us = found.gap.first.start_us if mode == "merge" else None
    covers = Covers(found.gap.first.due_us, found.gap.last_due_us, found.gap.windows, start_us)
    return prepared._replace(start=prepared.start._replace(covers=covers))


def missed(prepared: Prepared) -> Missed | None:
    """Return what was missed before the window of this start, or None. Raises StoreError.

    What was due at a time whose records are lost may have been answered: that is left for a person.
    """
    start, places, settings = prepared.start, prepared.places, prepared.settings
    if start.expected is None or places is None or prepared.unsafe is not None:
        return None
    with open_reader(places.store, witness_directory=places.witness) as store:
        found = answer(store, start, early_us(settings))
        expected = expecting(store, start.job)
        if found.expected is None or expected is None:
            return None
        since_us = max(_since_us(prepared, expected), recoveries.look(store).until_us() or 0)
        before_us = found.expected.resolution.window.due_us - 1
        whole = gap(expected.succession, store, start.job, since_us, before_us)
        if whole is None:
            return None
        limit = settings.catch_up_limit if settings.catch_up == "all" else 0
        oldest = islice(missing(expected.succession, store, start.job, since_us, before_us, 0), limit)
        return Missed(whole, tuple(expected.ask(each.window, "catch-up") for each in oldest))


def _since_us(prepared: Prepared, expected: Expecting) -> int:
    """Return after which due a window is worth running."""
    deadline_s = prepared.settings.deadline_s
    if deadline_s is None:
        return expected.since_us
    return max(expected.since_us, prepared.start.at_us - round(deadline_s * SECOND_US))


def _bring_journal_over(prepared: Prepared) -> None:
    """Let the store know first what this host ran while it failed. Raises StoreError."""
    places = prepared.places
    if places is not None and prepared.unsafe is None and Journal(places.state, prepared.author).pending():
        with writing(prepared.start.environ, places, create=False):
            pass


def _run_each(found: Missed, voice: Voice, run_one: Callable[[Asked], Result]) -> None:
    """Run the oldest windows one by one, until one cannot be run, or we are told to stop."""
    for done, asked in enumerate(found.oldest):
        result = run_one(asked)
        obstacle = result.verdict.outcome == "refused" and result.verdict.why not in PASSED_OVER
        if result.stopped or obstacle:
            left = found.gap.windows - done - (not obstacle)
            voice(f"catching up ends here: {left} windows before this one are left")
            return
    left = found.gap.windows - len(found.oldest)
    if left:
        voice(f"caught up on {len(found.oldest)} windows, the limit; {left} before this one are left")
