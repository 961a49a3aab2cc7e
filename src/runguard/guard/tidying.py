"""What a start does for its own job, done for all jobs: the journal brought over, runs that died closed, their case
entries taken in, run files that nobody needs removed. After a recovery, and whenever a person asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from runguard import config
from runguard.guard import dead_cases, host
from runguard.guard.casefile import ITEMS, OVER, remove
from runguard.guard.leftovers import Leftovers
from runguard.store.journal import Journal
from runguard.store.reads import Run
from runguard.store.sqlite import open_store

if TYPE_CHECKING:
    from runguard.config import Loaded
    from runguard.paths import Places
    from runguard.store.database import Store

_AT_ONCE = 20  # run files that Leftovers looks at in one go


class Step(NamedTuple):
    """One thing that was done, for a person."""

    name: str
    text: str


def tidy(environ: Mapping[str, str], loaded: Loaded, places: Places, now_us: int) -> Iterator[Step]:
    """Do all of it and yield each step once it is done. Raises StoreError."""
    author = host.author(environ)
    journal = Journal(places.state, author)
    said: list[str] = []
    with open_store(places.store, author=author, create=journal.pending(), witness_directory=places.witness) as store:
        dead = dead_cases.dead_with_entries(_running(store), places.runs)
        for run in dead:
            dead_cases.take_in(store, _items(places, run.run_id), run, said.append)
            yield Step("cases", f"case entries of run {run.number} of {run.job} are on record")
        with store.write() as tx:
            reconciled = journal.reconcile(tx)
            leftovers = Leftovers(tx, places.runs, now_us, ((), _mask(environ, loaded, store)))
            closed, _ = leftovers.close_dead(_running(store))
            names = [name for name in _names(places.runs) if "." not in name[1:]]
            spent = [path for at in range(0, len(names), _AT_ONCE)
                     for path in leftovers.take_over(names[at : at + _AT_ONCE], "")]  # fmt: skip
        said += [*reconciled.remarks, *journal.clear(reconciled), *store.remarks]
        for path in (*leftovers.spent, *spent):
            remove(path)
        if reconciled.added:
            yield Step("journal", f"{reconciled.added} entries brought over")
        yield from (Step("runs", f"{remark}{names}") for remark, names in closed)
        for path in _orphans(places.runs):
            for _ in dead_cases.steps(lambda: _again(environ, places), [path], said.append):
                pass
            if not os.path.exists(path):
                yield Step("cases", f"{os.path.basename(path)} is on record")
    yield from (Step("remark", each) for each in said)


def _again(environ: Mapping[str, str], places: Places) -> Store:
    """Open the store for one file of case entries."""
    author = host.author(environ)
    return open_store(places.store, author=author, create=False, witness_directory=places.witness)


def _running(store: Store) -> list[Run]:
    return [Run(*row) for row in store.rows("all_running")]


def _items(places: Places, run_id: str) -> str:
    return os.path.join(places.runs, run_id + ITEMS)


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _orphans(runs: str) -> list[str]:
    """Return files of case entries whose runs have no run file any more."""
    paths = [os.path.join(runs, name) for name in _names(runs) if name.endswith(ITEMS) and not name.endswith(OVER)]
    return [path for path in paths if not os.path.exists(path.removesuffix(ITEMS))]


def _mask(environ: Mapping[str, str], loaded: Loaded, store: Store) -> tuple[str, ...]:
    """Return the patterns of secrets of every job."""
    found = (config.effective({}, environ, loaded, job)[0].mask for job in store.jobs())
    return tuple(dict.fromkeys(pattern for mask in found for pattern in mask))
