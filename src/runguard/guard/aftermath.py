"""What is put on record once a run is over: what became of its pings, and the ledger's checkpoint."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runguard.guard.books import Books
    from runguard.store.reads import Ping


def record_pings(books: Books, pings: list[Ping], late: Sequence[tuple[str, Ping]] = ()) -> None:
    """Record what became of the pings, after everything else; `late` are those of earlier runs, by run."""
    if not pings and not late:
        return
    try:
        store = books.store()
        if pings and store.run(books.start.run_id) is None:
            books.voice("the run waits in the journal; what became of its ping is not recorded")
        elif pings:
            store.record_pings(books.start.run_id, pings)
        for run_id, ping in late:
            if store.run(run_id) is not None:
                store.record_pings(run_id, [ping])
    except Exception as error:  # noqa: BLE001
        books.voice(f"{books.failure(error)}; what became of the ping is not recorded")
    finally:
        books.close()


def checkpoint(books: Books) -> None:
    """Make the ledger's checkpoint, once a day and every 10,000 entries, sign it and tell it outside."""
    from runguard.guard import anchoring

    try:
        anchoring.checkpoint(books.store(), books.prepared.settings, books.start.environ, books.voice)
    except Exception as error:  # noqa: BLE001 - the job is over, and its status stands
        books.voice(f"{books.failure(error)}; no checkpoint was made")
    finally:
        books.close()
