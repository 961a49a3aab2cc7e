"""What every query does first: judge the configuration, find the store, open it for reading."""

from __future__ import annotations

import os
from collections.abc import Mapping

from runguard import config, paths, values
from runguard.config import strict
from runguard.errors import StoreError, UnsafeError, UsageError
from runguard.store.database import ReadOnlyStore
from runguard.store.sqlite import open_reader


def open_records(environ: Mapping[str, str], store: str | None) -> ReadOnlyStore | None:
    """Return the store for reading, or None where nothing has ever been recorded in the usual place.

    Raises ConfigError for a mistake in the configuration, UsageError where the store that was named does not exist,
    StoreError where it cannot be read.
    """
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
    if not os.path.lexists(path) and settings.store:
        raise UsageError(f"store {path}: there is no such file")
    try:
        return open_reader(path, witness_directory=os.path.join(state, "witness"))
    except StoreError as error:
        if settings.store is None and error.why.startswith("nothing has been recorded"):
            return None
        raise


def known_job(records: ReadOnlyStore | None, job: str) -> str:
    """Return `job` where the records know it. Raises UsageError with the nearest name."""
    jobs = records.jobs() if records else []
    if job in jobs:
        return job
    near = values.meant(job, jobs) if jobs else "; nothing has been recorded yet"
    raise UsageError(f"no job {values.short(job)} on record{near}")
