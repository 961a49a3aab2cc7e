"""Windows as queries tell them: the JSON contract, the cells of a table, and of which jobs and spans they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from runguard import config
from runguard.cli.asking import Place, known_job
from runguard.cli.fast import say
from runguard.cli.output import Column, Row, emit
from runguard.cli.spans import When
from runguard.cli.windows_named import zone_of
from runguard.coverage.verdicts import Judged
from runguard.errors import UsageError
from runguard.guard.expecting import Expecting, expecting
from runguard.guard.start import window_fields
from runguard.instant import SECOND_US, rfc3339
from runguard.model import Window
from runguard.store.database import ReadOnlyStore

# Columns of CSV, in the order of the JSON contract.
FIELDS = ("job", "key", "start", "due", "label", "nominal", "how", "fold", "collapsed")
VERDICT_FIELDS = (*FIELDS, "verdict", "because", "runs")
COLUMNS = (
    Column("JOB"),
    Column("WINDOW", short=len("2026-03-29T02:30")),
    Column("VERDICT"),
    Column("RUNS", cut=True),
    Column("WHY", cut=True),
)


class Span(NamedTuple):
    """The windows of a job that are asked for: those of `after < due <= until`."""

    job: str
    expected: Expecting | None
    after_us: int
    until_us: int
    grace_us: int


def spans(
    environ: dict[str, str],
    place: Place,
    records: ReadOnlyStore | None,
    job: str | None,
    since: When | int | None,
    until: When | None,
    now_us: int,
) -> Iterator[Span]:
    """Yield what is asked for of `job`, or of every job on record; `since` may be so long before the end.

    Without `since`, from the job's registration on. Raises UsageError for a job that is not on record, for a span
    that is empty, and for one that has not begun.
    """
    names = [known_job(records, job, place)] if job is not None else records.jobs() if records else []
    for name in names:
        assert records is not None
        expected = expecting(records, name)
        zone = zone_of(expected)
        until_us = now_us if until is None else until.at_us(now_us, zone)
        match since:
            case When():
                after_us = since.at_us(now_us, zone)
                _check(since, after_us, until, until_us, now_us)
            case None:
                after_us = expected.since_us if expected else until_us
            case _:
                after_us = until_us - since
        settings, _ = config.effective({}, environ, place.loaded, name)
        yield Span(name, expected, after_us, until_us, round(settings.grace_s * SECOND_US))


def facts(job: str | None, window: Window) -> dict[str, Any]:
    """Return a window by the JSON contract."""
    return {"job": job, **window_fields(window)}


def row(job: str, judged: Judged) -> Row:
    """Return a window and its verdict, as JSON tells it and as cells of `COLUMNS`."""
    window, verdict, because, runs, _ = judged
    told = {**facts(job, window), "verdict": verdict, "because": because, "runs": list(runs)}
    return Row(told, (job, window.label, verdict, " ".join(map(str, runs)), because))


def print_rows(rows: Iterable[Row], form: str | None, nothing: str | None = None) -> int:
    """Print windows with verdicts and return how many; a person is told `nothing` where there are none."""
    count = 0

    def counted() -> Iterator[Row]:
        nonlocal count
        for each in rows:
            count += 1
            yield each

    emit(form or "table", counted(), COLUMNS, VERDICT_FIELDS)
    if nothing and not count and form in (None, "table"):
        say(nothing)
    return count


def _check(since: When, after_us: int, until: When | None, until_us: int, now_us: int) -> None:
    if after_us >= now_us:
        raise UsageError(f"{since.option} ({rfc3339(after_us)}) lies ahead; runguard next shows what is to come")
    if until is not None and after_us >= until_us:
        other = until.option.rpartition(" ")[2]
        raise UsageError(f"{since.option} ({rfc3339(after_us)}) is not before {other} ({rfc3339(until_us)})")
