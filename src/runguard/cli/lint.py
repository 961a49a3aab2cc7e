"""`lint`: what in a crontab is not what it seems."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

import click

from runguard import clock, zones
from runguard.cli.asking import Place, find, open_records
from runguard.cli.crontabs import bad_mark, choose, daemon_named, system_tables, table_options, user_tables
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import Column, Row, emit, page
from runguard.crontab import host, parse
from runguard.crontab import lint as judging
from runguard.crontab.daemons import Daemon
from runguard.crontab.hazards import Finding, Host, Table
from runguard.crontab.lint import Seen
from runguard.crontab.wrap import BadMark
from runguard.errors import CrontabError, StoreError, UsageError, ZoneError
from runguard.guard.host import actor
from runguard.guard.registering import configured
from runguard.instant import SECOND_US
from runguard.printable import line as printable
from runguard.schedule.zone import Zone
from runguard.store.database import ReadOnlyStore

TEXT = """Tell what in a crontab is not what it seems: in FILE, in the table of --user, in your own, or in --all.

Each hazard comes with its line, the reason, what really happens, and a fix. Daylight saving is judged for the next two
years. Commands are looked for on this host; how long guarded jobs take is read from the records, where there are any.

\b
A comment right above a line silences it:
  # runguard: ignore                    any hazard
  # runguard: allow=percent,pipeline    these
"""

STATUSES = (
    ("0", "nothing was found"),
    ("1", "there are hazards"),
    ("2", "usage, or a table that cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)

RUNS = 20  # latest runs of a job that are looked at
FIELDS = ("file", "line", "text", "hazard", "reason", "happens", "fix", "dates")
HANG = 4


@click.command("lint", cls=Command, help=TEXT, short_help="Find hazards in a crontab.", statuses=STATUSES)
@table_options
@click.option("--all", "everything", is_flag=True, help="/etc/crontab, /etc/cron.d, and the users' tables.")
@click.option("-z", "--timezone", metavar="ZONE", help="The daemon's zone (default: the host's).")
@query_options
@click.pass_obj
def lint(
    environ: dict[str, str],
    file: str | None,
    user: str | None,
    system: bool | None,
    daemon: str | None,
    everything: bool,
    timezone: str | None,
    form: str | None,
    store: str | None,
) -> int:
    """Print the hazards; return 1 where there are any."""
    if everything and (file is not None or user is not None):
        raise UsageError("lint: FILE, --user or --all: one of them")
    place = find(environ, store)
    records = _records(place)
    now_us = clock.look().wall_us
    chosen = daemon_named(daemon)
    zone = _zone(timezone)
    if everything:
        tables, unread = _all(environ, chosen)
    else:
        one = choose("lint", environ, file, user, system)
        lines = parse.parse(one.data, system=one.system, percent=chosen.percent)
        tables, unread = [Table(one.label, lines, one.system, one.place, user or "")], 0
    rows: list[Row] = []
    jobs = 0
    seen = Seen({}, {})
    for table in tables:
        facts = _facts(environ, place, records, chosen, zone, now_us, table.owner)
        jobs += sum(each.kind == "job" for each in table.lines)
        try:
            rows += [_row(table, each) for each in judging.judge(table, facts, seen)]
        except BadMark as error:
            if not everything:
                raise bad_mark(table.label, error) from None
            say(str(bad_mark(table.label, error)))
            unread += 1
    if form in (None, "table"):
        page((text for row in rows for text in row.cells), hang=HANG)
        say(f"lint: {len(rows) or 'no'} hazard{'' if len(rows) == 1 else 's'} in {jobs} line{'' if jobs == 1 else 's'}")
    else:
        emit(form or "json", rows, (Column(""),), FIELDS)
    return 1 if rows else 2 if unread else 0


def _all(environ: Mapping[str, str], daemon: Daemon) -> tuple[list[Table], int]:
    """Return every table of this host that we can read, and how many we cannot; those are said."""
    unread: list[CrontabError] = []
    tables = [*system_tables(unread.append, daemon), *user_tables(environ, unread.append, daemon)]
    for error in unread:
        say(str(error))
    if os.geteuid() != 0:
        say("lint: the tables of other users are root's to read")
    return tables, len(unread)


def _facts(
    environ: dict[str, str],
    place: Place,
    records: ReadOnlyStore | None,
    daemon: Daemon,
    zone: Zone,
    now_us: int,
    owner: str,
) -> Host:
    """Return what judges of a table are told; `owner` is whose it is, "" for ours."""

    def why_not_found(program: str, path: str, user: str) -> str:
        return host.why_not_found(program, path, host.home_of(user or owner or None))

    def took_s(job: str, user: str) -> tuple[float, ...]:
        return _took_s(records, job) if (user or owner) in ("", me) else ()  # each account has its own records

    me = actor(environ).user
    return Host(
        daemon=daemon,
        zone=zone,
        now_us=now_us,
        zone_of=_zone_or_none,
        why_not_found=functools.cache(why_not_found),
        is_account=functools.cache(host.is_account),
        configured=functools.cache(functools.partial(configured, environ, place.loaded)),
        took_s=functools.cache(took_s),
        sh_is_plain=host.sh_is_plain(),
    )


def _took_s(records: ReadOnlyStore | None, job: str) -> tuple[float, ...]:
    """Return how long the latest runs of a job took that came to an end by themselves."""
    if records is None:
        return ()
    runs = records.history(job, limit=RUNS)
    ended = [run for run in runs if run.duration_us is not None and run.outcome in ("succeeded", "failed", "timed_out")]
    return tuple(run.duration_us / SECOND_US for run in ended if run.duration_us is not None)


def _records(place: Place) -> ReadOnlyStore | None:
    """Return the store, or None where there is none or it cannot be read: that is said."""
    try:
        return open_records(place)
    except StoreError as error:
        say(f"{error}; how long jobs take is not looked at")
        return None


def _zone(given: str | None) -> Zone:
    """Return the daemon's zone. Raises ZoneError where the one that was given is not known."""
    if given is not None:
        return zones.load(given).zone
    own = host.zone_of_daemon()
    found = None if own is None else _zone_or_none(own)
    return found or zones.load(zones.host_zone_name()).zone


@functools.cache
def _zone_or_none(name: str) -> Zone | None:
    try:
        return zones.load(name).zone
    except ZoneError:
        return None


def _row(table: Table, found: Finding) -> Row:
    line = None if found.number is None else table.lines[found.number - 1].text.decode("utf-8", "surrogateescape")
    facts = {
        "file": table.label, "line": found.number, "text": line, "hazard": found.hazard, "reason": found.reason,
        "happens": found.happens, "fix": found.fix, "dates": list(found.dates),
    }  # fmt: skip
    where = table.label if found.number is None else f"{table.label}:{found.number}"
    texts = (f"{where}: {found.hazard}: {found.reason}", f"    {found.happens}", f"    fix: {found.fix}")
    return Row(facts, tuple(map(printable, texts)))
