"""`next`: coming windows, of a job or of any schedule, with what daylight saving does to them in words."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import click

from runguard import clock, zones
from runguard.cli.asking import Place, find, known_job, open_registered
from runguard.cli.fast import say
from runguard.cli.options import Command, Number, Word, query_options
from runguard.cli.output import Column, Row, emit
from runguard.cli.spans import when
from runguard.cli.windows_named import zone_of
from runguard.cli.windows_told import FIELDS, facts
from runguard.coverage.verdicts import Waivers, because_waived
from runguard.errors import UsageError
from runguard.guard.expecting import expecting
from runguard.guard.registering import configured
from runguard.instant import rfc3339
from runguard.model import Schedule, Window
from runguard.schedule import oddities, revisions
from runguard.schedule.policy import FOLDS, GAPS, POLICIES
from runguard.schedule.revisions import Piece, Succession
from runguard.schedule.windows import Timetable
from runguard.schedule.zone import Zone
from runguard.store.database import ReadOnlyStore

TEXT = """Show coming windows: of JOB, of all jobs, or of any --schedule. Nothing is recorded for a --schedule.

Where daylight saving moves a window, repeats it or leaves one out, or a person has waived it, the row says so. With
--from and --until: windows of --from < due <= --until, which may lie in the past.
"""

STATUSES = (
    ("0", "done, also where nothing comes"),
    ("2", "usage, a text that is no schedule, or a job that is not on record"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)

USUALLY = 10
MOST = 10_000  # windows of a span, of all jobs, unless -n asks for more
AT_ONCE = 64  # windows that are looked for in one go
_BEGINNING_US = -(1 << 62)

CSV = (*FIELDS, "oddity", "waived")
COLUMNS = (
    Column("JOB"),
    Column("DUE", short=len("2026-03-29T02:30")),
    Column("KEY", spare=True),
    Column("ODDITY", wrap=True),
)


class Source(NamedTuple):
    """Where windows come from: a job, or a schedule without one."""

    job: str | None
    succession: Succession
    since_us: int  # later dues are expected
    zone: Zone | None
    waivers: Waivers = Waivers(())

    def coming(self, after_us: int) -> Iterator[Window]:
        """Yield the windows that are due later than an instant, ascending, as far as the calendar goes."""
        after_us = max(after_us, self.since_us)
        while (window := self.succession.next(after_us)) is not None:
            yield window
            after_us = window.due_us + AT_ONCE * (window.due_us - window.start_us)
            yield from self.succession.between(window.due_us, after_us)

    def timetable(self, due_us: int) -> Timetable | None:
        """Return the timetable of the revision in whose span a due lies."""
        return self.succession.piece_of(due_us).timetable


@click.command("next", cls=Command, help=TEXT, short_help="Show coming windows.", statuses=STATUSES)
@click.argument("job", required=False)
@click.option("-s", "--schedule", metavar="TEXT", help="Any schedule, for no job.")
@click.option("-z", "--timezone", metavar="ZONE", help="Its time zone (default: the host's).")
@click.option("--policy", type=Word(POLICIES), metavar="|".join(POLICIES), help="Its policy (default: vixie).")
@click.option("--gap", type=Word(GAPS), metavar="|".join(GAPS), help="A due time that the clock skips.")
@click.option("--fold", type=Word(FOLDS), metavar="|".join(FOLDS), help="A due time that the clock repeats.")
@click.option("--from", "start", metavar="WHEN", help="Due after: 2026-03-29, tomorrow, next monday (default: now).")
@click.option("--until", metavar="WHEN", help="Due then or before.")
@click.option("-n", "--limit", type=Number(1), metavar="N", help=f"At most N windows of each job (default: {USUALLY}).")
@query_options
@click.pass_obj
def next_(environ: dict[str, str], /, job: str | None, start: str | None, until: str | None, limit: int | None,
          form: str | None, store: str | None, **schedule: str | None) -> int:  # fmt: skip
    """Print the windows."""
    given = {name: value for name, value in schedule.items() if value is not None}
    first = None if start is None else when("next: --from", start)
    last = None if until is None else when("next: --until", until)
    now_us = clock.look().wall_us
    rows = []
    for source in _sources(environ, store, job, given, now_us):
        after_us = now_us if first is None else first.at_us(now_us, source.zone)
        until_us = None if last is None else last.at_us(now_us, source.zone)
        if until_us is not None and after_us >= until_us:
            raise UsageError(f"next: --from ({rfc3339(after_us)}) is not before --until ({rfc3339(until_us)})")
        most = limit or (USUALLY if until is None else None)
        rows.append(islice(_rows(source, after_us, until_us), most))
    merged = heapq.merge(*rows, key=lambda found: found[0])
    columns = COLUMNS[1:] if given else COLUMNS
    emit(form or "table", _counted(merged, MOST if limit is None else None), columns, CSV)
    return 0


def _rows(source: Source, after_us: int, until_us: int | None) -> Iterator[tuple[int, Row]]:
    """Yield (due, row) of the windows of `after < due <= until`; say which minutes are left out behind the last."""
    before_us = max(after_us, source.since_us)
    for window in source.coming(after_us):
        if until_us is not None and window.due_us > until_us:
            break
        timetable = source.timetable(window.due_us)
        oddity = oddities.story(timetable, window) if timetable else None
        waived = _waived(source.waivers, window)
        told = "; ".join(word for word in (oddity, waived) if word)
        cells = (*([source.job] if source.job else []), window.label, window.key, told)
        yield window.due_us, Row({**facts(source.job, window), "oddity": oddity, "waived": waived}, cells)
        before_us = window.due_us
    timetable = None if until_us is None else source.timetable(until_us)
    if timetable is not None and until_us is not None:
        for skip in oddities.skipped(timetable, before_us, max(before_us, until_us)):
            say(f"next: {skip.because}")


def _waived(waivers: Waivers, window: Window) -> str | None:
    """Return who waives a window and why, or None."""
    waiver = waivers.latest(window)
    return None if waiver is None or waiver.withdraw else because_waived(waiver)


def _counted(rows: Iterable[tuple[int, Row]], most: int | None) -> Iterator[Row]:
    """Yield at most `most` rows; say where there are none, and where there are more."""
    count = 0
    for _, row in rows:
        if count == most:
            say(f"next: only the first {most} windows are shown; -n shows more")
            return
        count += 1
        yield row
    if not count:
        say("next: no window comes")


def _sources(
    environ: dict[str, str], store: str | None, job: str | None, given: dict[str, str], now_us: int
) -> Iterator[Source]:
    """Yield what was asked for. Raises UsageError, ScheduleError, ZoneError."""
    if "schedule" in given:
        if job is not None:
            raise UsageError("next: JOB or --schedule, not both")
        yield _of_schedule(None, _schedule(given))
        return
    if given:
        raise UsageError(f"next: --{next(iter(given))} goes with --schedule")
    place = find(environ, store)
    records = open_registered(environ, place, now_us)
    if job is not None:
        yield _of_job(environ, place, records, job)
        return
    for name in sorted({*(records.jobs() if records else []), *_described(place)}):
        try:
            yield _of_job(environ, place, records, name)
        except UsageError:
            continue  # it has no schedule, or is retired


def _schedule(given: dict[str, str]) -> Schedule:
    zone = given.get("timezone") or zones.host_zone_name()
    return Schedule(given["schedule"], zone, given.get("policy", "vixie"), given.get("gap"), given.get("fold"))


def _of_schedule(job: str | None, schedule: Schedule) -> Source:
    zone = zones.load(schedule.zone).zone
    return Source(job, Succession([Piece(1, 0, revisions.timetable(schedule, zone))]), _BEGINNING_US, zone)


def _of_job(environ: dict[str, str], place: Place, records: ReadOnlyStore | None, job: str) -> Source:
    """Return the windows of a job by its revisions or, where the store could not take it, by the configuration."""
    if records is None or job not in records.jobs():
        schedule = configured(environ, place.loaded, job) if job in _described(place) else None
        if schedule is not None:
            return _of_schedule(job, schedule)
        known_job(records, job, place)
    assert records is not None
    if records.retired(job):
        raise UsageError(f"next: {job} is retired: no windows are expected of it")
    expected = expecting(records, job)
    if expected is None:
        raise UsageError(f"next: {job} has no schedule, so no windows are expected of it")
    return Source(job, expected.succession, expected.since_us, zone_of(expected), Waivers(records.waivers(job)))


def _described(place: Place) -> list[str]:
    tables = [file.data.get("jobs") for file in place.loaded.files]
    return [job for table in tables if isinstance(table, dict) for job in table]
