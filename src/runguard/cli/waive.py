"""`waive JOB@WINDOW`: a person answers for a window, or for every window of a span, without a run."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from runguard import clock
from runguard.cli.asking import find, known_job, open_registered
from runguard.cli.fast import say
from runguard.cli.options import Command, store_option
from runguard.cli.output import page
from runguard.cli.runs import Seen
from runguard.cli.spans import When, when
from runguard.cli.windows_named import find_window, target, zone_of
from runguard.coverage.verdicts import because_waived
from runguard.errors import UsageError
from runguard.guard.expecting import Expecting, expecting
from runguard.guard.writing import writing
from runguard.instant import rfc3339
from runguard.model import Window
from runguard.printable import line
from runguard.store.answered import Waiver
from runguard.store.reads import Reader

TEXT = """Answer for a window without a run: it counts as done, with your name and reason.

WINDOW is a key, a label or a due instant: letters@L2026-03-29T02:30, letters@2026-03-29T02:30+01:00. For planned
downtime name the job alone, and a span: windows of --since < due <= --until are waived, also those to come. --withdraw
takes back every waiver of that window or span.
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, an unknown job or window, or a window that is not to be waived"),
    ("74", "the store cannot be read or written"),
    ("78", "a mistake in the configuration, with its file and line"),
)

MOST_COUNTED = 100_000  # windows of a span


@click.command("waive", cls=Command, help=TEXT, short_help="Answer for a window without a run.", statuses=STATUSES)
@click.argument("window", metavar="JOB[@WINDOW]")
@click.option("--reason", metavar="TEXT", help="Why (needed, except to withdraw); it is recorded with your login.")
@click.option("--since", metavar="WHEN", help="Windows due after: 2026-03-29T22:00, today 22:00.")
@click.option("--until", metavar="WHEN", help="Windows due then or before.")
@click.option("--withdraw", is_flag=True, help="Take the waiver back.")
@store_option
@click.pass_obj
def waive(
    environ: dict[str, str],
    window: str,
    reason: str | None,
    since: str | None,
    until: str | None,
    withdraw: bool,
    store: str | None,
) -> int:
    """Record the waiver, and say what is waived and which entry of the ledger tells it."""
    if (reason is None and not withdraw) or (reason is not None and not reason.strip()):
        raise UsageError(f"waive: --reason TEXT is {'needed' if reason is None else 'empty'}: who waives says why")
    ends = _ends(window, since, until)
    job, named = (window, None) if ends else target("waive", window)
    now_us = clock.look().wall_us
    place = find(environ, store)
    records = open_registered(environ, place, now_us)
    known_job(records, job, place)
    with writing(environ, place.kept, create=False) as tx:
        expected = expecting(tx.store, job)
        fields: dict[str, Any] = {"job": job, "key": None, "since": None, "until": None}
        if named is not None:
            found = find_window(tx.store, job, expected, named)
            _check_window(tx.store, job, found, Seen(place.kept.runs), now_us, withdraw=withdraw)
            fields["key"] = found.key
            told = f"{job}@{found.key} (due {found.label})"
        else:
            assert ends is not None
            after_us, until_us = (end.at_us(now_us, zone_of(expected)) for end in ends)
            told = _check_span(tx.store, job, expected, after_us, until_us, withdraw=withdraw)
            fields |= {"since": rfc3339(after_us), "until": rfc3339(until_us)}
        entry = tx.append("window.waived", now_us, {**fields, "reason": reason, "withdraw": withdraw})
    done = "no longer waived: " if withdraw else "waived "
    page([f"{done}{told}{line(f': {reason}') if reason else ''} (entry {entry.seq})"])
    return 0


def _ends(window: str, since: str | None, until: str | None) -> tuple[When, When] | None:
    """Return the span that was asked for, or None where one window is meant."""
    if since is None and until is None:
        return None
    if "@" in window:
        raise UsageError("waive: one window (JOB@WINDOW) or a span (JOB --since --until), not both")
    if since is None or until is None:
        raise UsageError(f"waive: --{'since' if since is None else 'until'} is needed too: a span has two ends")
    return when("waive: --since", since), when("waive: --until", until)


def _check_window(store: Reader, job: str, window: Window, seen: Seen, now_us: int, *, withdraw: bool) -> None:
    """Refuse a window that is not to be waived, or whose waiver is not to be withdrawn. Raises UsageError."""
    name = f"waive: {job}@{window.key}"
    earlier = store.latest(job, window.key, window.due_us)
    if withdraw:
        if earlier is None or earlier.outcome != "waived":
            raise UsageError(f"{name} is not waived")
        return
    if window.due_us > now_us:
        raise UsageError(f"{name} is not due before {rfc3339(window.due_us)}; windows to come: --since and --until")
    if earlier is None:
        return
    if earlier.outcome == "waived":
        say(f"{name} was waived before; this reason is added")
    if earlier.outcome == "succeeded":
        raise UsageError(f"{name}: run {earlier.number} succeeded, so nothing is to be waived")
    if earlier.outcome == "running":
        run = store.run(earlier.run_id)
        if run is not None and seen.now(run)[0].outcome == "running":
            raise UsageError(f"{name}: run {earlier.number} is running; wait for its end")


def _check_span(
    store: Reader, job: str, expected: Expecting | None, after_us: int, until_us: int, *, withdraw: bool
) -> str:
    """Return what is waived, in words. Raises UsageError for a span that holds no window of the job."""
    if after_us >= until_us:
        raise UsageError(f"waive: --since ({rfc3339(after_us)}) is not before --until ({rfc3339(until_us)})")
    if expected is None:
        raise UsageError(f"waive: {job} has no schedule, so no windows are expected of it")
    bounds = max(after_us, expected.since_us), until_us
    count = sum(1 for _ in islice(expected.succession.dues(*bounds), MOST_COUNTED + 1))
    if not count:
        raise UsageError(f"waive: no window of {job} is due in that span{_following(expected, until_us)}")
    waivers = store.waivers(job, after_us, until_us)
    if withdraw and all(waiver.withdraw for waiver in waivers):
        raise UsageError(f"waive: nothing of {job} is waived in that span")
    for at, waiver in enumerate(waivers):
        stands = not waiver.withdraw and waiver.since_us is not None
        if not withdraw and stands and not _taken_back(waiver, waivers[at + 1 :]):
            span = f"from {rfc3339(waiver.since_us or 0)} to {rfc3339(waiver.until_us or 0)}"
            say(f"waive: this overlaps what is {because_waived(waiver)} ({span})")
    windows = f"more than {MOST_COUNTED} windows" if count > MOST_COUNTED else f"{count} window{'s' * (count > 1)}"
    return f"{job} from {rfc3339(after_us)} to {rfc3339(until_us)}, {windows}"


def _following(expected: Expecting, until_us: int) -> str:
    window = expected.succession.next(max(until_us, expected.since_us))
    return "" if window is None else f"; the next is {window.key}"


def _taken_back(waiver: Waiver, later: list[Waiver]) -> bool:
    """Return whether the whole span of a waiver was withdrawn since."""
    since_us, until_us = waiver.since_us or 0, waiver.until_us or 0
    spans = [(each.since_us, each.until_us) for each in later if each.withdraw]
    return any(
        first is not None and last is not None and first <= since_us and until_us <= last for first, last in spans
    )
