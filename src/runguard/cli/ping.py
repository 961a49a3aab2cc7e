"""`ping`: what the spool holds is sent; a monitor is tried; a Healthchecks server learns what to expect."""

from __future__ import annotations

from collections.abc import Sequence

import click

from runguard import values
from runguard.cli.asking import Place, find, open_records
from runguard.cli.options import Command, query_options
from runguard.errors import UsageError
from runguard.heartbeat import spool

TEXT = """Send what monitors have not heard: the outcomes in the spool, of all jobs or of each JOB.

A failure is sent until a newer outcome was; a success only until the next one is due, then it goes to the monitor's
log, or is dropped. What a monitor does not take stays. The address is read again from --ping file:/PATH of the run,
from RUNGUARD_PING or the configuration. In a crontab:

\b
  */5 * * * *   runguard ping >/dev/null

With --test a monitor is sent a line for its log, which changes nothing there, and its answer is told. With --sync the
job's check on a Healthchecks server is created, or updated to expect the job's windows (keys ping_api_key and
ping_api_url).
"""

STATUSES = (
    ("0", "everything is delivered, or there was nothing to do"),
    ("1", "something is not delivered, not accepted, or cannot be said to the server"),
    ("2", "usage, or a job that nobody knows"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line, or a spool that others could write to"),
)


@click.command("ping", cls=Command, help=TEXT, short_help="Send what monitors have not heard.", statuses=STATUSES)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--dry-run", is_flag=True, help="Say what would be sent; send nothing.")
@click.option("--drop", is_flag=True, help="Send nothing: drop what waits for the monitors of each JOB.")
@click.option("--test", is_flag=True, help="Try the monitor of each JOB: a line for its log.")
@click.option("--yes", is_flag=True, help="With --test: where a monitor has no log, send a success.")
@click.option("--sync", is_flag=True, help="Let the check of each JOB expect the job's windows.")
@click.option("--all", "every", is_flag=True, help="With --sync: of every job with a Healthchecks address.")
@query_options
@click.pass_obj
def ping(
    environ: dict[str, str],
    jobs: tuple[str, ...],
    dry_run: bool,
    drop: bool,
    test: bool,
    yes: bool,
    sync: bool,
    every: bool,
    form: str | None,
    store: str | None,
) -> int:
    """Do one of the four; return 1 where something is left undone."""
    _check(jobs, [name for name, given in (("--drop", drop), ("--test", test), ("--sync", sync)) if given], yes, every)
    place = find(environ, store)
    for job in jobs:
        _known(job, place)
    if test:
        from runguard.cli import ping_probe

        return ping_probe.probe(environ, place, jobs, form, yes=yes, dry_run=dry_run)
    if sync:
        from runguard.cli import ping_sync

        return ping_sync.sync(environ, place, None if every else jobs, form, dry_run=dry_run)
    from runguard.cli import ping_spool

    if drop:
        return ping_spool.drop(environ, place, jobs, form, dry_run=dry_run)
    return ping_spool.deliver(environ, place, jobs or None, form, dry_run=dry_run)


def _check(jobs: Sequence[str], modes: Sequence[str], yes: bool, every: bool) -> None:
    """Raise UsageError for options that do not go together."""
    if len(modes) > 1:
        raise UsageError(f"{modes[0]} or {modes[1]}, not both")
    if every and "--sync" not in modes:
        raise UsageError("--all goes with --sync; without a JOB everything in the spool is sent")
    if yes and "--test" not in modes:
        raise UsageError("--yes goes with --test")
    if every and jobs:
        raise UsageError("JOB or --all, not both")
    if modes and not jobs and not every:
        raise UsageError(f"{modes[0]} JOB{' or --sync --all' if '--sync' in modes else ''}: the job is missing")


def _known(job: str, place: Place) -> None:
    """Raise UsageError for a job that is neither on record nor described nor in the spool."""
    names = {job for file in place.loaded.files for job in _described(file.data.get("jobs"))}
    names |= {spool.job_of(path) for path in spool.waiting(place.kept.spool)}
    if job in names:
        return
    records = open_records(place)
    if records is not None:
        with records:
            names |= set(records.jobs())
    if job not in names:
        near = values.meant(job, sorted(names))
        raise UsageError(f"no job {values.short(job)} on record, in the configuration or in the spool{near}")


def _described(jobs: object) -> Sequence[str]:
    return list(jobs) if isinstance(jobs, dict) else []
