"""What was kept of a run's output, in the order in which it came, for `show`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from runguard.cli.output import Row
from runguard.cli.spans import local
from runguard.guard import frames, liveness
from runguard.instant import rfc3339
from runguard.printable import line as safe
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Run

NAMES = {1: "stdout", 2: "stderr"}
BOTH = "stdout+stderr"  # they were one pipe
FIELDS = ("at", "after_s", "stream", "omitted_bytes", "text")  # of CSV


class Transcript(NamedTuple):
    """The frames that are kept of one stream or of both."""

    head: list[frames.Frame]
    tail: list[frames.Frame]
    omitted_bytes: int  # between head and tail
    merged: bool  # both streams were one pipe, and what is theirs cannot be told apart
    started_us: int


def read(records: ReadOnlyStore, run: Run, life: liveness.Life | None, streams: Collection[int]) -> Transcript | None:
    """Return what is kept of these streams, of a living run so far, or None where there is no output on record.

    Of a merged run it is always both.
    """
    kept = records.output(run.run_id)
    entries = records.entries(run.run_id)
    told: Mapping[str, Any] = next((entry["output"] for entry in entries if entry.get("output")), {})
    left = life.left if life is not None else None
    if kept is None and left is not None:
        kept = left.head, left.tail
        told = {
            "merged": left.merged,
            "omitted_bytes": left.omitted_bytes,
            **_by_stream((left.stdout_bytes, left.stderr_bytes), kept),
        }
    if kept is None:
        return None
    merged = bool(told.get("merged"))
    wanted = NAMES if merged else streams
    head, tail = ([each for each in frames.decode(part, torn=True) if each.stream in wanted] for part in kept)
    return Transcript(head, tail, _omitted_bytes(told, wanted), merged, run.started_us)


def marker(transcript: Transcript) -> str:
    """Return the words for what is missing between head and tail, or "" where nothing is."""
    count = transcript.omitted_bytes
    return f"{count} bytes between the beginning and the end were not kept" if count else ""


def rows(transcript: Transcript) -> Iterator[Row]:
    """Yield the frames as objects, and one without a stream in the place of what was not kept."""
    for part, missing in ((transcript.head, transcript.omitted_bytes), (transcript.tail, 0)):
        for frame in part:
            at = rfc3339(_at_us(transcript, frame))
            text = bytes(frame.data).decode("utf-8", "surrogateescape")
            yield Row(_facts(at, frame.at_ms / 1000, _name(transcript, frame), 0, text), ())
        if missing:
            yield Row(_facts(None, None, None, missing, None), ())


def lines(transcript: Transcript) -> Iterator[str]:
    """Yield each line with its time and stream, safe to print. `stdout+` goes on with a line that was begun before."""
    begun: set[int] = set()
    for part in (transcript.head, transcript.tail):
        for frame in part:
            at = local(_at_us(transcript, frame), timespec="milliseconds")
            name = _name(transcript, frame)
            *whole, rest = bytes(frame.data).decode("utf-8", "surrogateescape").split("\n")
            for text in [*whole, rest] if rest else whole:
                yield f"{at}  {name}{'+' if frame.stream in begun else ' '} {safe(text)}"
                begun.discard(frame.stream)
            if rest:
                begun.add(frame.stream)
        if part is transcript.head and (missing := marker(transcript)):
            yield f"[{missing}]"
            begun.clear()


def _omitted_bytes(told: Mapping[str, Any], streams: Collection[int]) -> int:
    """Return how many bytes of these streams lie between head and tail, as far as the record tells them apart."""
    whole = int(told.get("omitted_bytes") or 0)
    each = [(told.get(NAMES[stream]) or {}).get("omitted_bytes") for stream in streams]
    return min(whole, sum(whole if count is None else int(count) for count in each))


def _by_stream(counts: Sequence[int], kept: Iterable[bytes]) -> dict[str, Any]:
    omitted = frames.omitted_bytes(counts, kept)
    return {NAMES[stream]: {"omitted_bytes": omitted[stream - 1]} for stream in NAMES}


def _at_us(transcript: Transcript, frame: frames.Frame) -> int:
    return transcript.started_us + frame.at_ms * 1000


def _name(transcript: Transcript, frame: frames.Frame) -> str:
    return BOTH if transcript.merged else NAMES[frame.stream]


def _facts(at: str | None, after_s: float | None, stream: str | None, omitted: int, text: str | None) -> dict[str, Any]:
    return dict(zip(FIELDS, (at, after_s, stream, omitted, text), strict=True))
