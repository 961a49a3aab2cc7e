"""What every query does first: judge the configuration, find the store, open it for reading."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runguard import config, paths, values
from runguard.config import Loaded, strict
from runguard.errors import NothingRecordedError, UnsafeError, UsageError
from runguard.guard import host
from runguard.paths import Places
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run
from runguard.store.sqlite import open_reader


class Place(NamedTuple):
    """Where the records are, and the configuration that says so."""

    kept: Places
    named: bool  # the store, by an option, a variable or a file: then it must exist
    loaded: Loaded


def find(environ: Mapping[str, str], store: str | None) -> Place:
    """Judge the configuration and return where the records are. Raises ConfigError, UsageError or UnsafeError."""
    given = {} if store is None else {"store": store}
    if store is not None and not store.strip():
        raise UsageError("--store: is empty")
    loaded = strict.load(environ)
    settings, problems = config.effective(given, environ, loaded, "")
    for problem in problems:
        if problem.breaks == "store":
            raise UsageError(problem.text) if store is not None else UnsafeError(problem.text)
    kept = paths.places(paths.state_directory(environ), settings.store)
    return Place(kept, settings.store is not None, loaded)


def open_records(place: Place) -> ReadOnlyStore | None:
    """Return the store for reading, or None where nothing has ever been recorded in the usual place.

    Raises UsageError where the store that was named does not exist, StoreError where it cannot be read.
    """
    if place.named and not os.path.lexists(place.kept.store):
        raise UsageError(f"store {place.kept.store}: there is no such file")
    try:
        return open_reader(place.kept.store, witness_directory=place.kept.witness)
    except NothingRecordedError:
        if place.named:
            raise
        return None


def open_registered(environ: Mapping[str, str], place: Place, now_us: int) -> ReadOnlyStore | None:
    """Register what the configuration describes, where the store can be written, and return it for reading.

    Raises as `open_records` does, and ConfigError for a zone or a schedule that is none.
    """
    from runguard.guard import registering

    if not place.named or os.path.lexists(place.kept.store):
        registering.register(environ, place.loaded, place.kept, now_us)
    return open_records(place)


def nothing_recorded(place: Place | None) -> str:
    """Return, in words, that there are no records, and whose they would be: that is no all-clear."""
    if place is None:
        return "nothing has been recorded yet"
    account = host.actor({}).user
    return f"nothing has been recorded yet in {place.kept.state} (account {account}; each account has its own records)"


def chosen_jobs(records: ReadOnlyStore | None, place: Place, jobs: Sequence[str]) -> list[str]:
    """Return `jobs`, each once, or every job on record or in the configuration where none is named.

    Raises UsageError for one that neither knows, with the nearest name.
    """
    from runguard.report.standing import known

    names = known(place.loaded, records)
    return list(dict.fromkeys(_named(job, names, place) for job in jobs)) if jobs else names


def known_job(records: ReadOnlyStore | None, job: str, place: Place | None = None) -> str:
    """Return `job` where the records know it. Raises UsageError with the nearest name."""
    return _named(job, records.jobs() if records else [], place)


def known_run(records: ReadOnlyStore | None, text: str, place: Place | None = None, *, or_window: bool = False) -> Run:
    """Return the run that a person names, as `find_run` does. Raises UsageError.

    With `or_window`, the command takes JOB@WINDOW too, and the hint for the name of a job says so.
    """
    if records is None:
        raise UsageError(f"no run {text!r}: {nothing_recorded(place)}")
    try:
        return records.find_run(text)
    except UsageError:
        if text not in records.jobs():
            raise
        hint = f"that is a job; name a run (runguard history {text} lists them)" + f" or {text}@WINDOW" * or_window
    raise UsageError(f"no run {text!r}: {hint}")


def _named(job: str, names: Sequence[str], place: Place | None) -> str:
    if job in names:
        return job
    near = values.meant(job, names) if names else f"; {nothing_recorded(place)}"
    raise UsageError(f"no job {values.short(job)} on record{near}")
