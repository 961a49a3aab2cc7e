"""A start while the store fails: decided by this host's journal, and recorded there. Imported only then."""

from __future__ import annotations

from runguard.guard.answering import off_schedule, question
from runguard.guard.books import Opening
from runguard.guard.decide import Proceed, Refuse, decide
from runguard.guard.hindsight import look_back
from runguard.guard.refusing import refusal_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.guard.books import Books


def open_in_journal(books: Books, fields: dict[str, Any]) -> Opening:
    """Decide by the journal and by what can be read of the store: beyond that the window counts as open.

    Raises NoTraceError where nothing can be written.
    """
    start, settings = books.start, books.prepared.settings
    found, earlier, alive, _ = look_back(books.prepared, books.places, books.journal)
    decision: Proceed | Refuse
    if alive is not None and settings.overlap != "allow":
        decision = Refuse("overlap", settings.conflict_exit, alive[0], holder=alive[1])
    else:
        decision = decide(question(books.prepared, found, earlier))
    if isinstance(decision, Refuse):
        books.journal.write("run.refused", start.at_us, refusal_entry(books, decision, found, fields))
    else:
        if remark := off_schedule(start, found):
            books.voice(remark)
        books.journal.write("run.start", start.at_us, books.start_entry(None, found, decision, fields))
    return Opening(decision, found.window)
