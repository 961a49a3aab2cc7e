"""`status`: every job at a glance."""

from __future__ import annotations

import click

from runguard import clock
from runguard.cli.asking import chosen_jobs, find, nothing_recorded, open_registered
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import emit
from runguard.cli.standings_told import COLUMNS, FIELDS, row
from runguard.report.assessment import assessments

TEXT = """Show how jobs stand now: of each JOB, or of all jobs.

The last run and the newest window, what is due next, who holds the job's lock now (found by the lock itself, not by
what is on record) and for how long, failures and refusals in a row, and what is wrong. Windows are looked at over 7
days, or over the last 30 of them where that is longer.
"""

STATUSES = (
    ("0", "done, however the jobs stand (check has a status for that)"),
    ("2", "usage, or a job that is not known"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("status", cls=Command, help=TEXT, short_help="Show how jobs stand now.", statuses=STATUSES)
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@query_options
@click.pass_obj
def status(environ: dict[str, str], jobs: tuple[str, ...], form: str | None, store: str | None) -> int:
    """Print the jobs."""
    now_us = clock.look().wall_us
    place = find(environ, store)
    records = open_registered(environ, place, now_us)
    for remark in records.remarks if records else ():
        say(remark)
    names = chosen_jobs(records, place, jobs)
    found = assessments(environ, place.loaded, records, place.kept, now_us, names)
    emit(form or "table", map(row, found), COLUMNS, FIELDS)
    if not found:
        say(nothing_recorded(place))
    return 0
