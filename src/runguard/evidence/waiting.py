"""What a job has said of a case that is not on record yet: it waits in the file of a run, or as no entry at all.

A guard that was killed has not taken in its command's last lines, and the next start of the job will. Until then they
are told from the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from runguard.errors import reason
from runguard.evidence import entries
from runguard.evidence.ran import Moment
from runguard.evidence.tail import Tail
from runguard.evidence.touches import Said
from runguard.instant import rfc3339
from runguard.store import items
from runguard.store.items import Reject
from runguard.store.reads import Reader, Run

_ENDS = (".items", ".items.over")  # the file of a run; what was over a limit stays under another name
_MOST_BYTES = 64 << 20  # of one file
_MOST_PIECES = 50_000
_PAGE = 500
_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Waiting(NamedTuple):
    """What a file that is not on record holds of a case. `torn`: lines that name it and are no entries."""

    run_id: str
    path: str
    said: list[tuple[int, Said]]  # each with the offset that it is to have on record
    torn: int
    unread_bytes: int


def in_files(reader: Reader, case: str, runs: str) -> tuple[list[Waiting], list[str]]:
    """Return what waits in the directory `runs`, and what cannot be read of it, in sentences."""
    try:
        names = sorted(os.listdir(runs))
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"{runs}: {reason(error)}: what jobs have said that is not on record yet cannot be seen"]
    found, unread = [], []
    for name in names:
        if name.endswith(_ENDS):
            path = os.path.join(runs, name)
            try:
                found.append(_in_file(reader, case, path, name.partition(".")[0]))
            except FileNotFoundError:
                continue  # taken in meanwhile
            except OSError as error:
                unread.append(f"{path}: {reason(error)}: what it says is not on record, and cannot be seen")
    return [each for each in found if each.said or each.torn or each.unread_bytes], unread


def rejected(reader: Reader, case: str, moment: Moment) -> list[dict[str, Any]]:
    """Return the rejected pieces of all runs whose beginning names the case, by the JSON contract."""
    found = []
    for start_seq, piece in _pieces(reader):
        if names(piece.head, case) and (not moment.past or piece.received_us <= moment.at_us):
            rows = reader.rows("run_at", seq=start_seq)
            run = Run(*rows[0]) if rows else None
            found.append(
                {
                    "run": run.number if run else None,
                    "run_id": run.run_id if run else None,
                    "job": run.job if run else None,
                    "offset": piece.file_offset,
                    "bytes": piece.size_bytes,
                    "sha256": piece.sha256,
                    "why": piece.why,
                    "received_at": rfc3339(piece.received_us),
                }
            )
    return found


def _pieces(reader: Reader) -> Iterator[tuple[int, Reject]]:
    """Yield the rejected pieces of all runs with the entries that started these, as many as can be looked at."""
    start_seq, after = 0, -1
    for _ in range(_MOST_PIECES // _PAGE):
        page = reader.rows("rejected_anywhere", start_seq=start_seq, after=after, page=_PAGE)
        for row in page:
            yield row[0], Reject(*row[1:])
        if len(page) < _PAGE:
            return
        start_seq, after = page[-1][:2]


def names(data: bytes, case: str) -> bool:
    """Return whether bytes that are no entry seem to name a case: it stands there as a word, plain or as JSON."""
    return any(_as_a_word(data, needle) for needle in _spelled(case))


def _in_file(reader: Reader, case: str, path: str, run_id: str) -> Waiting:
    run = reader.run(run_id)
    progress = items.progress(reader, run.start_seq) if run is not None else None
    offset = progress.file_offset - progress.shift if progress is not None else 0
    shift = progress.shift if progress is not None else 0
    needles = _spelled(case)
    said: list[tuple[int, Said]] = []
    torn = 0
    tail = Tail(path)
    try:
        size, until = offset, offset + _MOST_BYTES
        while offset < until:
            look = tail.look(offset, last=True)
            size = look.size_bytes
            for line in look.lines:
                offset = line.offset + line.size_bytes
                data = line.data if line.data is not None else line.head
                if any(needle in data for needle in needles):
                    found = _judged(data, case)
                    said += [(shift + line.offset, found)] if found is not None else []
                    torn += found is None and names(data, case)
            if not look.more:
                break
    finally:
        tail.close()
    return Waiting(run_id, path, said, torn, max(size - offset, 0))


def _judged(line: bytes, case: str) -> Said | None:
    try:
        entry = entries.judge(line)
    except entries.Rejected:
        return None
    item: dict[str, Any] = json.loads(line)
    return Said(None, entry.said, item, None, None) if entry.case == case else None


def _spelled(case: str) -> set[bytes]:
    """Return how a case may stand in a line of JSON: as it is, or with escapes."""
    return {json.dumps(case)[1:-1].encode(), json.dumps(case, ensure_ascii=False)[1:-1].encode()}


def _as_a_word(data: bytes, needle: bytes) -> bool:
    at = data.find(needle)
    while at >= 0:
        before, after = data[at - 1 : at], data[at + len(needle) : at + len(needle) + 1]
        if not (before and before[0] in _WORD) and not (after and after[0] in _WORD):
            return True
        at = data.find(needle, at + 1)
    return False
