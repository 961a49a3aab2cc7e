"""Bookkeeping of one start: in the store or, while that fails, in this host's journal. It fails open, never silently.

The order inside the one write transaction before the command is part of the product: reconcile the journal, close runs
that died, register or revise, fix the window's start, decide, record.
"""

from __future__ import annotations

import os

from runguard import clock
from runguard.errors import NoTraceError, RunguardError, StoreError, UnsafeError
from runguard.guard.answering import Answer, answer, as_first_answered, earlier_of, question
from runguard.guard.casefile import ITEMS, OVER, remove
from runguard.guard.decide import Proceed, Refuse, decide
from runguard.guard.holding import holder_of
from runguard.guard.prepare import early_us
from runguard.guard.start import refusal_fields, start_fields
from runguard.guard.supervise import Beside
from runguard.instant import SECOND_US, rfc3339, span
from runguard.record import NamedTuple
from runguard.store.journal import Journal
from runguard.store.sqlite import WAIT_S, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from runguard.guard.leftovers import Leftovers
    from runguard.guard.liveness import Life
    from runguard.guard.prepare import Prepared
    from runguard.guard.voice import Voice
    from runguard.model import Window
    from runguard.paths import Places
    from runguard.store.database import Appended, Store, Transaction
    from runguard.store.journal import Reconciled
    from runguard.store.reads import InARow, Ping, Run


_MOST_LOOKED_AT = 20  # files that lie beside run files
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
        self._prepared = prepared
        self._start = prepared.start
        self._places = places
        self._voice = voice
        self.told_to_stop = stop or _never
        self._journal = Journal(places.state, prepared.author)
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
        if remark := self._journal.prepare():
            self._voice(remark)
        try:
            store = self._store()
            try:
                brought_over, opening = self._open_in_store(store, fields)
            except _EntriesFirst as dead:
                self._take_in_dead(store, dead.runs)
                brought_over, opening = self._open_in_store(store, fields)
            self._clear(store, brought_over)
            return opening  # the store stays open: most commands are short
        except UnsafeError:
            raise
        except Exception as error:
            self._close()
            failure = self._failure(error)
            if self._prepared.settings.on_store_failure == "refuse":
                raise failure from error
            self._voice(f"{failure}; recording in the journal instead")
        return self._open_in_journal(fields)

    def refuse(self, refusal: Refuse, fields: dict[str, Any]) -> None:
        """Record a start that is refused without a decision about its window. Never raises for want of a place."""
        try:
            store = self._store()
            with store.write() as tx:
                brought_over = self._bring_over(tx)
                found = answer(store, self._start, early_us(self._prepared.settings))
                self._record_refusal(tx, refusal, found, fields)
            self._clear(store, brought_over)
        except Exception as error:  # noqa: BLE001
            refused = self._refusal_entry(refusal, Answer(self._start.expected, None), fields)
            self._write_to_journal("run.refused", refused, self._failure(error))
        finally:
            self._close()

    def escalated(self, refusal: Refuse) -> Refuse:
        """Return a refusal for overlap with the number of the run in the way, and how often it came to that in a row.

        For display: as it is where the store cannot tell.
        """
        try:
            store, holder = self._store(), refusal.holder
            run = store.run(holder.run_id) if holder else None
            repeated = _repeated(store.refused_in_a_row(self._start.job))
        except Exception:  # noqa: BLE001 - display only; the record that follows says what is wrong
            return refusal
        because = refusal.because
        if holder is not None and run is not None:
            because = because.replace(f"run {holder.run_id[:8]}", f"run {run.number}", 1)
            holder = holder._replace(number=run.number)
        return refusal._replace(because=f"{because}{repeated}", holder=holder)

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
        store = self._store()
        with store.write() as tx:
            brought_over = self._bring_over(tx)
        self._clear(store, brought_over)

    def earlier_cases(self) -> dict[str, str]:
        """Return the variables that tell a further attempt which cases earlier ones have done; nothing without any."""
        try:
            from runguard.guard.attempts import that_told  # not for a first attempt

            store, run_id = self._store(), self._start.run_id
            run = store.run(run_id)
            earlier = that_told(store, run, self._places.runs) if run is not None else []
            if not earlier:
                return {}
            from runguard.guard.earlier_cases import variables

            return variables(store, run_id, earlier, self._places.runs, self._voice)
        except Exception as error:  # noqa: BLE001
            self._voice(f"{self._failure(error)}; which cases earlier attempts have done cannot be told")
        return {}

    def finish(
        self, fields: dict[str, Any], head: bytes, tail: bytes, also: Callable[[Transaction], None] | None = None
    ) -> Appended | None:
        """Record the end, and what `also` does in the same transaction.

        Returns the ledger's new head; None where the journal had to take it: keep the run file.
        """
        try:
            store = self._store()
            with store.write() as tx:
                brought_over = self._bring_over(tx)
                look = clock.look()
                stepped_s = (look.wall_us - self._start.at_us) / SECOND_US
                stepped_s -= look.since_boot_s - self._start.at_since_boot_s
                if abs(stepped_s) > STEP_S:
                    during = {"run_id": self._start.run_id, "stepped_s": round(stepped_s, 3)}
                    tx.append("clock", look.wall_us, during)
                if also is not None:
                    also(tx)
                appended = tx.append("run.finish", look.wall_us, fields)
                self.checkpoint_is_due = store.wants_checkpoint(appended.seq, look.wall_us)
                if not appended.superseded:
                    tx.keep_output(self._start.run_id, head, tail)
            self._clear(store, brought_over)
            return appended
        except Exception as error:  # noqa: BLE001
            self._write_to_journal("run.finish", fields, self._failure(error))
        finally:
            self._close()
        return None

    def record_pings(self, pings: list[Ping], late: Sequence[tuple[str, Ping]] = ()) -> None:
        """Record what became of the pings, after everything else; `late` are those of earlier runs, by run."""
        if not pings and not late:
            return
        try:
            store = self._store()
            if pings and store.run(self._start.run_id) is None:
                self._voice("the run waits in the journal; what became of its ping is not recorded")
            elif pings:
                store.record_pings(self._start.run_id, pings)
            for run_id, ping in late:
                if store.run(run_id) is not None:
                    store.record_pings(run_id, [ping])
        except Exception as error:  # noqa: BLE001
            self._voice(f"{self._failure(error)}; what became of the ping is not recorded")
        finally:
            self._close()

    def checkpoint(self) -> None:
        """Make the ledger's checkpoint, once a day and every 10,000 entries, sign it and tell it outside."""
        from runguard.guard import anchoring

        try:
            anchoring.checkpoint(self._store(), self._prepared.settings, self._start.environ, self._voice)
        except Exception as error:  # noqa: BLE001 - the job is over, and its status stands
            self._voice(f"{self._failure(error)}; no checkpoint was made")
        finally:
            self._close()

    def _failure(self, error: Exception) -> StoreError:
        if isinstance(error, StoreError):
            return error
        try:
            from runguard.guard.mishaps import as_store_error  # only where something is wrong
        except (ImportError, OSError):  # no descriptor is left
            return StoreError(self._places.store, f"{error!r}")

        return as_store_error(self._places.store, error)

    def _store(self) -> Store:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self, wait_s: float = WAIT_S) -> Store:
        return open_store(
            self._places.store,
            author=self._prepared.author,
            create=True,
            witness_directory=self._places.witness,
            wait_s=wait_s,
            stop=self.told_to_stop,
        )

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _let_go(self) -> Iterator[None]:
        self._close()
        yield

    def _open_in_store(self, store: Store, fields: dict[str, Any]) -> tuple[_BroughtOver, Opening]:
        self._orphans, self._spent = None, []
        with store.write() as tx:
            return self._bring_over(tx, tidy=True), self._decide_and_record(tx, fields)

    def _take_in_dead(self, store: Store, runs: list[Run]) -> None:
        from runguard.guard.dead_cases import take_in

        self._dead_taken_in = True
        for run in runs:
            if not self.told_to_stop():
                take_in(store, os.path.join(self._places.runs, run.run_id + ITEMS), run, self._voice)

    def _decide_and_record(self, tx: Transaction, fields: dict[str, Any]) -> Opening:
        self._notice_steps(tx)
        alive = self._close_dead_runs(tx)
        found = answer(tx.store, self._start, early_us(self._prepared.settings))
        decision = self._decide(tx.store, found, alive)
        if isinstance(decision, Refuse):
            self._record_refusal(tx, decision, found, fields)
            return Opening(decision, found.window)
        self._start, found = as_first_answered(tx.store, self._start, found, decision)
        self._notice_off_schedule(found)
        if found.change:
            tx.append("job.changed", self._start.at_us, found.change)
        entry = self._start_entry(tx.store.next_number(), found, decision, fields)
        tx.append("run.start", self._start.at_us, entry)
        return Opening(decision, found.window)

    def _decide(self, store: Store, found: Answer, alive: tuple[Run, Life] | None) -> Proceed | Refuse:
        """Decide by what the store has; `alive` is an earlier run of the job that lives without the lock."""
        start, settings = self._start, self._prepared.settings
        if alive is not None and settings.overlap != "allow":
            run, life = alive
            because = f"run {run.number} still runs: {life.because}{_repeated(store.refused_in_a_row(start.job))}"
            return Refuse("overlap", settings.conflict_exit, because, holder=holder_of(run, life, self._places.runs))
        self._notice_clock_step(store)
        if start.trigger == "manual" and found.expected is None and found.revision is not None:
            hint = f"runguard rerun {start.job}@WINDOW --reason TEXT"
            self._voice(f"no schedule is given, so no window is answered; to answer one: {hint}")
        decision = decide(question(self._prepared, found, earlier_of(store, start, found)))
        if isinstance(decision, Refuse) and decision.why == "held":
            from runguard.guard.attempts import naming_uncertain

            return naming_uncertain(store, decision)
        return decision

    def _open_in_journal(self, fields: dict[str, Any]) -> Opening:
        """Decide by this host's journal and by what can be read of the store: beyond that the window counts as open."""
        from runguard.guard.hindsight import look_back  # only while the store fails

        found, earlier, alive, _ = look_back(self._prepared, self._places, self._journal)
        decision: Proceed | Refuse
        if alive is not None and self._prepared.settings.overlap != "allow":
            decision = Refuse("overlap", self._prepared.settings.conflict_exit, alive[0], holder=alive[1])
        else:
            decision = decide(question(self._prepared, found, earlier))
        if isinstance(decision, Refuse):
            refusal = self._refusal_entry(decision, found, fields)
            self._journal.write("run.refused", self._start.at_us, refusal)
        else:
            self._notice_off_schedule(found)
            entry = self._start_entry(None, found, decision, fields)
            self._journal.write("run.start", self._start.at_us, entry)
        return Opening(decision, found.window)

    def _close_dead_runs(self, tx: Transaction) -> tuple[Run, Life] | None:
        """Close the job's runs that died without a finish; return one that still lives, if any."""
        running = tx.store.running(self._start.job)
        if not running:
            return None
        if not self._dead_taken_in:
            from runguard.guard.dead_cases import dead_with_entries

            if dead := dead_with_entries(running, self._places.runs):
                raise _EntriesFirst(dead)
        ended = {holder.run_id for holder in self._start.ended}
        leftovers = self._leftovers(tx)
        said, alive = leftovers.close_dead(running, ended, by=self._start.run_id)
        self._spent += leftovers.spent
        for remark, names in said:
            self._voice(remark, names)
        return alive

    def _notice_steps(self, tx: Transaction) -> None:
        """Record it first where the clock is before the last entry's, or the host has been started since."""
        start = self._start
        last_at = tx.found.partition(b'"at":"')[2].partition(b'"')[0]
        back = bool(last_at) and rfc3339(clock.look().wall_us).encode() < last_at
        boots = tx.store.rows("last_boot")
        if back or (boots and boots[0] != (start.boot_id, self._prepared.author.host)):
            from runguard.guard.steps import note  # hardly ever

            note(tx, start, last_at if back else b"", boots[0] if boots else None)

    def _notice_clock_step(self, store: Store) -> None:
        """Remark where the real clock is before a due that a run has finished for (time.md, rule 5)."""
        if self._start.expected is None or self._start.intended_us != self._start.at_us:
            return
        due_us = store.last_finished_due_us(self._start.job)
        if due_us is not None and self._start.at_us < due_us - early_us(self._prepared.settings):
            self._voice(f"clock_stepped: the clock is before {rfc3339(due_us)}, the due of a run that has finished")

    def _notice_off_schedule(self, found: Answer) -> None:
        """Remark where an open window is run so late that the daemon seems to go by another zone (time.md, rule 4)."""
        resolution = found.expected.resolution if found.expected else None
        if resolution is not None and resolution.off_schedule and self._start.trigger == "schedule":
            due_us = resolution.window.due_us
            ago = span(self._start.intended_us - due_us)
            self._voice(f"off schedule: the latest due was {rfc3339(due_us)}, {ago} ago, and the next is nearer")

    def _start_entry(
        self, number: int | None, found: Answer, decision: Proceed, fields: dict[str, Any]
    ) -> dict[str, Any]:
        said = start_fields(self._start, number, found, decision, self._voice.masked)
        return {**said, **fields, "remarks": self._voice.take()}

    def _refusal_entry(self, refusal: Refuse, found: Answer, fields: dict[str, Any]) -> dict[str, Any]:
        said = refusal_fields(self._start, found, refusal, self._voice.masked)
        return {**said, **fields, "remarks": self._voice.take()}

    def _record_refusal(self, tx: Transaction, refusal: Refuse, found: Answer, fields: dict[str, Any]) -> None:
        if found.change and found.change["change"] == "registered":
            tx.append("job.changed", self._start.at_us, found.change)
        entry = self._refusal_entry(refusal, found, fields)
        tx.append("run.refused", self._start.at_us, {**entry, "number": tx.store.next_number()})

    def _bring_over(self, tx: Transaction, *, tidy: bool = False) -> _BroughtOver:
        """Bring the journal into the ledger; with `tidy`, take over what dead guards left in run files too."""
        reconciled = self._journal.reconcile(tx)
        ours = self._start.run_id
        names = [name for name in os.listdir(self._places.runs) if not name.startswith(ours)] if tidy else []
        beside = [name for name in names if "." in name[1:]]  # RUN_ID.items, .done, .uncertain
        if beside:
            names = [name for name in names if "." not in name[1:]]
            self._look_for_orphans(beside)
        return _BroughtOver(reconciled, tuple(self._leftovers(tx).take_over(names, ours)) if names else ())

    def _look_for_orphans(self, names: list[str]) -> None:
        """Find what runs left behind whose own files have gone, among a few of the files `names`."""
        names.sort(key=lambda name: (name < self._start.run_id, name))
        paths = [os.path.join(self._places.runs, name) for name in names[:_MOST_LOOKED_AT] if name[-5:] != OVER]
        orphans = [path for path in paths if not os.path.exists(path.rpartition(".")[0])]
        self._spent += [path for path in orphans if not path.endswith(ITEMS)]
        if entries := [path for path in orphans if path.endswith(ITEMS)]:
            from runguard.guard.dead_cases import steps

            self._orphans = steps(lambda: self._open(0.0), entries, self._voice)

    def _leftovers(self, tx: Transaction) -> Leftovers:
        from runguard.guard.leftovers import Leftovers  # only where other runs live, or have died

        return Leftovers(tx, self._places.runs, self._start.at_us, self._mask)

    def _clear(self, store: Store, brought_over: _BroughtOver) -> None:
        """Remove what is committed now, and say what the store and the journal have to remark."""
        reconciled = brought_over.reconciled
        for remark in (*reconciled.remarks, *self._journal.clear(reconciled), *store.remarks):
            self._voice(remark)
        for path in (*brought_over.emptied, *self._spent):
            remove(path)
        self._spent = []

    def _write_to_journal(self, kind: str, fields: dict[str, Any], error: RunguardError) -> None:
        self._voice(f"{error}; recording in the journal instead")
        try:
            self._journal.write(kind, clock.look().wall_us, fields)
        except NoTraceError as none:
            self._voice(f"{none}; {kind} of run {self._start.run_id} is recorded nowhere")


def _never() -> bool:
    return False


def _repeated(refused: InARow) -> str:
    """Return a clause on the refusals before this one, where there were any."""
    if not refused.starts:
        return ""
    return f"; refused {refused.starts + 1} times in a row, since {rfc3339(refused.since_us // SECOND_US * SECOND_US)}"
