"""A run's case entries, once there are any: taken in beside the command and after it. It fails open, never silently.

What cannot be taken in now stays in its file, and the next start of the job takes it in.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runguard import clock
from runguard.errors import StoreError, reason
from runguard.evidence.tally import Tally
from runguard.guard.casefile import LOOK_S, OVER, remove
from runguard.guard.intake import Intake, told_of
from runguard.store.sqlite import WAIT_S, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.guard.books import Books
    from runguard.guard.execution import Execution
    from runguard.guard.prepare import Prepared
    from runguard.guard.voice import Voice
    from runguard.paths import Places
    from runguard.store.database import Store, Transaction

_SOON_S, _LATEST_S = 0.05, 5.0  # another try beside the command while the store is busy, or fails
_IDLE_S = 10.0  # the store is let go of after so long without an entry


class Casework:
    """What takes in the file at `path` for one run; `made` is open on it as it was made, or -1."""

    def __init__(self, prepared: Prepared, places: Places, voice: Voice, books: Books, path: str, made: int) -> None:
        self._prepared = prepared
        self._places = places
        self._voice = voice
        self._path = path
        self._books = books
        self._intake = Intake(path, prepared.start.run_id, made)
        self._opened: Store | None = None
        self._tally: Tally | None = None
        self._whole = False  # all of the file is on record

    def steps(self) -> Iterator[float]:
        """Take in what comes; yield the seconds until the next look. The store is never waited for."""
        again_s, busy_s = _SOON_S, clock.look().monotonic_s
        while True:
            now_s = clock.look().monotonic_s
            try:
                before = self._intake.entries
                more = self._intake.take(self._store(0.0))
            except Exception:  # noqa: BLE001 - whatever it is, the end tells of it, if it is still there
                self._let_go()
                yield again_s
                again_s = min(2 * again_s, _LATEST_S)
                continue
            again_s = _SOON_S
            if self._intake.entries != before:
                busy_s = now_s
            elif now_s > busy_s + _IDLE_S:
                self._let_go()
            yield 0.0 if more else LOOK_S

    def conclude(self) -> Tally:
        """Take in the rest and return what all entries come to. Told to stop meanwhile, the rest is left."""
        self._let_go()  # it was opened not to wait
        try:
            store = self._store(WAIT_S)
            if store.run(self._prepared.start.run_id) is None:
                self._books.bring_over()
            while self._intake.take(store, last=True) and not self._books.told_to_stop():
                pass
            self._tally = self._intake.tally(store)
            self._whole = not self._tally.pending_bytes
        except Exception as error:  # noqa: BLE001 - the run's end is recorded all the same
            said = reason(error) if isinstance(error, (StoreError, OSError)) else repr(error)
            self._voice(f"case entries {self._path}: {said}; they are taken in later")
            self._tally = Tally(pending_bytes=max(_size(self._path), 1))  # not none: nothing is known of it
        finally:
            self._let_go()
        for warning in told_of(self._intake.personal):
            self._voice(warning)
        return self._tally

    def complete(self, tx: Transaction) -> None:
        """Put the end of the lists on record, in the transaction of the run's end."""
        if self._whole and self._tally is not None:
            self._intake.complete(tx, self._tally)

    def clear(self, *, recorded: bool) -> None:
        """Remove the file where all of it is on record, and the run's end too; keep what was over a limit."""
        self._intake.close()
        self._let_go()
        if not (recorded and self._whole and self._tally is not None):
            return
        over = self._tally.beyond_bytes
        added = _size(self._path) - self._intake.read_bytes - over
        if added > 0:
            self._voice(f"case entries {self._path}: {added} bytes came after the end; the next start takes them in")
        elif over:
            self._voice(f"the case entries over the limit are kept in {set_aside(self._path)}")
        else:
            remove(self._path)

    def _store(self, wait_s: float) -> Store:
        if self._opened is None:
            self._opened = open_store(
                self._places.store,
                author=self._prepared.author,
                create=False,
                witness_directory=self._places.witness,
                wait_s=wait_s,
                stop=self._books.told_to_stop,
            )
        return self._opened

    def _let_go(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def set_aside(path: str) -> str:
    """Keep a file of case entries that went over a limit, and return its new name."""
    aside = path + OVER
    try:
        os.rename(path, aside)
    except OSError:
        return path
    return aside


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def judged(done: Execution, tally: Tally, voice: Voice) -> Execution:
    """Return the end with what the job's case entries say against it: a success that they doubt is suspect."""
    doubt = tally.verdict()
    if doubt is None:
        return done
    if done.verdict.outcome != "succeeded":
        voice(doubt)
        return done
    suspect = f"{done.verdict.suspect}; {doubt}" if done.verdict.suspect else doubt
    return done._replace(verdict=done.verdict._replace(suspect=suspect))
