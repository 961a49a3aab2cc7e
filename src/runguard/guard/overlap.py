"""`--overlap wait|kill`: how a start gets its turn while an earlier run of the job lives.

Whatever the policy, exclusion is the kernel's lock: a run is waited for or stopped, and then the lock is taken.
Imported where another run may be in the way.
"""

from __future__ import annotations

import os
import time

from runguard import clock, zones
from runguard.errors import RunguardError
from runguard.guard import ending_others, holding, host, liveness, lock, locking
from runguard.guard.answering import question
from runguard.guard.decide import Refuse, decide
from runguard.guard.ending import SIGNALLED
from runguard.guard.hindsight import look_back
from runguard.guard.prepare import Turn
from runguard.instant import SECOND_US, seconds
from runguard.schedule import revisions
from runguard.store.journal import Journal
from runguard.store.sqlite import open_reader
from runguard.store.writelock import take as queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.lock import Lock
    from runguard.guard.prepare import Prepared
    from runguard.guard.signals import Signals
    from runguard.model import Holder, Schedule
    from runguard.paths import Places

_FOR_EVER_S = 10 * 365 * 86_400.0  # a job without a schedule has no next due
_LOOK_S = 0.25
_LOCK_AFTER_END_S = 5.0  # its guard still writes the end down


def contend(prepared: Prepared, places: Places, signals: Signals, held: Lock | None) -> Turn | Refuse:
    """Wait for earlier runs of the job, or stop them, as `--overlap` says; `held` is the lock where that was free.

    Raises UnsafeError where the lock cannot be trusted.
    """
    if held is not None:
        if not _living(prepared, places):
            return Turn(prepared, held)
        held.release()
    began_s = clock.look().monotonic_s
    if inside := _inside_of(prepared, places):
        return inside
    get = _stop_them if prepared.settings.overlap == "kill" else _wait
    found = get(prepared, places, signals)
    if isinstance(found, Refuse):
        return found
    held, ended = found
    waited_s = clock.look().monotonic_s - began_s
    # The window stays that of the instant at which we were started; the run begins only now.
    look = clock.look()
    start = prepared.start._replace(waited_s=round(waited_s, 3), ended=ended).begun(look.wall_us, look.since_boot_s)
    return Turn(prepared._replace(start=start), held)


def _wait(prepared: Prepared, places: Places, signals: Signals) -> tuple[Lock, tuple[Holder, ...]] | Refuse:
    """Queue for the lock; then wait for runs that live without it."""
    limit_s = _limit_s(prepared)
    until_s = clock.look().monotonic_s + limit_s
    job = prepared.start.job
    held = lock.take(places.locks, job, lambda fd: queue(fd, limit_s, lambda: signals.stop is not None))
    if held is None:
        return _refusal(prepared, places, signals, f"; waited {seconds(limit_s)}")
    while _living(prepared, places):
        if signals.stop is not None or clock.look().monotonic_s >= until_s:
            held.release()
            return _refusal(prepared, places, signals, f"; waited {seconds(limit_s)}")
        time.sleep(_LOOK_S)
    return held, ()


def _inside_of(prepared: Prepared, places: Places) -> Refuse | None:
    """Return the refusal of a start inside the run that is in the way: it would wait for itself, or stop itself."""
    above, pid = set(), os.getpid()
    while (pid := host.parent_of(pid) or 0) > 1:
        above.add(pid)
    for holder in (*_living(prepared, places), *_noted(prepared, places)):
        if above & {holder.guard_pid, holder.command_pid}:
            because = f"{holding.describe(holder, clock.look().wall_us)} holds the lock; this start is part of it"
            return Refuse("overlap", prepared.settings.conflict_exit, because, holder=holder)
    return None


def _stop_them(prepared: Prepared, places: Places, signals: Signals) -> tuple[Lock, tuple[Holder, ...]] | Refuse:
    """Stop whoever lives, and take the lock once it is free. A start that would not run anyway stops nobody."""
    known = look_back(prepared, places, Journal(places.state, prepared.author))
    decision = decide(question(prepared, known.found, known.earlier))
    if isinstance(decision, Refuse):
        return decision
    ended: dict[str, Holder] = {}
    limit_s = prepared.settings.kill_after_s + ending_others.WEDGED_S + _LOCK_AFTER_END_S
    until_s = clock.look().monotonic_s + limit_s
    while signals.stop is None and clock.look().monotonic_s < until_s:
        for holder in (*_living(prepared, places), *_noted(prepared, places)):
            if holder.run_id in ended:
                continue
            why = ending_others.end(holder, places, prepared, signals)
            if why:
                return _refusal(prepared, places, signals, f"; {why}")
            ended[holder.run_id] = holder
        held = lock.take(places.locks, prepared.start.job, lambda fd: queue(fd, 2 * _LOOK_S))
        if held is not None and not _living(prepared, places):
            return held, tuple(ended.values())
        if held is not None:
            held.release()
    told = "it was told to stop and has not ended" if ended else "who holds it cannot be seen from here"
    return _refusal(prepared, places, signals, f"; {told}")


def _limit_s(prepared: Prepared) -> float:
    """Return how long to wait: as the settings say, or as long as it is from the intended instant to the next due."""
    start = prepared.start
    if prepared.settings.wait_s is not None:
        return prepared.settings.wait_s
    if start.asked is not None and start.expected is not None:  # an old window, run now
        due_us = _next_due_us(start.expected.schedule, start.at_us)
        return _FOR_EVER_S if due_us is None else (due_us - start.at_us) / SECOND_US
    if start.expected is None or start.expected.resolution.next_due_us is None:
        return _FOR_EVER_S
    return max((start.expected.resolution.next_due_us - start.intended_us) / SECOND_US, 0.0)


def _next_due_us(schedule: Schedule, at_us: int) -> int | None:
    try:
        timetable = revisions.timetable(schedule, zones.load(schedule.zone).zone)
        return revisions.resolve(timetable, at_us, early_us=0).next_due_us
    except RunguardError:
        return None


def _living(prepared: Prepared, places: Places) -> list[Holder]:
    """Return the job's runs on record that live; where the store cannot be asked, the lock alone decides."""
    try:
        with open_reader(places.store, witness_directory=places.witness) as store:
            found = []
            for run in store.running(prepared.start.job):
                life = liveness.judge(run.run_id, run.guard_pid, run.boot_id, places.runs)
                if life.state != liveness.LOST:
                    found.append(holding.holder_of(run, life, places.runs))
            return found
    except RunguardError:
        return []


def _noted(prepared: Prepared, places: Places) -> list[Holder]:
    """Return whom the lock file names, where it is that run's: it may be between its start, its attempts, its end."""
    job = prepared.start.job
    holder = holding.holder_by_note(places.locks, places.runs, job)
    if holder is None or holder.guard_pid == os.getpid():
        return []
    return [holder] if locking.by_run(lock.path_of(places.locks, job), holder.guard_pid) else []


def _refusal(prepared: Prepared, places: Places, signals: Signals, more: str) -> Refuse:
    """Return the refusal that names who is in the way; told to stop, that is our own end."""
    holder = next(iter(_living(prepared, places)), None)
    holder = holder or holding.holder_by_note(places.locks, places.runs, prepared.start.job)
    described = holding.describe(holder, clock.look().wall_us)
    if signals.stop is not None:
        because = f"told to stop by signal {signals.stop} while waiting for {described}"
        return Refuse("overlap", SIGNALLED + signals.stop, because, holder=holder)
    return Refuse("overlap", prepared.settings.conflict_exit, f"{described} holds the lock{more}", holder=holder)
