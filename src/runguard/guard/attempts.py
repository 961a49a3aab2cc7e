"""Which runs came before an attempt in its window, and whether they told of cases. Imported after an earlier one."""

from __future__ import annotations

import os

from runguard.guard.casefile import ITEMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.guard.books import Books
    from runguard.guard.decide import Refuse
    from runguard.store.database import Store
    from runguard.store.reads import Reader, Run

_MOST = 1000


def earlier_cases(books: Books) -> dict[str, str]:
    """Return the variables that tell a further attempt which cases earlier ones have done; nothing without any."""
    try:
        store, run_id = books.store(), books.start.run_id
        run = store.run(run_id)
        earlier = that_told(store, run, books.places.runs) if run is not None else []
        if not earlier:
            return {}
        from runguard.guard.earlier_cases import variables

        return variables(store, run_id, earlier, books.places.runs, books.voice)
    except Exception as error:  # noqa: BLE001
        books.voice(f"{books.failure(error)}; which cases earlier attempts have done cannot be told")
    return {}


def before(reader: Reader, run: Run) -> Iterator[Run]:
    """Yield the earlier runs of the window of `run`, newest first; without a window, those that it replaces."""
    if run.window_key is not None:
        for other in reader.history(run.job, window_key=run.window_key, limit=_MOST):
            if other.start_seq < run.start_seq and other.outcome != "refused":
                yield other
        return
    replaced = run.supersedes
    for _ in range(_MOST):
        found = reader.run(replaced) if replaced else None
        if found is None:
            return
        yield found
        replaced = found.supersedes


def that_told(reader: Reader, run: Run, runs: str) -> list[Run]:
    """Return those of them that told of cases, on record or in a file that was left in the directory `runs`."""
    return [
        earlier
        for earlier in before(reader, run)
        if reader.rows("items_told", start_seq=earlier.start_seq)
        or os.path.exists(os.path.join(runs, earlier.run_id + ITEMS))
    ]


def naming_uncertain(store: Store, refusal: Refuse) -> Refuse:
    """Return the refusal of a held window with the cases of its lost run that nobody knows about."""
    run = store.run(refusal.earlier.run_id) if refusal.earlier else None
    if run is None or not store.rows("items_told", start_seq=run.start_seq):
        return refusal
    from runguard.guard.earlier_cases import counted, named, uncertain_after

    cases = uncertain_after(store, run)
    if not cases:
        return refusal
    return refusal._replace(because=f"{refusal.because}; {counted(cases)}", aside=named(cases))
