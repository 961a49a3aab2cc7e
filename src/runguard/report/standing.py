"""How jobs stand now: gathered from the store, the journal, the locks and the processes; nothing is written.

What is expected, which verdict a window has and which run lives is asked of those who tell it to `windows`, `missing`
and `history` too. Every question is a few steps along an index, however many runs there are.
"""

from __future__ import annotations

from runguard.coverage.standing import Holding, Standing, Undelivered
from runguard.guard import host, registering
from runguard.guard.expecting import read
from runguard.guard.judging import Moment, judged
from runguard.guard.lockholders import holders
from runguard.heartbeat import spool
from runguard.instant import DAY_S, SECOND_US
from runguard.record import NamedTuple
from runguard.report import lately
from runguard.report.journaled import NOTHING, waiting
from runguard.store.journal import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runguard.config import Loaded
    from runguard.coverage.standing import Running
    from runguard.coverage.verdicts import Judged
    from runguard.guard.expecting import Expecting
    from runguard.guard.lockholders import LockHolder
    from runguard.heartbeat.slot import Slot
    from runguard.model import Revision, Window
    from runguard.paths import Places
    from runguard.report.journaled import Journaled
    from runguard.report.lately import Lately
    from runguard.settings import Settings
    from runguard.store.reads import Reader

LOOK_BACK_US = 7 * DAY_S * SECOND_US
LOOK_BACK_WINDOWS = 30  # at least, so that a monthly job has a past too
LEAST_OVERDUE_S = 60.0
_TIMES_USUAL = 3


class Surroundings(NamedTuple):
    """What is looked at once for all jobs."""

    now_us: int
    runs: str  # the directory of the files of living runs
    holders: Mapping[str, LockHolder]  # by job
    journal: Mapping[str, Journaled]  # by job
    spooled: Sequence[Slot]
    revisions: Mapping[str, Revision]  # by job: what the configuration says and nobody has recorded yet


def known(loaded: Loaded, store: Reader | None) -> list[str]:
    """Return the names of the jobs on record and of those that the configuration describes, sorted."""
    names = set(store.jobs() if store else ())
    for file in loaded.files:
        jobs = file.data.get("jobs")
        names |= set(jobs) if isinstance(jobs, dict) else set()
    return sorted(names)


def look(environ: Mapping[str, str], loaded: Loaded, store: Reader | None, places: Places, now_us: int) -> Surroundings:
    """Look at what all jobs have in common: who holds the locks, what waits in the journal, what is not registered."""
    revisions = registering.unregistered(environ, loaded, store, places, now_us)
    journal = waiting(Journal(places.state, host.author(environ)))
    return Surroundings(now_us, places.runs, holders(places.locks), journal, spool.slots(places.spool), revisions)


def standing(store: Reader | None, job: str, settings: Settings, around: Surroundings) -> Standing:
    """Return how one job stands. Raises StoreError.

    Windows are looked at over 7 days, or over the last 30 windows where that is longer, and never before the job was
    registered.
    """
    now_us = around.now_us
    known = [*(store.revisions(job) if store else ())]
    known += [around.revisions[job]] if job in around.revisions else []
    expected = read(known, store.forgotten_us() if store else None)
    ran = lately.look(store, job, around.runs, now_us) if store else lately.NEVER
    running = tuple(run._replace(overdue=_overdue(run, ran.usual_s, expected, now_us)) for run in ran.running)
    windows = _windows(store, job, expected, settings, around) if store and expected else []
    latest = known[-1] if known else None
    schedule = latest.schedule if latest else None
    registered_us = store.registered_us(job) if store else None
    return Standing(
        job=job,
        now_us=now_us,
        grace_s=settings.grace_s,
        recorded=registered_us is not None or ran.last is not None,
        retired=latest is not None and schedule is None,
        since_us=latest.after_us if latest and registered_us is None else registered_us,
        schedule=schedule.expression if schedule else None,
        zone=schedule.zone if schedule else None,
        readable=schedule is None or _reads(expected, latest),
        last=ran.last,
        ended=ran.ended,
        last_success=ran.success,
        usual_duration_s=ran.usual_s,
        running=running,
        holder=_holding(around.holders.get(job), running, now_us),
        failures_in_a_row=ran.failures,
        refusals_in_a_row=ran.refusals.number,
        refused_since_us=ran.refusals.since_us,
        refused_why=ran.refusals.why,
        refused_by=ran.refusals.holder,
        newest=next((each for each in reversed(windows) if each.verdict != "pending"), None),
        missing=_only("missing", windows),
        failed=_only("failed", windows),
        lost=_only("lost", windows),
        suspects=tuple(each for each in windows if each.suspect),
        undelivered=_undelivered(job, ran, around),
        journaled=around.journal.get(job, NOTHING).entries,
        journaled_outcome=around.journal.get(job, NOTHING).last,
        upcoming=_upcoming(expected, now_us),
    )


def _reads(expected: Expecting | None, revision: Revision | None) -> bool:
    """Tell whether this host can read the schedule and the zone of a revision."""
    return expected is not None and revision is not None and revision.number in expected.origins


def _windows(store: Reader, job: str, expected: Expecting, settings: Settings, around: Surroundings) -> list[Judged]:
    """Return the windows of the look-back with their verdicts, ascending, those that only the journal answers too."""
    moment = Moment(around.now_us, round(settings.grace_s * SECOND_US), around.runs)
    after_us = max(expected.since_us, min(around.now_us - LOOK_BACK_US, _windows_ago_us(expected, around.now_us)))
    found = judged(store, job, expected, after_us, around.now_us, moment)
    journaled = around.journal.get(job, NOTHING)
    return [journaled.judge(each) if each.verdict in ("missing", "pending") else each for each in found]


def _windows_ago_us(expected: Expecting, now_us: int) -> int:
    """Return a time before the last `LOOK_BACK_WINDOWS` windows."""
    before_us = now_us
    for _ in range(LOOK_BACK_WINDOWS):
        window = expected.succession.previous(before_us)
        if window is None or window.due_us <= expected.since_us:
            break
        before_us = window.due_us - 1
    return before_us


def _only(verdict: str, windows: Sequence[Judged]) -> tuple[Judged, ...]:
    return tuple(each for each in windows if each.verdict == verdict)


def _overdue(run: Running, usual_s: float | None, expected: Expecting | None, now_us: int) -> str:
    """Return why a run is taken to run too long, as a clause, or "": by its usual duration, or by the next window."""
    if usual_s is not None and run.running_s > max(_TIMES_USUAL * usual_s, LEAST_OVERDUE_S):
        return "longer than usual"
    following = _upcoming(expected, max(run.due_us or 0, run.started_us))
    return "another window has become due meanwhile" if following is not None and following.due_us <= now_us else ""


def _upcoming(expected: Expecting | None, after_us: int) -> Window | None:
    return expected.succession.next(after_us) if expected else None


def _undelivered(job: str, ran: Lately, around: Surroundings) -> tuple[Undelivered, ...]:
    """Return what no monitor has heard: what waits in the spool, and the last end where it does not wait there."""
    waiting = [slot for slot in around.spooled if slot.job == job]
    found = [Undelivered(slot.event, slot.target, slot.why, waits=True) for slot in waiting]
    ping = ran.undelivered
    if ping is not None and ran.ended is not None and all(slot.run_id != ran.ended.run_id for slot in waiting):
        found.append(Undelivered(ping.event, ping.target, ping.error or ping.verdict, waits=False))
    return tuple(found)


def _holding(holder: LockHolder | None, running: Sequence[Running], now_us: int) -> Holding | None:
    """Return who holds the lock, with the run that it belongs to: one that has a process among the holders."""
    if holder is None:
        return None
    for run in running:
        if {run.guard_pid, run.command_pid} & set(holder.pids):
            held_s = max(now_us - run.started_us, 0) / SECOND_US
            return Holding(holder.pid, holder.command, held_s, run.number, holder.pids)
    return Holding(holder.pid, holder.command, holder.age_s, None, holder.pids)
