"""`retire JOB`: nothing is expected of a job any more."""

from __future__ import annotations

import click

from runguard import clock
from runguard.cli.asking import find, known_job, open_registered
from runguard.cli.options import Command, store_option
from runguard.cli.output import page
from runguard.errors import UsageError
from runguard.guard.expecting import expecting
from runguard.guard.start import change_fields
from runguard.guard.writing import writing
from runguard.instant import rfc3339
from runguard.model import Revision
from runguard.store.reads import Reader

TEXT = """Record that JOB is gone: windows that are due later are not expected any more.

Windows up to now stay expected. A later start of the job with a schedule registers it again.
"""

STATUSES = (
    ("0", "done"),
    ("2", "usage, or a job that is not on record or is retired already"),
    ("74", "the store cannot be read or written"),
    ("78", "a mistake in the configuration, with its file and line"),
)


@click.command("retire", cls=Command, help=TEXT, short_help="Expect nothing of a job any more.", statuses=STATUSES)
@click.argument("job")
@click.option("--reason", metavar="TEXT", help="Why (needed); it is recorded with your login.")
@store_option
@click.pass_obj
def retire(environ: dict[str, str], job: str, reason: str | None, store: str | None) -> int:
    """Record it, and say which entry of the ledger tells it."""
    if reason is None or not reason.strip():
        raise UsageError(f"retire: --reason TEXT is {'needed' if reason is None else 'empty'}: why is the job gone?")
    now_us = clock.look().wall_us
    place = find(environ, store)
    known_job(open_registered(environ, place, now_us), job, place)
    with writing(environ, place.kept, create=False) as tx:
        known = tx.store.revisions(job)
        if known and known[-1].schedule is None:
            raise UsageError(f"retire: {job} is retired already, since {rfc3339(known[-1].after_us)}")
        after_us = _last_expected_us(tx.store, job, now_us)
        number = known[-1].number + 1 if known else 1
        fields = change_fields(job, "retired", Revision(number, None, after_us))
        entry = tx.append("job.changed", now_us, {**fields, "reason": reason})
    page([f"retired {job}: nothing due after {rfc3339(after_us)} is expected (entry {entry.seq})"])
    return 0


def _last_expected_us(store: Reader, job: str, now_us: int) -> int:
    """Return the last due that stays expected: of the windows up to now, or one that was answered before its time."""
    expected = expecting(store, job)
    if expected is None:
        return now_us
    window = expected.succession.previous(now_us)
    bounds = (
        window.due_us if window else None,
        store.last_answered_due_us(job),
        expected.succession.pieces[-1].after_us,
    )
    return max(bound for bound in bounds if bound is not None)
