"""A unified diff of two tables with the same number of lines, which `patch` takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

CONTEXT = 3
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def unified(before: Sequence[bytes], after: Sequence[bytes], label: str) -> Iterator[bytes]:
    """Yield the pieces of the diff, nothing where the tables are equal."""
    changed = [at for at, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    if not changed:
        return
    name = label.encode("utf-8", "surrogateescape")
    yield b"--- " + name + b"\n+++ " + name + b"\n"
    start = changed[0]
    for at, following in zip(changed, [*changed[1:], None], strict=True):
        if following is None or following - at > 2 * CONTEXT:
            yield from _hunk(before, after, max(start - CONTEXT, 0), min(at + CONTEXT + 1, len(before)))
            start = following if following is not None else at


def _hunk(before: Sequence[bytes], after: Sequence[bytes], first: int, last: int) -> Iterator[bytes]:
    span = b"%d,%d" % (first + 1, last - first)
    yield b"@@ -" + span + b" +" + span + b" @@\n"
    at = first
    while at < last:
        if before[at] == after[at]:
            yield b" " + _whole(before[at])
            at += 1
            continue
        end = at
        while end < last and before[end] != after[end]:
            end += 1
        yield from (b"-" + _whole(line) for line in before[at:end])
        yield from (b"+" + _whole(line) for line in after[at:end])
        at = end


def _whole(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + _NO_NEWLINE
