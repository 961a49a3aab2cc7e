"""What is on record for a start, asked without writing: for a dry run, and while the store can only be read."""

from __future__ import annotations

from runguard.errors import NothingRecordedError
from runguard.guard import liveness
from runguard.guard.answering import Answer, answer, earlier_of
from runguard.guard.holding import describe, holder_of
from runguard.guard.mishaps import as_store_error
from runguard.guard.prepare import early_us
from runguard.record import NamedTuple
from runguard.store.sqlite import open_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.errors import StoreError
    from runguard.guard.prepare import Prepared
    from runguard.model import Earlier, Holder
    from runguard.paths import Places
    from runguard.store.database import ReadOnlyStore
    from runguard.store.journal import Journal


class Hindsight(NamedTuple):
    """What a start finds; `alive` is an earlier run that lives, as a clause and as a holder."""

    found: Answer
    earlier: Earlier | None
    alive: tuple[str, Holder] | None
    fault: StoreError | None  # why the store could not be asked


def look_back(prepared: Prepared, places: Places, journal: Journal) -> Hindsight:
    """Return what the journal and, as far as it can be read, the store know. Runs that died count as lost."""
    start = prepared.start
    found, earlier, alive, fault = Answer(start.expected, None), None, None, None
    try:
        with open_reader(places.store, witness_directory=places.witness) as store:
            found = answer(store, start, early_us(prepared.settings))._replace(change=None)
            earlier = earlier_of(store, start, found)
            lost, alive = _living(store, start.job, start.at_us, places.runs)
            if earlier is not None and earlier.outcome == "running" and earlier.run_id in lost:
                earlier = earlier._replace(outcome="lost")
    except NothingRecordedError:
        pass
    except Exception as error:  # noqa: BLE001 - whatever the store holds, it must not keep the job from running
        fault = as_store_error(places.store, error)
    window = found.window
    journaled = journal.latest(start.job, window.key, window.due_us) if window else None
    if journaled is not None and (journaled.attempt or earlier is None or not earlier.attempt):
        gone = journaled.outcome == "running" and not _lives(places.runs, journaled.run_id)
        earlier = journaled._replace(outcome="lost") if gone else journaled
    return Hindsight(found, earlier or start.replaces, alive, fault)


def _living(store: ReadOnlyStore, job: str, now_us: int, runs: str) -> tuple[set[str], tuple[str, Holder] | None]:
    """Return the ids of the job's runs that died without a finish, and one that lives, if any."""
    lost, alive = set(), None
    for run in store.running(job):
        life = liveness.judge(run.run_id, run.guard_pid, run.boot_id, runs)
        if life.state == liveness.LOST:
            lost.add(run.run_id)
        else:
            holder = holder_of(run, life, runs)
            alive = alive or (f"{describe(holder, now_us)} still runs", holder)
    return lost, alive


def _lives(runs: str, run_id: str) -> bool:
    return liveness.held(f"{runs}/{run_id}")
