"""`rerun`: a run or a window once more, under a new attempt that names what it replaces."""

from __future__ import annotations

from typing import Any

import click

from runguard import clock, config
from runguard.cli.asking import Place, find, known_job, known_run, open_registered
from runguard.cli.commanding import command_for
from runguard.cli.options import Command, store_option
from runguard.cli.windows_named import find_window, target
from runguard.errors import UsageError
from runguard.guard import flow
from runguard.guard.expecting import expecting
from runguard.guard.start import window_of
from runguard.instant import rfc3339
from runguard.model import Asked, Earlier, Schedule
from runguard.settings import request
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run

TEXT = """Run the window of RUN, or WINDOW of JOB, once more: also where it is done or held.

The new run is the window's next attempt, names the one that it replaces, and both stay on record. Without a COMMAND,
the job's own (key `command`), else what that run ran: arguments, directory and shell.
"""

STATUSES = (
    ("N", "the command's own status, whenever it ran; 128+N if signal N ended it"),
    ("2", "usage, an unknown run, job or window, or a recorded command with masked secrets"),
    ("74", "no trace could be written, or the store cannot be read"),
    ("75", "refused: an earlier run lives"),
    ("78", "a mistake in the configuration, or a start that would be unsafe"),
    ("124", "timed out; 137 if it took KILL"),
    ("125", "the command could not be spawned"),
    ("126", "the command is not executable"),
    ("127", "the command was not found"),
)


@click.command("rerun", cls=Command, help=TEXT, short_help="Run a window once more.", statuses=STATUSES)
@click.argument("what", metavar="RUN|JOB@WINDOW")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARGUMENT]...]")
@click.option("--reason", metavar="TEXT", help="Why (needed); it is recorded with your login.")
@store_option
@click.pass_obj
def rerun(environ: dict[str, str], what: str, command: tuple[str, ...], reason: str | None, store: str | None) -> int:
    """Run the command for the window that is meant, and return its status."""
    if reason is None or not reason.strip():
        raise UsageError(f"rerun: --reason TEXT is {'needed' if reason is None else 'empty'}: who runs again says why")
    place = find(environ, store)
    now_us = clock.look().wall_us
    records = open_registered(environ, place, now_us)
    job, asked, run = _asked(records, what, place, now_us)
    assert records is not None
    with records:
        settings, _ = config.effective({}, environ, place.loaded, job)
        chosen = command_for(records, settings, job, command, run)
    given: dict[str, Any] = {"job": job, "reason": reason, **chosen.given}
    if store is not None:
        given["store"] = store
    chosen.enter()
    start = request(given, chosen.argv)._replace(asked=asked)
    return flow.run(start, environ)


def _asked(records: ReadOnlyStore | None, what: str, place: Place, now_us: int) -> tuple[str, Asked, Run | None]:
    """Return the job, what is to be answered, and the run that it replaces, if any. Raises UsageError."""
    if "@" not in what:
        run = known_run(records, what, place, or_window=True)
        assert records is not None
        return run.job, _as_recorded(records, run), run
    job, named = target("rerun", what)
    known_job(records, job, place)
    assert records is not None
    expected = expecting(records, job)
    window = find_window(records, job, expected, named)
    if window.due_us > now_us:
        due = rfc3339(window.due_us)
        raise UsageError(f"rerun: {job}@{window.key} is not due before {due}; the run of its time would find it done")
    latest = records.latest(job, window.key, window.due_us)
    run_of_it = records.run(latest.run_id) if latest is not None and latest.attempt else None
    if run_of_it is not None:
        return job, _as_recorded(records, run_of_it), run_of_it
    if expected is None:
        raise UsageError(f"rerun: {job} has no schedule, so no windows are expected of it")
    return job, expected.ask(window, "rerun"), None


def _as_recorded(records: ReadOnlyStore, run: Run) -> Asked:
    """Return the window of a run as it was recorded: windows on record are never derived again."""
    told = records.entries(run.run_id)[0]["window"]
    if told is None:
        earlier = Earlier(run.run_id, run.number, run.outcome, run.attempt or 0, run.host)
        return Asked("rerun", None, None, run.revision, "", earlier)
    return Asked("rerun", window_of(told), Schedule(**told["schedule"]), run.revision, told["tzdata"])
