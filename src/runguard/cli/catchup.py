"""`catchup`: the windows that nobody answered, run oldest first, one at a time, each with its own window."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click
from filelock import FileLock, Timeout

from runguard import clock, config
from runguard.cli.asking import Place, find, known_job, open_registered
from runguard.cli.commanding import Chosen, command_for
from runguard.cli.fast import say
from runguard.cli.options import Command, Number, store_option
from runguard.cli.output import page, progress
from runguard.cli.spans import when
from runguard.cli.windows_named import zone_of
from runguard.coverage.missing import missing
from runguard.errors import UsageError
from runguard.guard import flow, lock
from runguard.guard.catching_up import PASSED_OVER
from runguard.guard.expecting import Expecting, expecting
from runguard.guard.signals import listen
from runguard.instant import SECOND_US
from runguard.model import Asked, Covers
from runguard.printable import line
from runguard.settings import Request, Settings, request
from runguard.store import recoveries
from runguard.store.database import ReadOnlyStore

TEXT = """Run the windows of JOB that nobody answered: oldest first, one at a time, each with its own window.

Windows past the job's deadline are left. Without a COMMAND, the job's own (key `command`), else what its schedule ran
last: arguments, directory and shell. After Ctrl-C no further window is begun. A failed window is no missing one: rerun.
"""

STATUSES = (
    ("0", "every window is answered"),
    ("1", "a run failed, or windows are left"),
    ("2", "usage, an unknown job, or a recorded command with masked secrets"),
    ("74", "the store cannot be read"),
    ("75", "another catch-up of the job is under way"),
    ("78", "a mistake in the configuration, with its file and line"),
)


class CatchUpRuns(UsageError):
    """Another catch-up of the same job is under way."""

    status = 75


@click.command("catchup", cls=Command, help=TEXT, short_help="Run the missing windows.", statuses=STATUSES)
@click.argument("job")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARGUMENT]...]")
@click.option("--since", metavar="WHEN", help="Only windows due after.")
@click.option("--until", metavar="WHEN", help="Only windows due then or before.")
@click.option("--limit", type=Number(1), metavar="N", help="At most N runs.")
@click.option("--merge", is_flag=True, help="One run whose window begins where the first of them does.")
@click.option("--stop-on-failure", is_flag=True, help="Begin no further window after a run that did not succeed.")
@click.option("--dry-run", is_flag=True, help="Say which windows would be run; do nothing.")
@store_option
@click.pass_obj
def catchup(
    environ: dict[str, str],
    job: str,
    command: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int | None,
    merge: bool,
    stop_on_failure: bool,
    dry_run: bool,
    store: str | None,
) -> int:
    """Run the missing windows; return 1 where a run failed or windows are left."""
    now_us = clock.look().wall_us
    place = find(environ, store)
    records = open_registered(environ, place, now_us)
    known_job(records, job, place)
    assert records is not None
    with records:
        expected = expecting(records, job)
        if expected is None:
            raise UsageError(f"catchup: {job} has no schedule, so no windows are expected of it")
        settings, _ = config.effective({}, environ, place.loaded, job)
        ends = tuple(
            None if text is None else when(f"catchup: {option}", text).at_us(now_us, zone_of(expected))
            for option, text in (("--since", since), ("--until", until))
        )
        found = list(_missing(records, job, expected, settings, now_us, ends))
        found, overdue = _worth_running(found, settings, now_us)
        chosen = command_for(records, settings, job, command) if found else None
        _say_what_is_lost(records, job, found)
    if overdue:
        names = f"{job}@{overdue[0].window.key}" if overdue[0].window else job
        say(f"{job}: {len(overdue)} windows are past their deadline and left; runguard rerun {names} --reason TEXT")
    if chosen is None:
        say(f"{job}: no {'other ' if overdue else ''}window is missing")
        return 1 if overdue else 0
    if dry_run:
        return _tell(job, found, chosen, merge=merge, limit=limit)
    given: dict[str, Any] = {"job": job, **chosen.given} | ({} if store is None else {"store": place.kept.store})
    chosen.enter()
    start = request(given, chosen.argv)
    with _alone(place, job):
        if merge:
            status = _merged(start, found, environ)
        else:
            status = _each(start, found if limit is None else found[:limit], environ, len(found), stop_on_failure)
    return 1 if overdue else status


def _missing(
    records: ReadOnlyStore,
    job: str,
    expected: Expecting,
    settings: Settings,
    now_us: int,
    ends: tuple[int | None, ...],
) -> Iterator[Asked]:
    """Yield what is to be run, oldest first."""
    since_us, until_us = ends
    grace_us = round(settings.grace_s * SECOND_US)
    first_us = max(expected.since_us, since_us or expected.since_us)
    last_us = min(now_us - grace_us, now_us if until_us is None else until_us)
    for gap in missing(expected.succession, records, job, first_us, last_us, 0):
        yield expected.ask(gap.window, "catch-up")


def _say_what_is_lost(records: ReadOnlyStore, job: str, found: list[Asked]) -> None:
    """Say that some of the windows may have been answered after all."""
    lost = recoveries.look(records)
    doubts = [doubt for asked in found if asked.window and (doubt := lost.over(asked.window.due_us))]
    if doubts:
        say(f"{job}: {len(doubts)} of these windows may have been answered: {doubts[0]}")


def _worth_running(found: list[Asked], settings: Settings, now_us: int) -> tuple[list[Asked], list[Asked]]:
    """Return the windows within the job's deadline, and those past it."""
    if settings.deadline_s is None:
        return found, []
    worth_us = now_us - round(settings.deadline_s * SECOND_US)
    overdue = [asked for asked in found if asked.window is not None and asked.window.due_us < worth_us]
    return found[len(overdue) :], overdue


def _tell(job: str, found: list[Asked], chosen: Chosen, *, merge: bool, limit: int | None) -> int:
    """Say what would be run."""
    windows = [asked.window for asked in found if asked.window is not None]
    page([f"command: {line(str(chosen))}"])
    if merge:
        page([f"{job}: one run from {windows[0].key} up to {windows[-1].key}, for {len(windows)} windows"])
        return 0
    page([f"{job}@{window.key}  due {window.label}" for window in windows[:limit]])
    if limit is not None and len(windows) > limit:
        say(f"{job}: the limit is {limit}; {len(windows) - limit} windows are left")
    return 0


def _alone(place: Place, job: str) -> Any:
    """Return a lock to enter: two catch-ups of one job would run the same windows in turns. Raises CatchUpRuns."""
    lock.ensure_private_directory(place.kept.locks)
    try:
        return FileLock(os.path.join(place.kept.locks, f"{job}~catchup.lock"), mode=0o600).acquire(timeout=0)
    except Timeout:
        raise CatchUpRuns(f"catchup: another catch-up of {job} is under way") from None


def _merged(start: Request, found: list[Asked], environ: dict[str, str]) -> int:
    """Answer all windows with one run."""
    windows = [asked.window for asked in found if asked.window is not None]
    covers = Covers(windows[0].due_us, windows[-1].due_us, len(windows), windows[0].start_us)
    result = flow.guard(start._replace(asked=found[-1], covers=covers), environ)
    say(f"{start.job}: {len(windows)} windows in one run: {result.verdict.outcome}")
    return 0 if result.verdict.outcome == "succeeded" else 1


def _each(start: Request, found: list[Asked], environ: dict[str, str], missing_count: int, stop: bool) -> int:
    """Run the windows one by one, and say how many came out how and how many are left."""
    outcomes: Counter[str] = Counter()
    signals = listen()
    with progress(start.job, len(found)) as advance:
        for asked in found:
            result = flow.guard(start._replace(asked=asked), environ, signals)
            passed_over = result.verdict.why == "duplicate"
            outcomes["answered meanwhile" if passed_over else result.verdict.outcome] += 1
            advance()
            obstacle = result.verdict.outcome == "refused" and result.verdict.why not in PASSED_OVER
            if result.stopped or obstacle:
                break
            if stop and result.verdict.outcome != "succeeded":
                break
    left = missing_count - outcomes.total() + outcomes["refused"]
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    hint = f"; runguard history {start.job} --outcome failed" if outcomes["failed"] else ""
    stopped = "interrupted: " if result.stopped else ""
    say(f"{start.job}: {stopped}{told}" + (f"; {left} windows are left" if left else "") + hint)
    return 0 if not left and set(outcomes) <= {"succeeded", "answered meanwhile"} else 1
