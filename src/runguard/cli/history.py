"""`history`: runs, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from runguard import clock
from runguard.cli.asking import find, known_job, nothing_recorded, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, Number, Word, query_options
from runguard.cli.output import emit
from runguard.cli.runs import COLUMNS, FIELDS, Seen
from runguard.cli.spans import USUAL_SPAN_US, when
from runguard.cli.windows_named import Wanted, wanted, zone_of
from runguard.errors import UsageError
from runguard.guard.expecting import expecting
from runguard.instant import SECOND_US, rfc3339
from runguard.model import OUTCOMES
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run

TEXT = """Show runs, newest first: of JOB, or of all jobs. Refused starts are among them.

Without --since, the last 7 days. A run whose guard and command have gone shows as lost before anybody has recorded it.
"""

STATUSES = (
    ("0", "done, also where there is nothing to show"),
    ("2", "usage, or a job that is not on record"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("history", cls=Command, help=TEXT, short_help="Show runs, newest first.", statuses=STATUSES)
@click.argument("job", required=False)
@click.option("--since", metavar="WHEN", help="Started at or after: 2026-03-29, yesterday 14:00, last monday, 7d.")
@click.option("--until", metavar="WHEN", help="Started before.")
@click.option("--outcome", type=Word(OUTCOMES), metavar="OUTCOME", multiple=True,
              help=f"Only these, each with its own --outcome: {', '.join(OUTCOMES)}.")  # fmt: skip
@click.option("--window", metavar="WINDOW", help="Only this one: its key, its label or its due instant.")
@click.option("-n", "--limit", type=Number(1), metavar="N", help="At most N runs.")
@query_options
@click.pass_obj
def history(
    environ: dict[str, str],
    job: str | None,
    since: str | None,
    until: str | None,
    outcome: tuple[str, ...],
    window: str | None,
    limit: int | None,
    form: str | None,
    store: str | None,
) -> int:
    """Print the runs."""
    now_us = clock.look().wall_us
    first = None if since is None else when("history: --since", since)
    last = None if until is None else when("history: --until", until)
    asked = wanted("history: --window", window) if window is not None else None
    place = find(environ, store)
    records = open_records(place)
    job = None if job is None else known_job(records, job, place)
    zone = zone_of(expecting(records, job)) if records and job else None
    until_us = None if last is None else last.at_us(now_us, zone)
    since_us = None if first is None else first.at_us(now_us, zone)
    if since_us is None and window is None:  # a window is looked for in all of history
        since_us = (now_us // SECOND_US * SECOND_US if until_us is None else until_us) - USUAL_SPAN_US
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError(f"history: --since ({rfc3339(since_us)}) is not before --until ({rfc3339(until_us)})")
    if records is None:
        emit(form or "table", (), COLUMNS, FIELDS)
        say(nothing_recorded(place))
        return 0
    for remark in records.remarks:
        say(remark)
    seen = Seen(place.kept.runs)
    found = _Counted(_chosen(records, seen, job, since_us, until_us, outcome, asked))
    emit(form or "table", (seen.row(run) for run in found.first(limit)), COLUMNS, FIELDS)
    if not found.count and form in (None, "table"):
        say(_nothing(job, since_us, since))
    return 0


class _Counted:
    """Runs, counted as they are printed."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = runs
        self.count = 0

    def first(self, limit: int | None) -> Iterator[Run]:
        """Yield the first `limit` runs, or all."""
        for run in self.runs:
            self.count += 1
            yield run
            if self.count == limit:
                return


def _chosen(
    records: ReadOnlyStore,
    seen: Seen,
    job: str | None,
    since_us: int | None,
    until_us: int | None,
    outcomes: tuple[str, ...],
    asked: Wanted | None,
) -> Iterator[Run]:
    """Yield the runs that were asked for. `lost` includes those that nobody has recorded as lost yet."""
    recorded = outcomes[0] if len(outcomes) == 1 and outcomes != ("lost",) else None
    key = asked.key if asked else None
    for run in records.history(job, since_us=since_us, until_us=until_us, outcome=recorded, window_key=key):
        if asked is not None and not asked.matches(run):
            continue
        if not outcomes or seen.now(run)[0].outcome in outcomes:
            yield run


def _nothing(job: str | None, since_us: int | None, since: str | None) -> str:
    of = f" of {job}" if job else ""
    if since_us is None or since is not None:
        return f"no such runs{of}"
    return f"no such runs{of} since {rfc3339(since_us)}; --since 90d looks further back"
