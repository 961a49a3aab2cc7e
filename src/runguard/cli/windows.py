"""`windows`: every expected window of a span with its verdict and why."""

from __future__ import annotations

from collections.abc import Iterator

import click

from runguard import clock
from runguard.cli.asking import find, nothing_recorded, open_registered
from runguard.cli.options import Command, Word, query_options
from runguard.cli.output import Row
from runguard.cli.spans import USUAL_SPAN_US, when
from runguard.cli.windows_told import Span, print_rows, row, spans
from runguard.guard.judging import Moment, judged
from runguard.model import VERDICTS
from runguard.store.reads import Reader

TEXT = """Show every window that was expected, oldest first, with its verdict and why: of JOB, or of all jobs.

Without --since, of the last 7 days. A window belongs to the span of --since < due <= --until.
"""

STATUSES = (
    ("0", "done, also where there is nothing to show"),
    ("2", "usage, or a job that is not on record"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("windows", cls=Command, help=TEXT, short_help="Show expected windows and verdicts.", statuses=STATUSES)
@click.argument("job", required=False)
@click.option("--since", metavar="WHEN", help="Due after: 2026-03-29, yesterday 14:00, last monday, 7d.")
@click.option("--until", metavar="WHEN", help="Due then or before (default: now).")
@click.option("--verdict", type=Word(VERDICTS), metavar="VERDICT", multiple=True,
              help=f"Only these, each with its own --verdict: {', '.join(VERDICTS)}.")  # fmt: skip
@query_options
@click.pass_obj
def windows(
    environ: dict[str, str],
    job: str | None,
    since: str | None,
    until: str | None,
    verdict: tuple[str, ...],
    form: str | None,
    store: str | None,
) -> int:
    """Print the windows."""
    first = USUAL_SPAN_US if since is None else when("windows: --since", since)
    last = None if until is None else when("windows: --until", until)
    now_us = clock.look().wall_us
    place = find(environ, store)
    records = open_registered(environ, place, now_us)
    asked = list(spans(environ, place, records, job, first, last, now_us))
    rows = _rows(records, asked, Moment(now_us, 0, place.kept.runs), verdict) if records else ()
    print_rows(rows, form, _nothing(job, since) if records else nothing_recorded(place))
    return 0


def _rows(records: Reader, asked: list[Span], moment: Moment, verdicts: tuple[str, ...]) -> Iterator[Row]:
    for job, expected, after_us, until_us, grace_us in asked:
        for found in judged(records, job, expected, after_us, until_us, moment._replace(grace_us=grace_us)):
            if not verdicts or found.verdict in verdicts:
                yield row(job, found)


def _nothing(job: str | None, since: str | None) -> str:
    of = f" of {job}" if job else ""
    return f"no such windows{of}" if since else f"no such windows{of} in 7 days; --since 90d looks further back"
