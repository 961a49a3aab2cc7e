"""Whether case entries are what the ledger's lists name: record lines by their hashes, lists by theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from runguard.evidence import lists
from runguard.evidence.chain import Finding
from runguard.evidence.removals import Removals
from runguard.store import items
from runguard.store.database import ReadOnlyStore

_PAGE = 200  # groups of records that are held at once


class Telling(NamedTuple):
    """What an entry of the ledger says of the case entries of a run, as of then."""

    seq: int
    entries: int
    list_sha256: str | None
    rejected_sha256: str | None
    final: bool


class Tellings:
    """What the ledger says of case entries, as its lines are read."""

    def __init__(self) -> None:
        self.by_run: dict[str, list[Telling]] = {}

    def read(self, seq: int, line: bytes) -> None:
        """Take up what a line says; one that says nothing of them costs nothing, and a damaged one is told as such."""
        try:
            self._read(seq, line)
        except (ValueError, KeyError, TypeError):
            return

    def _read(self, seq: int, line: bytes) -> None:
        if b'"items":{' in line:
            told = json.loads(line)
            said = told["items"]
            ends = told["kind"] == "run.finish" and not told.get("journaled")  # then a last `items` follows
            final = (ends or told.get("final", False)) and not said.get("pending_bytes")
            telling = Telling(seq, said["entries"], said.get("list_sha256"), said.get("rejected_sha256"), final)
            self.by_run.setdefault(told["run_id"], []).append(telling)

    def look_again(self, store: ReadOnlyStore, runs: Iterable[str]) -> None:
        """Take up what the ends of these runs say: something of them was removed since they were looked at."""
        for run_id in runs:
            run = store.run(run_id)
            if run is None or run_id in self.by_run:
                continue
            for (line,) in store.unjudged("line_at", seq=run.finish_seq):
                self.read(run.finish_seq or 0, bytes(line))

    def leave_out(self, runs: Collection[str]) -> None:
        """Forget what is said of these runs: a recovery has named their case entries as not whole."""
        for run_id in runs:
            self.by_run.pop(run_id, None)


def compare(
    store: ReadOnlyStore, tellings: Tellings, removals: Removals, advance: Callable[[int], None]
) -> Iterator[Finding]:
    """Yield what is wrong with the case entries of each run that the ledger tells of; `advance` counts them."""
    for run_id, told in tellings.by_run.items():
        run = store.run(run_id)
        if run is None:
            continue  # told as a row that is missing
        yield from _run(store, run_id, run.start_seq, told, removals, advance)


def _run(
    store: ReadOnlyStore,
    run_id: str,
    start_seq: int,
    told: list[Telling],
    removals: Removals,
    advance: Callable[[int], None],
) -> Iterator[Finding]:
    """Compare the digests on record with what the ledger says of them, and each record with its digest."""
    first, beyond = lists.bounds(start_seq)
    run_list, due = lists.RunList(), sorted(told, key=lambda each: each.entries)
    after = first
    while due and not due[0].entries:
        yield from _judge(run_id, run_list, due.pop(0))  # lines were rejected, and none was an entry
    while page := store.unjudged("item_lists", after=after, beyond=beyond, page=_PAGE):
        after = page[-1][0]
        for number, digests in page:
            seq = number - first
            if seq != run_list.entries + 1:
                yield Finding(
                    "records", told[-1].seq, f"run {run_id}: the list of its case entries has a hole at {seq}"
                )
            run_list.resume([digests])
            while due and due[0].entries <= run_list.entries:
                yield from _judge(run_id, run_list, due.pop(0))
        yield from _lines(store, run_id, first, page, removals)
        advance(sum(len(digests) for _, digests in page) // lists.DIGEST_BYTES)
    if due or told[-1].final:
        yield from _unlisted(store, run_id, first, beyond, run_list, due)
    yield from _rejected(store, run_id, start_seq, told[-1])


def _judge(run_id: str, run_list: lists.RunList, telling: Telling) -> Iterator[Finding]:
    """Compare the list as of so many entries with what was told. In the middle of a piece it cannot be had."""
    if run_list.entries == telling.entries and run_list.sha256() != telling.list_sha256:
        text = f"run {run_id}: the list of its case entries is not the one that entry {telling.seq} names"
        yield Finding("records", telling.seq, text)


def _unlisted(
    store: ReadOnlyStore, run_id: str, first: int, beyond: int, run_list: lists.RunList, due: list[Telling]
) -> Iterator[Finding]:
    """Judge what is in no list: while a run lives, the records of a group that is not complete."""
    final = not due or due[-1].final
    lines = [line for _, _, _, line in store.unjudged("item_lines", after=first + run_list.entries, beyond=beyond)]
    for telling in due:
        grown = run_list.copy()
        grown.extend(lines[: telling.entries - run_list.entries])
        if final or grown.entries != telling.entries:
            listed = f"{run_list.entries if final else grown.entries} are listed"
            counts = f"entry {telling.seq} counts {telling.entries} case entries, and {listed}"
            yield Finding("records", telling.seq, f"run {run_id}: {counts}")
        yield from _judge(run_id, grown, telling)
    if final and not due:
        for at in range(len(lines)):
            seq = run_list.entries + at + 1
            yield Finding("records", None, f"run {run_id}: case entry {seq} is in no list: put in")


def _lines(
    store: ReadOnlyStore,
    run_id: str,
    first: int,
    page: list[tuple[int, bytes]],
    removals: Removals,
) -> Iterator[Finding]:
    """Compare record lines with their digests; a record that was lawfully removed has none."""
    after, last = page[0][0] - 1, page[-1][0] + len(page[-1][1]) // lists.DIGEST_BYTES
    found = store.unjudged("item_lines", after=after, beyond=last)
    expected = b"".join(digests for _, digests in page)
    if b"".join([sha256(line).digest() for _, _, _, line in found]) == expected:
        yield from _misfiled(run_id, first, found)
        return
    lines = {number: line for number, _, _, line in found}
    for number, digests in page:
        for at in range(len(digests) // lists.DIGEST_BYTES):
            seq = number + at - first
            line = lines.pop(number + at, None)
            digest = digests[at * lists.DIGEST_BYTES : (at + 1) * lists.DIGEST_BYTES]
            if line is None:
                if removals.of(number + at, digest) is None:
                    yield Finding(
                        "records", None, f"run {run_id}: case entry {seq} is missing, and no entry removed it"
                    )
            elif sha256(line).digest() != digest:
                yield Finding("records", None, f"run {run_id}: case entry {seq} was changed after it was written")
    for number in lines:
        yield Finding("records", None, f"run {run_id}: case entry {number - first} is in no list: put in")
    yield from _misfiled(run_id, first, found)


def _misfiled(run_id: str, first: int, found: list[tuple[int, str, str, bytes]]) -> Iterator[Finding]:
    """Yield records that the tables file under another case, or another word, than they say."""
    for number, case, said, line in found:
        if case.encode() in line and b'"%s"' % said.encode() in line:
            continue
        item = _parsed(line)
        word = item.get("result") if item.get("phase") == "result" else item.get("phase")
        if (item.get("case"), word) != (case, said):
            yield Finding("records", None, f"run {run_id}: case entry {number - first} is filed as another than it is")


def _parsed(line: bytes) -> dict[str, Any]:
    """Return what a record says; nothing where it cannot be read any more."""
    try:
        found = json.loads(lists.item_of(line))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _rejected(store: ReadOnlyStore, run_id: str, start_seq: int, last: Telling) -> Iterator[Finding]:
    if not last.final:
        return
    pieces = [(each.sha256, each.file_offset) for each in items.rejects(store, start_seq)]
    found = sha256(lists.reject_list(pieces)).hexdigest() if pieces else None
    if found != last.rejected_sha256:
        yield Finding(
            "records", last.seq, f"run {run_id}: its rejected lines are not those that entry {last.seq} names"
        )
