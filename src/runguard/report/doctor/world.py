"""What the checks look at, gathered once, and as far as it can be had."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from runguard import config
from runguard.config import Loaded
from runguard.crontab import host as cron
from runguard.crontab.daemons import DEBIAN, Daemon
from runguard.errors import StoreError
from runguard.model import Revision, Schedule
from runguard.paths import Places
from runguard.report.doctor.findings import Finding
from runguard.report.standing import known
from runguard.settings import Settings
from runguard.store import examining
from runguard.store.database import ReadOnlyStore
from runguard.store.sqlite import open_reader


class Job(NamedTuple):
    """One job that is on record or in the configuration, and not retired."""

    name: str
    settings: Settings
    schedule: Schedule | None


class World(NamedTuple):
    """What the checks look at."""

    environ: Mapping[str, str]
    loaded: Loaded
    places: Places
    named: bool  # the store, by an option, a variable or a file
    now_us: int
    records: ReadOnlyStore | None  # None: there are none, or they cannot be read
    jobs: tuple[Job, ...]

    @property
    def settings(self) -> Settings:
        """Those of no job in particular."""
        return config.effective({}, self.environ, self.loaded, "")[0]

    @property
    def daemon(self) -> Daemon:
        """The cron daemon that is installed; Debian's where none is."""
        return cron.daemon() or DEBIAN

    @property
    def writable(self) -> bool:
        """Whether the records are this account's own, and not those that it may only read."""
        try:
            return os.stat(self.places.store).st_uid == os.geteuid()
        except OSError:
            return os.access(os.path.dirname(self.places.state), os.W_OK) or os.access(self.places.state, os.W_OK)


Check = Callable[[World], Iterator[Finding]]


def gather(environ: Mapping[str, str], loaded: Loaded, places: Places, named: bool, now_us: int) -> World:
    """Return what there is. Records that cannot be read are left out: their own check tells of them."""
    records = _records(places)
    try:
        jobs = tuple(_jobs(environ, loaded, records))
    except StoreError:
        records = None
        jobs = tuple(_jobs(environ, loaded, None))
    return World(environ, loaded, places, named, now_us, records, jobs)


def _records(places: Places) -> ReadOnlyStore | None:
    if examining.waits_to_be_undone(os.path.realpath(places.store)):
        return None  # to open it would be a write
    try:
        return open_reader(places.store)
    except StoreError:
        return None


def _jobs(environ: Mapping[str, str], loaded: Loaded, records: ReadOnlyStore | None) -> Iterator[Job]:
    for name in known(loaded, records):
        revisions: list[Revision] = records.revisions(name) if records else []
        settings, _ = config.effective({}, environ, loaded, name)
        if revisions and revisions[-1].schedule is None:
            continue
        recorded = revisions[-1].schedule if revisions else None
        yield Job(name, settings, recorded or _configured(settings))


def _configured(settings: Settings) -> Schedule | None:
    from runguard.guard.prepare import schedule_of

    return schedule_of(settings)
