"""`missing`: the windows that nobody answered."""

from __future__ import annotations

from collections.abc import Iterator

import click

from runguard import clock
from runguard.cli.asking import find, open_registered
from runguard.cli.options import Command, query_options
from runguard.cli.output import Row
from runguard.cli.spans import when
from runguard.cli.windows_told import Span, print_rows, row, spans
from runguard.coverage.missing import missing as unanswered
from runguard.store.reads import Reader

TEXT = """Show the windows that nobody answered, oldest first: of JOB, or of all jobs.

Without --since, from the first window that the job was expected to answer. A window counts once it is as old as the
job's grace. It is answered by any run that started for it, by a catch-up that covers it, and by a waiver.
"""

STATUSES = (
    ("0", "nothing is missing"),
    ("1", "windows are missing"),
    ("2", "usage, or a job that is not on record"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("missing", cls=Command, help=TEXT, short_help="Show windows nobody answered.", statuses=STATUSES)
@click.argument("job", required=False)
@click.option("--since", metavar="WHEN", help="Due after: 2026-03-29, yesterday 14:00, last monday, 7d.")
@click.option("--until", metavar="WHEN", help="Due then or before (default: now).")
@query_options
@click.pass_obj
def missing(
    environ: dict[str, str], job: str | None, since: str | None, until: str | None, form: str | None, store: str | None
) -> int:
    """Print the windows."""
    first = None if since is None else when("missing: --since", since)
    last = None if until is None else when("missing: --until", until)
    now_us = clock.look().wall_us
    place = find(environ, store)
    records = open_registered(environ, place, now_us)
    asked = list(spans(environ, place, records, job, first, last, now_us))
    rows = _rows(records, asked, now_us) if records else ()
    count = print_rows(rows, form, "nothing is missing" if records else "nothing has been recorded yet")
    return 1 if count else 0


def _rows(records: Reader, asked: list[Span], now_us: int) -> Iterator[Row]:
    for job, expected, after_us, until_us, grace_us in asked:
        if expected is None:
            continue
        after_us, until_us = max(after_us, expected.since_us), min(until_us, now_us - grace_us)
        for found in unanswered(expected.succession, records, job, after_us, until_us, 0):
            yield row(job, found)
