"""`doctor --recover`: a store that was known before and cannot be used any more is replaced by what is left of it.

Nothing is deleted: what is there is kept aside first. The new store is built beside it and takes its name in one step,
so that a crash at any moment leaves the old files or the new one, and the next attempt goes on from there. Then comes
what any start does: the journal, runs without an end, and case entries that dead guards have left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from runguard import paths, private
from runguard.errors import RefusedError, StoreError, reason
from runguard.evidence import mending
from runguard.evidence import verify as verification
from runguard.evidence.mending import Listed
from runguard.evidence.removals import Removals
from runguard.evidence.verify import Since, Trusted
from runguard.guard import host, liveness
from runguard.guard.lockholders import holders
from runguard.guard.tidying import Step
from runguard.instant import rfc3339
from runguard.store import examining, faults, keeping, salvage, salvage_rows
from runguard.store.recoveries import UNWITNESSED, Recoveries, Recovery, in_words
from runguard.store.sqlite import WAIT_S, open_reader
from runguard.store.witness import Seen, Witness, look
from runguard.store.writelock import WriteLock

if TYPE_CHECKING:
    from runguard.paths import Places
    from runguard.store.database import Store
    from runguard.store.salvage import Salvaged

    Advance = Callable[[int], None]

# Findings of a verification for which a recovery does something.
_TO_MEND = ("chain", "checkpoint", "index", "output", "records")
_ALL = 1 << 62


def refuse_while_a_run_lives(places: Places) -> None:
    """Raise RefusedError where a run holds its own file or its job's lock, StoreError where that cannot be told."""
    for job, holder in holders(places.locks).items():
        raise RefusedError(f"a run of {job} lives (pid {holder.pid or '?'}: {holder.command}); wait for its end")
    for name in _run_files(places):
        path = os.path.join(places.runs, name)
        if "." not in name and liveness.held(path):
            left = liveness.left_by(path)
            raise RefusedError(f"run {name} lives (guard pid {left.guard_pid if left else '?'}); wait for its end")


def mend(environ: Mapping[str, str], places: Places, why: str, now_us: int, advance: Advance) -> Iterator[Step]:
    """Replace the store by what is left of it, if it is damaged, and yield each step once it is done.

    `why` is the person's reason; `advance` is told of pages and entries. Raises RefusedError while a run lives, and
    StoreError where the store cannot be judged, or there is no room: then the old files are as they were.
    """
    refuse_while_a_run_lives(places)
    path = os.path.realpath(places.store)
    if not os.path.isdir(os.path.dirname(path)):
        if look(Witness(places.witness, path)) == (None, None):
            return
        paths.prepare(os.path.dirname(path))  # it went with the store
    lock = WriteLock(path)
    lock.take(WAIT_S)
    try:
        refuse_while_a_run_lives(places)  # one may have begun while we queued: it would write to the old file
        fault = examining.damage(path, places.witness) or _unsound(path, environ, advance)
        if not fault:
            yield Step("store", "nothing is wrong with it")
            return
        fault = faults.without_advice(fault)
        yield Step("store", fault)
        yield from _replace(environ, places, path, _Told(fault, why, now_us), advance)
    finally:
        lock.close()


def _run_files(places: Places) -> list[str]:
    try:
        return sorted(os.listdir(places.runs))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(places.store, f"{places.runs}: {reason(error)} (uid {os.geteuid()})") from error


class _Told(NamedTuple):
    """What the recovery will tell of itself."""

    fault: str
    reason: str
    at_us: int


def _unsound(path: str, environ: Mapping[str, str], advance: Advance) -> str:
    """Return what a whole verification finds, as a clause, or ""."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return ""
    try:
        examining.upgrade(path)
        with open_reader(path) as store:
            report = verification.integrity(store, Since(), Trusted(), environ, advance)
    except StoreError as error:
        if not examining.is_damage(error):
            raise
        return error.why
    found = [each.text for each in report.findings if each.what in _TO_MEND]
    more = f" (and {len(found) - 1} more findings)" if len(found) > 1 else ""
    return found[0] + more if found else ""


def _replace(environ: Mapping[str, str], places: Places, path: str, told: _Told, advance: Advance) -> Iterator[Step]:
    witness = Witness(places.witness, path)
    seen, damage = look(witness)
    if damage is not None:
        yield Step("witness", f"{witness.path}: {reason(damage)}; it tells nothing of the head")
    interrupted = examining.interrupted(path)
    stamp = rfc3339(told.at_us)[:19].replace("-", "").replace(":", "") + "Z"
    aside, kept = keeping.keep_aside(path, (witness.path,), stamp)
    examining.roll_back(path)
    building = os.path.join(aside, "building")
    try:
        os.mkdir(building, 0o700)
        store, triggers = salvage.begin(os.path.join(building, os.path.basename(path)), host.author(environ))
    except (OSError, StoreError) as error:
        _take_back(aside, building, interrupted)
        raise _no_room(path, error) from error
    try:
        salvaged, incomplete, listed = _salvage(store, path, seen, advance)
        left = _left(store, salvaged, environ, advance)
        fields = {
            "about": [{"since": since, "until": until} for _, _, since, until in salvaged.lost],
            "head": {"seq": seen.seq, "sha256": seen.hash} if seen else None,
            "why": told.fault,
            "reason": told.reason,
            "salvaged": salvaged.entries,
            "unproven": list(salvaged.unproven),
            "lost": [[first, last] for first, last, _, _ in salvaged.lost],
            "listed": listed.spans,
            "list_sha256": listed.sha256,
            "findings": sorted(left),
            "incomplete": incomplete,
            "copy": {"path": aside, "files": [each._asdict() for each in kept]},
        }
        appended = salvage.resume(store, salvaged, seen, told.at_us, fields)
        salvage.seal(store, triggers)
    except BaseException as error:
        store.close()
        _take_back(aside, building, interrupted)
        if isinstance(error, OSError):
            raise _no_room(path, error) from error
        raise
    yield Step("copy", f"kept in {aside}: " + (", ".join(f"{each.name} ({each.bytes} bytes)" for each in kept) or "-"))
    yield Step("ledger", _in_words(salvaged, incomplete, seen))
    os.rename(store.path, path)
    private.sync(os.path.dirname(path))
    shutil.rmtree(building, ignore_errors=True)
    if salvaged.lost:
        yield Step("windows", "those of the time that is lost look missing: look before you catch up on them")
    yield Step("store", f"the new one is in place; its first entry is {appended.seq} (recovery)")
    try:
        witness.write(appended.seq, appended.hash)
        yield Step("witness", f"it follows the new ledger: entry {appended.seq}")
    except OSError as error:
        yield Step("witness", f"{witness.path}: {reason(error)}; the next start will let it follow")


def _take_back(aside: str, building: str, interrupted: bool) -> None:
    """Remove what an attempt that failed has made: attempts must not fill the disk. What it copied is in its place.

    The copy is the only one where SQLite has undone a write in the store since: then it stays.
    """
    shutil.rmtree(building if interrupted else aside, ignore_errors=True)


def _no_room(path: str, error: OSError | StoreError) -> StoreError:
    return error if isinstance(error, StoreError) else StoreError(path, f"{reason(error)}; nothing was changed")


def _salvage(store: Store, path: str, seen: Seen | None, advance: Advance) -> tuple[Salvaged, list[str], Listed]:
    """Fill the new store from the file at `path`, if there is one.

    Returns what of, runs that are not whole, and entries that no checkpoint proves any more.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(path, reason(error)) from error
    try:
        salvaged = salvage.take_lines(store, fd, seen, advance)
        salvage_rows.take_rows(store, fd, Removals(store).redacts, advance)
    finally:
        os.close(fd)
    listed = mending.complete_lists(store)
    return salvaged, mending.mend(store), listed


def _left(store: Store, salvaged: Salvaged, environ: Mapping[str, str], advance: Advance) -> set[tuple[str, int]]:
    """Return what a verification still finds at an entry, gaps excepted: the entry `recovery` names all of it."""
    named = Recoveries([Recovery.of_gaps([(first, last) for first, last, _, _ in salvaged.lost])])
    report = verification.integrity(store, Since(), Trusted(), environ, advance, _ALL, named)
    return {(each.what, each.seq) for each in report.findings if each.seq is not None}


def _in_words(salvaged: Salvaged, incomplete: list[str], seen: Seen | None) -> str:
    lost = [(first, last) for first, last, _, _ in salvaged.lost]
    parts = [f"{salvaged.entries} entries salvaged", f"{in_words(lost)} lost" if lost else "none lost"]
    if seen is None:
        parts[-1] += f", {UNWITNESSED}"
    if salvaged.unproven:
        parts.append(f"{in_words([(seq, seq) for seq in salvaged.unproven])} not proven")
    if salvaged.unindexed:
        parts.append(f"{len(salvaged.unindexed)} ends of runs whose start is lost")
    if incomplete:
        parts.append(f"case entries of {len(incomplete)} run{'s are' if len(incomplete) > 1 else ' is'} not whole")
    return "; ".join(parts)
