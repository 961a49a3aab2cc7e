"""What every query does first: judge the configuration, find the store, open it for reading."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from runguard import config, paths, values
from runguard.config import Loaded, strict
from runguard.errors import NothingRecordedError, UnsafeError, UsageError
from runguard.store.database import ReadOnlyStore
from runguard.store.sqlite import open_reader


class Place(NamedTuple):
    """Where the records are, and the configuration that says so."""

    state: str
    path: str
    named: bool  # by an option, a variable or a file: then it must exist
    loaded: Loaded

    @property
    def witness(self) -> str:
        """The directory of the witness."""
        return os.path.join(self.state, "witness")

    @property
    def runs(self) -> str:
        """The directory of the files of living runs."""
        return os.path.join(os.path.dirname(os.path.realpath(self.path)), "runs")


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
    state = paths.state_directory(environ)
    path = settings.store or paths.default_store(state)
    return Place(state, path, settings.store is not None, loaded)


def open_records(environ: Mapping[str, str], store: str | None) -> ReadOnlyStore | None:
    """Return the store for reading, or None where nothing has ever been recorded in the usual place.

    Raises ConfigError for a mistake in the configuration, UsageError where the store that was named does not exist,
    StoreError where it cannot be read.
    """
    return open_at(find(environ, store))


def open_at(place: Place) -> ReadOnlyStore | None:
    """Return the store for reading; see `open_records`."""
    if place.named and not os.path.lexists(place.path):
        raise UsageError(f"store {place.path}: there is no such file")
    try:
        return open_reader(place.path, witness_directory=place.witness)
    except NothingRecordedError:
        if place.named:
            raise
        return None


def open_registered(environ: Mapping[str, str], place: Place, now_us: int) -> ReadOnlyStore | None:
    """Register what the configuration describes, where the store can be written, and return it for reading.

    Raises as `open_records` does.
    """
    from runguard.guard import registering

    if not place.named or os.path.lexists(place.path):
        registering.register(environ, place.loaded, place.state, place.path, now_us)
    return open_at(place)


def known_job(records: ReadOnlyStore | None, job: str) -> str:
    """Return `job` where the records know it. Raises UsageError with the nearest name."""
    jobs = records.jobs() if records else []
    if job in jobs:
        return job
    near = values.meant(job, jobs) if jobs else "; nothing has been recorded yet"
    raise UsageError(f"no job {values.short(job)} on record{near}")
