"""Refused starts on record: who was in the way, and how often it came to that. Imported by refused starts alone."""

from __future__ import annotations

from runguard.guard import terminal
from runguard.guard.answering import Answer, answer
from runguard.guard.decide import Refuse
from runguard.guard.holding import describe, holder_by_note, holder_of
from runguard.guard.prepare import early_us
from runguard.guard.start import refusal_fields
from runguard.instant import SECOND_US, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.guard.books import Books
    from runguard.guard.liveness import Life
    from runguard.guard.voice import Voice
    from runguard.store.database import Store, Transaction
    from runguard.store.reads import InARow, Run


def turn_away(books: Books, turn: Refuse | None, fields: dict[str, Any]) -> Refuse:
    """Say and record that it is not a start's turn: as it was told, or since another run holds the job's lock."""
    if turn is None:
        start, places = books.start, books.places
        holder = holder_by_note(places.locks, places.runs, start.job)
        because = f"{describe(holder, start.at_us)} holds the lock"
        turn = Refuse("overlap", books.prepared.settings.conflict_exit, because, holder=holder)
    if turn.why == "overlap":
        turn = _escalated(books, turn)
    say(turn, books.voice)
    refuse(books, turn, fields)
    return turn


def refuse(books: Books, refusal: Refuse, fields: dict[str, Any]) -> None:
    """Record a start that is refused without a decision about its window. Never raises for want of a place."""
    try:
        store = books.store()
        with store.write() as tx:
            brought_over = books.take_over(tx)
            found = answer(store, books.start, early_us(books.prepared.settings))
            record(books, tx, refusal, found, fields)
        books.clear(store, brought_over)
    except Exception as error:  # noqa: BLE001
        refused = refusal_entry(books, refusal, Answer(books.start.expected, None), fields)
        books.write_to_journal("run.refused", refused, books.failure(error))
    finally:
        books.close()


def say(refusal: Refuse, voice: Voice) -> None:
    """Say that the command is not run; that a window is done already is news only to a person at a terminal."""
    if refusal.why != "duplicate" or terminal.is_stderr():
        voice(f"not run ({refusal.why}): {refusal.because}", refusal.aside)


def record(books: Books, tx: Transaction, refusal: Refuse, found: Answer, fields: dict[str, Any]) -> None:
    """Record a refusal in `tx`, and the job's registration where it is not known."""
    if found.change and found.change["change"] == "registered":
        tx.append("job.changed", books.start.at_us, found.change)
    entry = refusal_entry(books, refusal, found, fields)
    tx.append("run.refused", books.start.at_us, {**entry, "number": tx.store.next_number()})


def refusal_entry(books: Books, refusal: Refuse, found: Answer, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what the entry of a refused start says."""
    said = refusal_fields(books.start, found, refusal, books.voice.masked)
    return {**said, **fields, "remarks": books.voice.take()}


def overlapping(books: Books, store: Store, run: Run, life: Life) -> Refuse:
    """Return the refusal of a start that has the lock, and finds that an earlier run lives without it."""
    repeated = _repeated(store.refused_in_a_row(books.start.job))
    because = f"run {run.number} still runs: {life.because}{repeated}"
    holder = holder_of(run, life, books.places.runs)
    return Refuse("overlap", books.prepared.settings.conflict_exit, because, holder=holder)


def _escalated(books: Books, refusal: Refuse) -> Refuse:
    """Return a refusal for overlap with the number of the run in the way, and how often it came to that in a row.

    For display: as it is where the store cannot tell.
    """
    try:
        store, holder = books.store(), refusal.holder
        run = store.run(holder.run_id) if holder else None
        repeated = _repeated(store.refused_in_a_row(books.start.job))
    except Exception:  # noqa: BLE001 - display only; the record that follows says what is wrong
        return refusal
    because = refusal.because
    if holder is not None and run is not None:
        because = because.replace(f"run {holder.run_id[:8]}", f"run {run.number}", 1)
        holder = holder._replace(number=run.number)
    return refusal._replace(because=f"{because}{repeated}", holder=holder)


def _repeated(refused: InARow) -> str:
    """Return a clause on the refusals before this one, where there were any."""
    if not refused.starts:
        return ""
    return f"; refused {refused.starts + 1} times in a row, since {rfc3339(refused.since_us // SECOND_US * SECOND_US)}"
