"""Whether case entries are what the ledger's lists name: record lines by their hashes, lists by theirs.

What the tables say of an entry beside its line is held against the line and its neighbours: the case and the word under
which it is filed, and its place in the job's file. When it was received stands under no hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256
from operator import itemgetter
from typing import Any, NamedTuple

from runguard.evidence import lists, reckoned
from runguard.evidence.chain import Finding, raw
from runguard.evidence.removals import Removals
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run

_PAGE = 200  # groups of records that are held at once

_OFFSET, _LINE = itemgetter(3), itemgetter(4)
_Found = tuple[int, str, str, int, bytes]  # id, case, said, file_offset, line


class Telling(NamedTuple):
    """What an entry of the ledger says of the case entries of a run, as of then."""

    seq: int
    entries: int
    list_sha256: str | None
    final: dict[str, Any] | None  # what all of them come to (evidence.tally), where nothing more was to come


class Tellings:
    """What the ledger says of case entries, as its lines are read; `seq` is the last of them."""

    def __init__(self) -> None:
        self.by_run: dict[str, list[Telling]] = {}
        self.left_out: frozenset[str] = frozenset()
        self.seq = 0

    def read(self, seq: int, line: bytes) -> None:
        """Take up what a line says; one that says nothing of them costs nothing, and a damaged one is told as such."""
        self.seq = max(self.seq, seq)
        if b'"items":{' not in line:
            return
        try:
            self._read(seq, line)
        except (ValueError, KeyError, TypeError):
            return

    def _read(self, seq: int, line: bytes) -> None:
        told = json.loads(line)
        if told["run_id"] in self.left_out:
            return
        said = told["items"]
        ends = told["kind"] == "run.finish"
        whole = (told.get("final", False) or ends) and not said.get("pending_bytes")
        final = said if whole and not told.get("journaled") else None  # then a last `items` follows
        telling = Telling(seq, said["entries"], said.get("list_sha256"), final)
        self.by_run.setdefault(told["run_id"], []).append(telling)

    def look_again(self, store: ReadOnlyStore, runs: Iterable[str]) -> None:
        """Take up what the ends of these runs say: something of them was removed since they were looked at."""
        for run_id in runs:
            run = store.run(run_id)
            if run is None or run_id in self.by_run:
                continue
            for (line,) in store.unjudged("line_at", seq=run.finish_seq):
                self.read(run.finish_seq or 0, raw(line))

    def leave_out(self, runs: Collection[str]) -> None:
        """Forget what is said of these runs: a recovery has named their case entries as not whole."""
        self.left_out = frozenset(runs)
        for run_id in runs:
            self.by_run.pop(run_id, None)

    def go_on(self, store: ReadOnlyStore) -> bool:
        """Read what has come meanwhile; return whether that is anything."""
        before = self.seq
        while page := store.unjudged("lines_after", seq=self.seq, page=500):
            for seq, line in page:
                self.read(seq, raw(line))
        return self.seq > before


def compare(
    store: ReadOnlyStore, tellings: Tellings, removals: Removals, advance: Callable[[int], None]
) -> Iterator[Finding]:
    """Yield what is wrong with the case entries of each run that the ledger tells of; `advance` counts them.

    Others may write meanwhile: what seems to be wrong is looked at again as long as the ledger has grown.
    """
    for run_id in list(tellings.by_run):
        rows = store.unjudged("run_by_id", run_id=run_id)
        if not rows:
            continue  # told as a row that is missing
        run = Run(*rows[0])
        found = list(_OfRun(store, run, tellings.by_run[run_id], removals).findings(advance))
        while found and tellings.go_on(store):
            removals = Removals(store)
            found = list(_OfRun(store, run, tellings.by_run[run_id], removals).findings(_uncounted))
        yield from found


def _uncounted(_: int) -> None:
    pass


def untold(store: ReadOnlyStore, tellings: Tellings, after_seq: int) -> Iterator[Finding]:
    """Yield the runs, started after an entry, that have case entries of which their end does not tell."""
    for start_seq in reckoned.runs(store, after_seq):
        rows = store.unjudged("run_at", seq=start_seq)
        if not rows:
            text = f"case entries are filed under entry {start_seq}, which starts no run: put in"
            yield Finding("records", start_seq, text)
            continue
        run = Run(*rows[0])
        if run.run_id in tellings.by_run or run.run_id in tellings.left_out or run.outcome == "running":
            continue  # one that lives may not have told of them yet
        tellings.go_on(store)
        if run.run_id not in tellings.by_run:
            text = f"entry {run.finish_seq} tells of no case entries, and some are there: put in"
            yield Finding("records", run.finish_seq, f"run {run.run_id}: {text}")


class _OfRun:
    """The case entries of one run."""

    def __init__(self, store: ReadOnlyStore, run: Run, told: list[Telling], removals: Removals) -> None:
        self._store = store
        self._run = run
        self._told = told
        self._removals = removals
        self._first, self._beyond = lists.bounds(run.start_seq)
        self._list = lists.RunList()
        self._whole = True  # no record is missing
        self._end = 1  # where in the file the line after the last record begins
        self._head_bytes = len(lists.record_line(run.run_id, 1, "0" * 2 * lists.SALT_BYTES, b"")) - 3  # but for its seq

    def findings(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Compare the digests on record with what the ledger says of them, and each record with its digest."""
        last, due = self._told[-1], sorted(self._told, key=lambda each: each.entries)
        after = self._first
        while due and not due[0].entries:
            yield from self._judge(self._list, due.pop(0))  # lines were rejected, and none was an entry
        while page := self._store.unjudged("item_lists", after=after, beyond=self._beyond, page=_PAGE):
            after = page[-1][0]
            page = [(number, raw(digests)) for number, digests in page]
            for number, digests in page:
                seq = number - self._first
                if seq != self._list.entries + 1:
                    yield self._find(last.seq, f"the list of its case entries has a hole at {seq}")
                self._list.resume([digests])
                while due and due[0].entries <= self._list.entries:
                    yield from self._judge(self._list, due.pop(0))
            yield from self._lines(page)
            advance(sum(len(digests) for _, digests in page) // lists.DIGEST_BYTES)
        if due or last.final:
            yield from self._unlisted(due)
        if last.final:
            if self._end - 1 > last.final["bytes"]:
                yield self._find(last.seq, f"its last case entry cannot have stood before byte {last.final['bytes']}")
            for text in reckoned.flaws(self._store, self._run.start_seq, last.seq, last.final, whole=self._whole):
                yield self._find(last.seq, text)

    def _find(self, seq: int | None, text: str) -> Finding:
        return Finding("records", seq, f"run {self._run.run_id}: {text}")

    def _judge(self, run_list: lists.RunList, telling: Telling) -> Iterator[Finding]:
        """Compare the list as of so many entries with what was told. In the middle of a piece it cannot be had."""
        if run_list.entries == telling.entries and run_list.sha256() != telling.list_sha256:
            yield self._find(telling.seq, f"the list of its case entries is not the one that entry {telling.seq} names")

    def _unlisted(self, due: list[Telling]) -> Iterator[Finding]:
        """Judge what is in no list: while a run lives, the records of a group that is not complete."""
        final = not due or due[-1].final is not None
        after = self._first + self._list.entries
        found = self._found(after, self._beyond)
        for telling in due:
            grown = self._list.copy()
            grown.extend(each[-1] for each in found[: telling.entries - self._list.entries])
            if final or grown.entries != telling.entries:
                listed = f"{self._list.entries if final else grown.entries} are listed"
                yield self._find(
                    telling.seq, f"entry {telling.seq} counts {telling.entries} case entries, and {listed}"
                )
            yield from self._judge(grown, telling)
        if final and not due:
            for at in range(len(found)):
                yield self._find(None, f"case entry {self._list.entries + at + 1} is in no list: put in")
        else:
            yield from self._misfiled(found)

    def _lines(self, page: list[tuple[int, bytes]]) -> Iterator[Finding]:
        """Compare record lines with their digests; a record that was lawfully removed has none."""
        after, last = page[0][0] - 1, page[-1][0] + len(page[-1][1]) // lists.DIGEST_BYTES
        found = self._found(after, last)
        expected = b"".join(digests for _, digests in page)
        if b"".join([sha256(each[-1]).digest() for each in found]) != expected:
            yield from self._one_by_one(page, {each[0]: each[-1] for each in found})
        yield from self._misfiled(found)

    def _found(self, after: int, beyond: int) -> list[_Found]:
        rows = self._store.unjudged("item_lines", after=after, beyond=beyond)
        kinds = {*map(type, map(_OFFSET, rows))}, {*map(type, map(_LINE, rows))}
        if kinds == ({int}, {bytes}):
            return rows
        return [(*each, offset if type(offset) is int else -1, raw(line)) for *each, offset, line in rows]

    def _one_by_one(self, page: list[tuple[int, bytes]], lines: dict[int, bytes]) -> Iterator[Finding]:
        for number, digests in page:
            for at in range(len(digests) // lists.DIGEST_BYTES):
                seq = number + at - self._first
                line = lines.pop(number + at, None)
                digest = digests[at * lists.DIGEST_BYTES : (at + 1) * lists.DIGEST_BYTES]
                if line is None:
                    self._whole = False
                    if self._removals.of(number + at, digest) is None:
                        yield self._find(None, f"case entry {seq} is missing, and no entry removed it")
                elif sha256(line).digest() != digest:
                    yield self._find(None, f"case entry {seq} was changed after it was written")
        for number in lines:
            yield self._find(None, f"case entry {number - self._first} is in no list: put in")

    def _misfiled(self, found: list[_Found]) -> Iterator[Finding]:
        """Yield records of which the tables say something else than they do, or what cannot be."""
        end, at, longer = self._end, 0, 0
        for number, case, said, offset, line in found:
            if number >= longer:  # its seq has one digit more
                digits = len(str(number - self._first))
                at, longer = self._head_bytes + digits, self._first + 10**digits
            if not _says(line, at, case, said) and _filed(line) != (case, said):
                yield self._find(None, f"case entry {number - self._first} is filed as another than it is")
            if offset < end - 1:  # a last line may have no newline
                text = f"case entry {number - self._first} cannot have stood at byte {offset} of the file"
                yield self._find(None, text)
            end = offset + len(line) - at - 1
        self._end = end


def _says(line: bytes, at: int, case: str, said: str) -> bool:
    """Tell whether the item at a byte says so, spelled as our own helpers do: where not, it may say so all the same."""
    if said in ("intent", "note"):
        return line.startswith(f'{{"case":"{case}","phase":"{said}"'.encode(), at)
    says = line.startswith(f'{{"case":"{case}","phase":"result"'.encode(), at)
    return says and line.count(b'"result"') == 2 and f'"result":"{said}"'.encode() in line


def _filed(line: bytes) -> tuple[Any, Any]:
    try:
        item = json.loads(lists.item_of(line))
        return item["case"], item["result"] if item["phase"] == "result" else item["phase"]
    except (ValueError, KeyError, TypeError):
        return None, None
