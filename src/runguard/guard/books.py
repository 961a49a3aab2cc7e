"""Bookkeeping of one start: in the store or, while that fails, in this host's journal. It fails open, never silently.

The order inside the one write transaction before the command is part of the product: reconcile the journal, close runs
that died, register or revise, fix the window's start, decide, record.
"""

from __future__ import annotations

import os

from runguard import clock
from runguard.errors import NoTraceError, RunguardError, StoreError, UnsafeError
from runguard.guard.answering import (
    Answer,
    answer,
    as_first_answered,
    clock_stepped,
    earlier_of,
    off_schedule,
    question,
)
from runguard.guard.casefile import remove
from runguard.guard.decide import Proceed, Refuse, decide
from runguard.guard.prepare import early_us
from runguard.guard.start import start_fields
from runguard.guard.supervise import Beside
from runguard.instant import SECOND_US, rfc3339
from runguard.record import NamedTuple
from runguard.store.journal import Journal
from runguard.store.sqlite import WAIT_S, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from runguard.guard.leftovers import Leftovers
    from runguard.guard.liveness import Life
    from runguard.guard.prepare import Prepared
    from runguard.guard.voice import Voice
    from runguard.model import Window
    from runguard.paths import Places
    from runguard.store.database import Appended, Store, Transaction
    from runguard.store.journal import Reconciled
    from runguard.store.reads import Run


STEP_S = 2.0  # time servers slew what is less
SHORT_RUN_S = 1.0  # opening the store once more costs half a millisecond


class Opening(NamedTuple):
    """What came of the transaction before the command."""

    decision: Proceed | Refuse
    window: Window | None


class _BroughtOver(NamedTuple):
    """What a transaction took over from the journal and from run files, to be cleared once it is committed."""

    reconciled: Reconciled
    emptied: tuple[str, ...]  # run files that nobody needs any more


class _EntriesFirst(Exception):
    """Runs of the job have died and left case entries: they are taken in before anything is decided."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs


class Books:
    """Where one start records what it does; faults are said with `voice` and go into the record.

    Once `stop` returns true, nothing waits long for the store: the journal takes the record.
    """

    def __init__(
        self, prepared: Prepared, places: Places, voice: Voice, stop: Callable[[], bool] | None = None
    ) -> None:
        self.prepared = prepared
        self.start = prepared.start
        self.places = places
        self.voice = voice
        self.told_to_stop = stop or _never
        self.journal = Journal(places.state, prepared.author)
        self._mask = (prepared.secrets, prepared.settings.mask)
        self._opened: Store | None = None
        self.checkpoint_is_due = False
        self._dead_taken_in = False
        self._orphans: Iterator[None] | None = None  # taking in files of case entries whose run files have gone
        self._spent: list[str] = []  # files that nobody needs once the transaction is committed

    def open(self, fields: dict[str, Any]) -> Opening:
        """Decide what this start does and record it, before the command: `fields` are the start's own.

        Raises StoreError where the store fails and the job says `refuse`, NoTraceError where nothing can be written,
        UnsafeError where the store must not be used.
        """
        if remark := self.journal.prepare():
            self.voice(remark)
        try:
            store = self.store()
            try:
                brought_over, opening = self._open_in_store(store, fields)
            except _EntriesFirst as dead:
                from runguard.guard.dead_cases import take_in_all

                self._dead_taken_in = True
                take_in_all(store, dead.runs, self.places.runs, self.voice, self.told_to_stop)
                brought_over, opening = self._open_in_store(store, fields)
            self.clear(store, brought_over)
            return opening  # the store stays open: most commands are short
        except UnsafeError:
            raise
        except Exception as error:
            self.close()
            failure = self.failure(error)
            if self.prepared.settings.on_store_failure == "refuse":
                raise failure from error
            self.voice(f"{failure}; recording in the journal instead")
        from runguard.guard.journaling import open_in_journal

        return open_in_journal(self, fields)

    def beside(self) -> tuple[Beside, ...]:
        """Return as work beside the command: letting go of the store, which a long run keeps open for nothing, and
        taking in case entries that ended runs have left.
        """
        orphans = (Beside(SHORT_RUN_S, self._orphans),) if self._orphans is not None else ()
        return (Beside(SHORT_RUN_S, self._let_go()), *orphans)

    def take_in_orphans(self) -> None:
        """Do the rest of that, after everything else."""
        for _ in self._orphans or ():
            if self.told_to_stop():
                return

    def bring_over(self) -> None:
        """Bring the journal into the ledger, and nothing else. Raises StoreError."""
        store = self.store()
        with store.write() as tx:
            brought_over = self.take_over(tx)
        self.clear(store, brought_over)

    def finish(
        self, fields: dict[str, Any], head: bytes, tail: bytes, also: Callable[[Transaction], None] | None = None
    ) -> Appended | None:
        """Record the end, and what `also` does in the same transaction.

        Returns the ledger's new head; None where the journal had to take it: keep the run file.
        """
        try:
            store = self.store()
            with store.write() as tx:
                brought_over = self.take_over(tx)
                look = clock.look()
                stepped_s = (look.wall_us - self.start.at_us) / SECOND_US
                stepped_s -= look.since_boot_s - self.start.at_since_boot_s
                if abs(stepped_s) > STEP_S:
                    during = {"run_id": self.start.run_id, "stepped_s": round(stepped_s, 3)}
                    tx.append("clock", look.wall_us, during)
                if also is not None:
                    also(tx)
                appended = tx.append("run.finish", look.wall_us, fields)
                self.checkpoint_is_due = store.wants_checkpoint(appended.seq, look.wall_us)
                if not appended.superseded:
                    tx.keep_output(self.start.run_id, head, tail)
            self.clear(store, brought_over)
            return appended
        except Exception as error:  # noqa: BLE001
            self.write_to_journal("run.finish", fields, self.failure(error))
        finally:
            self.close()
        return None

    def failure(self, error: Exception) -> StoreError:
        """Return what has failed as the store's failure."""
        if isinstance(error, StoreError):
            return error
        try:
            from runguard.guard.mishaps import as_store_error  # only where something is wrong
        except (ImportError, OSError):  # no descriptor is left
            return StoreError(self.places.store, f"{error!r}")

        return as_store_error(self.places.store, error)

    def store(self) -> Store:
        """Return the store, opened. Raises StoreError and UnsafeError."""
        if self._opened is None:
            self._opened = self._open_store()
        return self._opened

    def _open_store(self, wait_s: float = WAIT_S) -> Store:
        return open_store(
            self.places.store,
            author=self.prepared.author,
            create=True,
            witness_directory=self.places.witness,
            wait_s=wait_s,
            stop=self.told_to_stop,
        )

    def close(self) -> None:
        """Let go of the store."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _let_go(self) -> Iterator[None]:
        self.close()
        yield

    def _open_in_store(self, store: Store, fields: dict[str, Any]) -> tuple[_BroughtOver, Opening]:
        self._orphans, self._spent = None, []
        with store.write() as tx:
            return self.take_over(tx, tidy=True), self._decide_and_record(tx, fields)

    def _decide_and_record(self, tx: Transaction, fields: dict[str, Any]) -> Opening:
        self._notice_steps(tx)
        alive = self._close_dead_runs(tx)
        found = answer(tx.store, self.start, early_us(self.prepared.settings))
        decision = self._decide(tx.store, found, alive)
        if isinstance(decision, Refuse):
            from runguard.guard.refusing import record

            record(self, tx, decision, found, fields)
            return Opening(decision, found.window)
        self.start, found = as_first_answered(tx.store, self.start, found, decision)
        if remark := off_schedule(self.start, found):
            self.voice(remark)
        if found.change:
            tx.append("job.changed", self.start.at_us, found.change)
        entry = self.start_entry(tx.store.next_number(), found, decision, fields)
        tx.append("run.start", self.start.at_us, entry)
        return Opening(decision, found.window)

    def _decide(self, store: Store, found: Answer, alive: tuple[Run, Life] | None) -> Proceed | Refuse:
        """Decide by what the store has; `alive` is an earlier run of the job that lives without the lock."""
        start, settings = self.start, self.prepared.settings
        if alive is not None and settings.overlap != "allow":
            from runguard.guard.refusing import overlapping

            return overlapping(self, store, *alive)
        if remark := clock_stepped(store, start, early_us(settings)):
            self.voice(remark)
        if start.trigger == "manual" and found.expected is None and found.revision is not None:
            hint = f"runguard rerun {start.job}@WINDOW --reason TEXT"
            self.voice(f"no schedule is given, so no window is answered; to answer one: {hint}")
        decision = decide(question(self.prepared, found, earlier_of(store, start, found)))
        if isinstance(decision, Refuse) and decision.why == "held":
            from runguard.guard.attempts import naming_uncertain

            return naming_uncertain(store, decision)
        return decision

    def _close_dead_runs(self, tx: Transaction) -> tuple[Run, Life] | None:
        """Close the job's runs that died without a finish; return one that still lives, if any."""
        running = tx.store.running(self.start.job)
        if not running:
            return None
        if not self._dead_taken_in:
            from runguard.guard.dead_cases import dead_with_entries

            if dead := dead_with_entries(running, self.places.runs):
                raise _EntriesFirst(dead)
        ended = {holder.run_id for holder in self.start.ended}
        leftovers = self._leftovers(tx)
        said, alive = leftovers.close_dead(running, ended, by=self.start.run_id)
        self._spent += leftovers.spent
        for remark, names in said:
            self.voice(remark, names)
        return alive

    def _notice_steps(self, tx: Transaction) -> None:
        """Record it first where the clock is before the last entry's, or the host has been started since."""
        start = self.start
        last_at = tx.found.partition(b'"at":"')[2].partition(b'"')[0]
        back = bool(last_at) and rfc3339(clock.look().wall_us).encode() < last_at
        boots = tx.store.rows("last_boot")
        if back or (boots and boots[0] != (start.boot_id, self.prepared.author.host)):
            from runguard.guard.steps import note  # hardly ever

            note(tx, start, last_at if back else b"", boots[0] if boots else None)

    def start_entry(
        self, number: int | None, found: Answer, decision: Proceed, fields: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the entry of a start says."""
        said = start_fields(self.start, number, found, decision, self.voice.masked)
        return {**said, **fields, "remarks": self.voice.take()}

    def take_over(self, tx: Transaction, *, tidy: bool = False) -> _BroughtOver:
        """Bring the journal into the ledger; with `tidy`, take over what dead guards left in run files too."""
        reconciled = self.journal.reconcile(tx)
        ours = self.start.run_id
        names = [name for name in os.listdir(self.places.runs) if not name.startswith(ours)] if tidy else []
        if not names:
            return _BroughtOver(reconciled, ())
        leftovers = self._leftovers(tx)
        emptied = tuple(leftovers.take_over(names, ours))
        self._spent += leftovers.spent
        if leftovers.entries:
            from runguard.guard.dead_cases import steps

            self._orphans = steps(lambda: self._open_store(0.0), leftovers.entries, self.voice)
        return _BroughtOver(reconciled, emptied)

    def _leftovers(self, tx: Transaction) -> Leftovers:
        from runguard.guard.leftovers import Leftovers  # only where other runs live, or have died

        return Leftovers(tx, self.places.runs, self.start.at_us, self._mask)

    def clear(self, store: Store, brought_over: _BroughtOver) -> None:
        """Remove what is committed now, and say what the store and the journal have to remark."""
        reconciled = brought_over.reconciled
        for remark in (*reconciled.remarks, *self.journal.clear(reconciled), *store.remarks):
            self.voice(remark)
        for path in (*brought_over.emptied, *self._spent):
            remove(path)
        self._spent = []

    def write_to_journal(self, kind: str, fields: dict[str, Any], error: RunguardError) -> None:
        """Say that the store has failed, and let the journal take the record. Never raises for want of a place."""
        self.voice(f"{error}; recording in the journal instead")
        try:
            self.journal.write(kind, clock.look().wall_us, fields)
        except NoTraceError as none:
            self.voice(f"{none}; {kind} of run {self.start.run_id} is recorded nowhere")


def _never() -> bool:
    return False
