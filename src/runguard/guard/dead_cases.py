"""Case entries that a dead guard, or a failing store, has left in their files. Imported where there are any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runguard.errors import StoreError, reason
from runguard.evidence.tail import UnfitError
from runguard.guard import liveness
from runguard.guard.casefile import ITEMS, remove
from runguard.guard.casework import set_aside
from runguard.guard.intake import Intake, told_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from runguard.store.database import Store, Transaction
    from runguard.store.reads import Run

    Say = Callable[[str], None]


def take_in(store: Store, path: str, run: Run, say: Say) -> None:
    """Take in the file of a run whose guard and command have gone.

    Of a run that has ended, a last entry of the ledger tells of it, and the file is removed; of one that has not, its
    end will tell. What cannot be taken in stays and is said.
    """
    for _ in taking_in(store, path, run, say):
        pass


def taking_in(store: Store, path: str, run: Run, say: Say) -> Iterator[None]:
    """Do the same, one transaction at a time."""
    intake = Intake(path, run.run_id)
    try:
        while intake.take(store, last=True):
            yield
        if run.outcome != "running":
            finish(store, intake)
        for warning in told_of(intake.personal):
            say(f"run {run.number}: {warning}")
    except UnfitError as error:
        say(f"case entries {path}: {error.strerror}; it is kept as {set_aside(path)}, and not on record")
    except (StoreError, OSError) as error:
        say(f"case entries {path}: {reason(error)}; they are taken in later")
    finally:
        intake.close()


def finish(store: Store, intake: Intake) -> None:
    """Put the end of the entries of a run that has ended on record, where it is not, and remove the file."""
    tally = intake.tally(store)
    if tally.pending_bytes:
        return
    with store.write() as tx:
        intake.complete(tx, tally, final=True)
    if tally.beyond_bytes:
        set_aside(intake.path)
    else:
        remove(intake.path)


def dead_with_entries(running: Iterable[Run], runs: str) -> list[Run]:
    """Return those of `running` that have died and left case entries in their files in `runs`."""
    return [run for run in running if _waits(os.path.join(runs, run.run_id + ITEMS)) and _died(run, runs)]


def take_in_all(store: Store, runs: Iterable[Run], folder: str, say: Say, stop: Callable[[], bool]) -> None:
    """Take in the files of `runs` in the directory `folder`, until `stop` returns true."""
    for run in runs:
        if not stop():
            take_in(store, os.path.join(folder, run.run_id + ITEMS), run, say)


def close(tx: Transaction, runs: str, run_id: str) -> dict[str, Any] | None:
    """Return what the end of a dead run says of its entries, and put the end of its lists on record in `tx`."""
    intake = Intake(os.path.join(runs, run_id + ITEMS), run_id)
    tally = intake.tally(tx.store)
    if not tally.bytes and not tally.pending_bytes:
        return None
    if not tally.pending_bytes:
        intake.complete(tx, tally)
    return tally.fields()


def steps(open_store: Callable[[], Store], paths: list[str], say: Say) -> Iterator[None]:
    """Take in the files at `paths` whose runs have ended: their guards have gone, and so have their run files."""
    for path in paths:
        try:
            with open_store() as store:
                run = store.run(os.path.basename(path).removesuffix(ITEMS))
                if run is None or run.outcome == "running":
                    continue  # it has no run file for want of room, or its start waits in a journal
                if _waits(path):
                    yield from taking_in(store, path, run, say)
                else:
                    remove(path)
        except StoreError:
            continue  # it is busy, or fails: a later start will do it
        yield


def _waits(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _died(run: Run, runs: str) -> bool:
    return liveness.judge(run.run_id, run.guard_pid, run.boot_id, runs).state == liveness.LOST
