"""Jobs that a configuration file describes are expected from then on, also before their first start.

Called by every command that looks at windows; a store that cannot be written is left as it is, in silence: the next
start of the job registers it too.
"""

from __future__ import annotations

import os

from runguard import config, paths, zones
from runguard.config.merge import dotted, place
from runguard.errors import ConfigError, RunguardError, ScheduleError, ZoneError
from runguard.guard import host
from runguard.guard.prepare import schedule_of
from runguard.guard.start import change_fields
from runguard.guard.writing import writing
from runguard.model import Revision, Schedule
from runguard.record import NamedTuple
from runguard.schedule import revisions
from runguard.store.journal import Journal
from runguard.store.sqlite import open_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runguard.config import Loaded
    from runguard.paths import Places
    from runguard.schedule.windows import Timetable
    from runguard.store.reads import Reader


class _Described(NamedTuple):
    """What the files say of a job."""

    schedule: Schedule
    timetable: Timetable


def register(environ: Mapping[str, str], loaded: Loaded, places: Places, now_us: int) -> None:
    """Register, or revise, the jobs of the configuration in the store, where that can be written.

    What waits in the journal is brought over too, lest its windows look missing. Only a store of ours, and only jobs
    in files of ours. Raises ConfigError where a zone or schedule is none.
    """
    found = _status(places.store)
    if found is not None and found.st_uid != os.geteuid():
        return
    described = dict(_described(environ, loaded, os.geteuid()))
    changed_us = _changed_us(loaded)
    try:
        if found is not None:
            with open_reader(places.store, witness_directory=places.witness) as reader:
                waiting = Journal(places.state, host.author(environ)).pending()
                if not waiting and not list(_changes(reader, described, changed_us, now_us)):
                    return
        elif described:
            paths.prepare(places.state)
        else:
            return
        with writing(environ, places, create=True) as tx:
            for change in list(_changes(tx.store, described, changed_us, now_us)):
                tx.append("job.changed", now_us, change_fields(*change))
    except (RunguardError, OSError):
        return


def unregistered(
    environ: Mapping[str, str], loaded: Loaded, store: Reader | None, places: Places, now_us: int
) -> dict[str, Revision]:
    """Return the revisions that `register` would record, as they were if it had been called when the files changed.

    For those who only read: a window that has become due since is expected although no command has registered it.
    Only jobs in files of whoever the store belongs to. Raises ConfigError where a zone or schedule is none.
    """
    found = _status(places.store)
    changed_us = min(_changed_us(loaded), now_us)
    described = dict(_described(environ, loaded, os.geteuid() if found is None else found.st_uid))
    return {job: revision for job, _, revision in _changes(store, described, changed_us, changed_us)}


def configured(environ: Mapping[str, str], loaded: Loaded, job: str) -> Schedule | None:
    """Return the schedule that the configuration gives a job, or None. In strict configuration nothing is broken."""
    settings, _ = config.effective({}, environ, loaded, job)
    return schedule_of(settings)


def _described(environ: Mapping[str, str], loaded: Loaded, owner: int) -> Iterator[tuple[str, _Described]]:
    """Yield what the files of uid `owner` say of each job that has a schedule."""
    for file in loaded.files:
        found, jobs = _status(file.path), file.data.get("jobs")
        if found is None or found.st_uid != owner or not isinstance(jobs, dict):
            continue
        for job in jobs:
            schedule = configured(environ, loaded, job)
            if schedule is not None:
                yield job, _Described(schedule, _timetable(file.path, job, schedule))


def _changes(
    store: Reader | None, described: Mapping[str, _Described], changed_us: int, now_us: int
) -> Iterator[tuple[str, str, Revision]]:
    """Yield (job, change, revision) that the store lacks to expect what the files say, last changed at `changed_us`.

    Files older than the latest revision are no edit of it: a start with other options opened that one, and options
    win. A retired job waits for its next start.
    """
    for job, (schedule, timetable) in described.items():
        known = store.revisions(job) if store else []
        before = timetable.previous(now_us)
        due_us = now_us if before is None else before.due_us
        if store is None or not known:
            yield job, "registered", Revision(1, schedule, due_us)
            continue
        latest = known[-1]
        if latest.schedule in (None, schedule) or changed_us <= (store.revised_us(job) or 0):
            continue
        # What was answered, or edited, while the clock was ahead counts for nothing once it is back.
        bounds = (store.last_answered_due_us(job), latest.after_us)
        after_us = max(due_us, *(bound for bound in bounds if bound is not None and bound <= now_us), due_us)
        yield job, "schedule", Revision(latest.number + 1, schedule, after_us)


def _changed_us(loaded: Loaded) -> int:
    """Return when one of the files was changed last."""
    return max((each.st_ctime_ns // 1000 for file in loaded.files if (each := _status(file.path))), default=0)


def _timetable(path: str, job: str, schedule: Schedule) -> Timetable:
    try:
        return revisions.timetable(schedule, zones.load(schedule.zone).zone)
    except (ScheduleError, ZoneError) as error:
        keys = ("jobs", job, "timezone" if isinstance(error, ZoneError) else "schedule")
        raise ConfigError(f"{place(path, keys)}{dotted(*keys)}: {error}", path=path) from None


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
