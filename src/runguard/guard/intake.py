"""Taking case entries from a job's file into the store: beside the command, after it, or after a guard that died.

Every transaction goes on from where the record says that the last one ended, at the byte: whoever does it, and however
often it is begun anew, each line is on record once. Imported where a job has written entries.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

from runguard import clock
from runguard.errors import StoreError
from runguard.evidence import lists
from runguard.evidence.lists import RunList
from runguard.evidence.tail import Tail
from runguard.evidence.tally import Tally
from runguard.guard.batch import Batch, MovedError, advance
from runguard.store import items
from runguard.store.items import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runguard.store.database import Store, Transaction
    from runguard.store.reads import Reader

TELL_ENTRIES, TELL_S = 1000, 5.0  # how often the ledger names the list while the run lives


class Intake:
    """The way of one run's entries from the file at `path` into a store.

    `made` is open on the file that the command was given, or -1 where nobody has kept it open.
    """

    def __init__(self, path: str, run_id: str, made: int = -1) -> None:
        self.path = path
        self.run_id = run_id
        self._made = made
        self.personal: dict[str, list[int]] = {}  # what entries look like → their places in the run, the first ones
        self._tail: Tail | None = None
        self._progress: Progress | None = None
        self._list = RunList()
        self._ended = False  # the end of the run is on record
        self._told_s = clock.look().monotonic_s

    @property
    def entries(self) -> int:
        """How many entries of the run are on record, as far as we know."""
        return self._progress.entries if self._progress else 0

    @property
    def read_bytes(self) -> int:
        """How much of the file, as it is now, is on record."""
        return self._progress.file_offset - self._progress.shift if self._progress else 0

    def take(self, store: Store, *, last: bool = False) -> bool:
        """Take in what is there, at most 1,000 lines, in one transaction; return whether more is there at once.

        `last`: nothing will be added any more. Raises StoreError, also where the run's start is not on record, and
        OSError where the file cannot be read.
        """
        progress = self._progress or self._resume(store)
        if progress.beyond_bytes:
            return False
        if self._tail is None:
            self._tail = Tail(self.path)
        offset = progress.file_offset - progress.shift
        changed = self._tail.changed(offset)
        look = self._tail.look(offset, last=last)
        truncated = look.size_bytes < offset
        elsewhere = self._tail.replaced()
        replaced = elsewhere and not (look.lines or look.more)
        another = not progress.file_offset and self._made >= 0 and not self._tail.is_open_as(self._made)
        at = clock.look()
        batch = Batch(self.run_id, progress, self._list.copy(), at.wall_us)
        if replaced or another:
            batch.note_new_file("replaced by another")
        elif truncated:
            batch.note_new_file(f"truncated to {look.size_bytes} bytes")
        elif changed:
            batch.note_new_file("written anew")
        else:
            batch.add(look.lines, look.size_bytes)
        tell = batch.untold() >= TELL_ENTRIES or (batch.untold() > 0 and at.monotonic_s >= self._told_s + TELL_S)
        tell = tell or (self._ended and batch.progress != progress)  # what the end has told is no longer all
        if batch.progress == progress and not tell:
            return look.more
        try:
            with store.write() as tx:
                written = batch.write(tx, tell=tell)
        except MovedError:
            self._progress = None
            return True
        self._progress, self._list = written, batch.list
        if tell:
            self._told_s = at.monotonic_s
        for seems, places in batch.personal.items():
            known = self.personal.setdefault(seems, [])
            known += places[: max(3 - len(known), 0)]
        if replaced:
            self.close()
        return truncated or elsewhere or another or changed or (look.more and not written.beyond_bytes)

    def tally(self, reader: Reader) -> Tally:
        """Return what is on record, and how much of the file is not."""
        progress = self._progress or self._resume(reader)
        left = self._left_bytes(progress)
        tally = tally_of(reader, progress, self._list)
        return tally._replace(beyond_bytes=left) if progress.beyond_bytes else tally._replace(pending_bytes=left)

    def complete(self, tx: Transaction, tally: Tally, *, final: bool = False) -> None:
        """Put the rest of the lists on record: nothing more will come. `final`: an entry of the ledger tells `tally`.

        Raises MovedError where it is no longer what `tally` says.
        """
        progress = self._progress or self._resume(tx.store)
        rest = self._list.copy().rest()
        if rest is not None:
            tx.send("insert_item_list", {"id": lists.number(progress.start_seq, rest[0]), "digests": rest[1]})
        told = progress.entries if final else progress.told
        advance(tx, progress, progress._replace(complete=1, told=told, beyond_bytes=tally.beyond_bytes))
        if final:
            tx.append("items", clock.look().wall_us, {"run_id": self.run_id, "final": True, "items": tally.fields()})

    def close(self) -> None:
        """Let go of the file."""
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def _resume(self, reader: Reader) -> Progress:
        """Find out how far the file is on record. Raises StoreError where the run itself is not."""
        run = reader.run(self.run_id)
        if run is None:
            raise StoreError(reader.path, f"the start of run {self.run_id} is not on record yet")
        self._ended = run.outcome != "running"
        self._progress = items.progress(reader, run.start_seq) or Progress(run.start_seq)
        self._list = list_of(reader, run.start_seq)
        return self._progress

    def _left_bytes(self, progress: Progress) -> int:
        try:
            size = os.stat(self.path).st_size
        except OSError:
            return 0
        return max(size - (progress.file_offset - progress.shift), 0)


def list_of(reader: Reader, start_seq: int) -> RunList:
    """Return the run list as it is on record: from the digests, and from records whose digests are not there yet."""
    found = RunList()
    found.resume(items.digests(reader, *lists.bounds(start_seq)))
    after = lists.number(start_seq, found.entries)
    found.extend(record.line for record in items.records(reader, after, lists.bounds(start_seq)[1]))
    return found


def tally_of(reader: Reader, progress: Progress, run_list: RunList) -> Tally:
    """Return what the entries that are on record come to."""
    hash = sha256()
    for each in items.rejects(reader, progress.start_seq):
        hash.update(lists.reject_list([(each.sha256, each.file_offset)]))
    counts = {name: value for name, value in progress._asdict().items() if name in Tally._fields}
    return Tally(
        **counts,
        uncertain=items.uncertain_cases(reader, progress.start_seq),
        list_sha256=run_list.sha256(),
        rejected_sha256=hash.hexdigest() if progress.rejected else None,
        bytes=progress.file_offset,
    )


def told_of(personal: Mapping[str, list[int]]) -> Iterator[str]:
    """Yield a warning for each kind of personal data that entries seem to hold."""
    for seems, places in personal.items():
        first = ", ".join(str(place) for place in places)
        yield f"case or reason of case entry {first} looks like {seems}: a record that is kept for years needs none"
