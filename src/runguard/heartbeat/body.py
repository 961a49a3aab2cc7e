"""The text that a ping carries: one line that sums up the run, then the end of its output.

Cleaned, then redacted, then cut, in this order: an escape sequence inside a secret must not hide it, and half a secret
is still one. A body that is cut inside a character is answered 500 by monitors that filter bodies, and lost.
"""

from __future__ import annotations

from runguard.heartbeat.redact import mask_text
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_BYTES = 10_000

# Left out: C0 but tab and newline, DEL, C1, and the marks that reorder text on a screen.
_REMOVED = dict.fromkeys(
    (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)


class Body(NamedTuple):
    """A body before it is cut to what a server takes; both texts are masked and clean."""

    summary: str = ""
    tail: str = ""
    omitted_bytes: int = 0  # of output before `tail`


EMPTY = Body()


def summary(
    *,
    outcome: str,
    exit_status: int | None,
    signal: int | None = None,
    duration_s: float | None = None,
    label: str | None = None,
    host: str,
    run_id: str,
    ledger: tuple[int, str] | None = None,
) -> str:
    """Return the line that sums up a run; `label` is its window's, `ledger` the head (seq, hash) after its finish.

    `failed, exit 3, 12.4 s, window 2024-03-10T03:00-04:00, host db1, run 0190…, ledger 4711:9f86…`
    """
    parts = [outcome]
    if signal is not None:
        parts.append(f"signal {signal}")
    elif exit_status is not None:
        parts.append(f"exit {exit_status}")
    if duration_s is not None:
        parts.append(f"{duration_s:.1f} s")
    if label is not None:
        parts.append(f"window {label}")
    parts += [f"host {host}", f"run {run_id}"]
    if ledger is not None:
        parts.append(f"ledger {ledger[0]}:{ledger[1]}")
    return clean(", ".join(parts).encode("utf-8", "surrogateescape")).replace("\n", " ")


def compose(
    summary: str,
    output: bytes = b"",
    *,
    omitted_bytes: int = 0,
    secrets: Iterable[str] = (),
    patterns: Iterable[str] = (),
) -> Body:
    """Return the body of a ping: `output` is the end of a run's output, before which `omitted_bytes` were not kept.

    Where output is missing before it, its first line may be half a line with half a secret in it, and is left out.
    """
    secrets = tuple(secrets)
    if omitted_bytes:
        torn = _torn_bytes(output, secrets)
        output, omitted_bytes = output[torn:], omitted_bytes + torn
    text = mask_text(_clean_text(output.decode("utf-8", "surrogateescape")), secrets, patterns)
    tail = _valid(text).strip("\n")
    kept = _end_of(tail.encode(), MOST_BYTES)
    return Body(_valid(mask_text(summary, secrets)), kept.decode(), omitted_bytes + len(tail.encode()) - len(kept))


def fit(body: Body, limit: int = MOST_BYTES) -> bytes:
    """Return `body` as at most `limit` bytes (never more than MOST_BYTES) of valid UTF-8.

    The summary comes first; the output is cut at its start, at a line if one begins near there, and a marker says how
    many bytes are missing.
    """
    limit = max(0, min(limit, MOST_BYTES))
    first = body.summary.encode()
    tail = body.tail.encode()
    if len(first) > limit:
        return first[:limit].decode("utf-8", "ignore").encode()
    whole = b"\n".join(part for part in (first, _marker(body.omitted_bytes), tail) if part)
    if len(whole) <= limit:
        return whole
    room = limit - len(first) - 2 - len(_marker(body.omitted_bytes + len(tail)))
    kept = _end_of(tail, max(0, room))
    marker = _marker(body.omitted_bytes + len(tail) - len(kept))
    cut = b"\n".join(part for part in (first, marker, kept) if part)
    return cut if len(cut) <= limit else first


def clean(data: bytes) -> str:
    """Return the text of `data` without escape sequences, control characters but tab and newline, and invalid bytes."""
    return _valid(_clean_text(data.decode("utf-8", "surrogateescape")))


def _clean_text(text: str) -> str:
    if "\x1b" in text or "\x9b" in text:
        text = _without_escapes(text)
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_REMOVED)


def _without_escapes(text: str) -> str:
    import re  # only where there are escapes, and after the command's end

    control_sequence = r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]?"
    string = r"\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?"  # OSC, DCS and the like, on one line
    return re.sub(rf"{control_sequence}|{string}|\x1b[ -~]?", "", text)


def _valid(text: str) -> str:
    """Return `text` with every byte that was no UTF-8 as U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _torn_bytes(output: bytes, secrets: tuple[str, ...]) -> int:
    """Return how many bytes at the start of `output` may belong to something that began before it."""
    end_of_line = output.find(b"\n", 0, MOST_BYTES)
    if end_of_line >= 0:
        return end_of_line + 1
    longest = max((len(secret.encode("utf-8", "surrogateescape")) for secret in secrets), default=0)
    return min(len(output), max(longest, 256))


def _end_of(tail: bytes, limit: int) -> bytes:
    """Return the end of `tail`, at most `limit` bytes: from a line's start if that keeps half of it."""
    if len(tail) <= limit:
        return tail
    start = len(tail) - limit
    line = tail.find(b"\n", start - 1, start + limit // 2)
    if line >= 0:
        return tail[line + 1 :]
    return tail[start:].decode("utf-8", "ignore").encode()


def _marker(omitted_bytes: int) -> bytes:
    return f"[{omitted_bytes} bytes left out]".encode() if omitted_bytes else b""
