"""`missing`: the windows that nobody answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from runguard import clock
from runguard.cli.asking import find, nothing_recorded, open_registered
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import Row
from runguard.cli.spans import USUAL_SPAN_US, when
from runguard.cli.windows_told import Span, print_rows, row, spans
from runguard.coverage.missing import missing as unanswered
from runguard.guard.judging import Moment, judged
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
    count = print_rows(rows, form)
    if form in (None, "table"):
        say(nothing_recorded(place) if records is None else _summary(count, job))
        if records and not count and last is None:
            _say_broken(job, _broken(records, asked, Moment(now_us, 0, place.kept.runs)))
    return 1 if count else 0


def _summary(count: int, job: str | None) -> str:
    if not count:
        return "nothing is missing"
    return f"{count} missing; runguard catchup {job or 'JOB'} --dry-run tells what would be run"


def _say_broken(job: str | None, found: Counter[str]) -> None:
    """Say which windows a run has answered badly: that nothing is missing does not mean that all is well."""
    if found:
        told = ", ".join(f"{count} {verdict}" for verdict, count in found.items())
        options = " ".join(f"--verdict {verdict}" for verdict in found)
        say(f"but in 7 days {told}: runguard windows {f'{job} ' if job else ''}{options}")


def _broken(records: Reader, asked: list[Span], moment: Moment) -> Counter[str]:
    """Return how many of the windows of the last days are lost, and how many failed."""
    found: Counter[str] = Counter()
    for job, expected, after_us, until_us, grace_us in asked:
        after_us = max(after_us, until_us - USUAL_SPAN_US)
        seen = judged(records, job, expected, after_us, until_us, moment._replace(grace_us=grace_us))
        found.update(each.verdict for each in seen if each.verdict in ("lost", "failed"))
    return found


def _rows(records: Reader, asked: list[Span], now_us: int) -> Iterator[Row]:
    for job, expected, after_us, until_us, grace_us in asked:
        if expected is None:
            continue
        after_us, until_us = max(after_us, expected.since_us), min(until_us, now_us - grace_us)
        for found in unanswered(expected.succession, records, job, after_us, until_us, 0):
            yield row(job, found)
