"""Whether rows hold what their columns can hold: in a corrupt file a number may have become a text, or nothing.

For queries, which show what they find. A start does without: whatever it trips over sends the record to the journal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_INTEGERS = frozenset((
    "seq", "n", "number", "revision", "attempt", "exit_status", "returned", "signal",
    "guard_pid", "covers_count", "withdrawn", "http_status", "tries", "id", "file_offset", "size_bytes", "lines",
    "shift", "entries", "cases", "done", "no_action", "failed", "skipped", "unannounced", "rejected", "expected",
    "beyond_bytes", "told", "complete", "problems", "first_number", "last_number",
))  # fmt: skip
_BYTES = frozenset(("line", "head", "tail", "digests", "secret"))
_NEVER_NULL = frozenset((
    "seq", "start_seq", "run_id", "number", "job", "trigger", "outcome", "started_us", "host", "line", "head", "tail",
    "after_us", "opened_us", "at_us", "withdrawn", "event", "style", "target", "verdict", "tries",
))  # fmt: skip


def flaw(columns: Sequence[str], rows: Iterable[Sequence[Any]], sound: set[tuple[type, ...]]) -> str:
    """Return which column of which row holds what it cannot, as a clause, or "".

    `sound` is what was found in order before, for the same columns. Columns that are expressions are not judged.
    """
    for row in rows:
        shape = tuple(map(type, row))
        if shape in sound:
            continue
        for column, kind, value in zip(columns, shape, row, strict=True):
            if not _fits(column, kind):
                return f"{column} holds {value!r:.40}"
        sound.add(shape)
    return ""


def _fits(column: str, kind: type) -> bool:
    if not column.isidentifier():
        return True
    if kind is type(None):
        return column not in _NEVER_NULL
    if column.endswith(("_us", "_seq")) or column in _INTEGERS:
        return kind is int
    return kind is (bytes if column in _BYTES else str)
