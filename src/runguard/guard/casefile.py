"""The file to which a command may add case entries: `runs/RUN_ID.items`. A job that adds none pays for it alone.

Everything that a written file needs is in `casework`, which is imported only then.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.evidence.tally import Tally
    from runguard.guard.books import Books
    from runguard.guard.casework import Casework
    from runguard.guard.prepare import Prepared
    from runguard.guard.voice import Voice
    from runguard.paths import Places
    from runguard.store.database import Transaction

ITEMS = ".items"
OVER = ".over"
LOOK_S = 1.0


class CaseFile:
    """The file of one run, made empty, 0600. Without it (a full disk) the command is given none, and that is said."""

    __slots__ = ("_books", "_fd", "_given", "_places", "_prepared", "_voice", "_work", "path")

    def __init__(self, prepared: Prepared, places: Places, voice: Voice, books: Books) -> None:
        self.path = os.path.join(places.runs, prepared.start.run_id + ITEMS)
        self._prepared = prepared
        self._places = places
        self._voice = voice
        self._books = books
        self._work: Casework | None = None
        self._given: dict[str, str] = {}
        self._fd = -1  # open to the end: no other file can have our inode meanwhile
        try:
            fd = self._fd = os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
            os.fchmod(fd, 0o600)  # whatever the umask
        except OSError as error:
            voice(f"{self.path}: {error.strerror}; the command cannot add case entries")
        else:
            self._given["RUNGUARD_ITEMS"] = self.path

    def variables(self, *, further: bool) -> dict[str, str]:
        """Return what the command is to find in its environment; `further`: it is not the first attempt."""
        if further:
            from runguard.guard.attempts import earlier_cases

            self._given |= earlier_cases(self._books)
        return self._given

    def beside(self) -> Iterator[float]:
        """Take in what is written beside the command, from the first line on."""
        while not self._written():
            yield LOOK_S
        yield from self._casework().steps()

    def conclude(self) -> Tally | None:
        """Take in the rest, once the command has ended; return what the entries come to, None where there are none."""
        if self._work is not None or self._written():
            return self._casework().conclude()
        if "RUNGUARD_ITEMS" in self._given and not self._is_there():
            from runguard.evidence.tally import Tally

            return Tally(removed=True)
        return None

    def complete(self, tx: Transaction) -> None:
        """Put the end of the entries on record with the run's."""
        if self._work is not None:
            self._work.complete(tx)

    def remove(self, *, recorded: bool) -> None:
        """Remove what was given to the command; entries only where they and the run's end are on record."""
        for path in self._given.values():
            if path != self.path:
                remove(path)
        if self._work is not None:
            self._work.clear(recorded=recorded)
        elif not self._written():
            remove(self.path)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _written(self) -> bool:
        try:
            return os.stat(self.path).st_size > 0
        except OSError:
            return False

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self._fd))
        except OSError:
            return False

    def _casework(self) -> Casework:
        if self._work is None:
            from runguard.guard.casework import Casework

            self._work = Casework(self._prepared, self._places, self._voice, self._books, self.path, self._fd)
        return self._work


def remove(path: str) -> None:
    """Remove a file, or leave it where that cannot be."""
    try:
        os.unlink(path)
    except OSError:
        return
