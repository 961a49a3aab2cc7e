"""What an HTTP answer says beside its status: numbers in its headers, and the first line of its text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN = 60  # characters


def body_limit(headers: Mapping[str, str]) -> int | None:
    """Return the bytes of a body that the server takes, or None where it does not say."""
    return _number(headers.get("Ping-Body-Limit"))


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait, 0 if none; a date counts from the server's own."""
    from email.utils import parsedate_to_datetime

    text = headers.get("Retry-After")
    seconds = _number(text)
    if text is None or seconds is not None:
        return float(seconds or 0)
    try:
        return (parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("Date", ""))).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def first_line(answer: bytes) -> str:
    """Return the first line of an answer, cut to 60 characters that are safe on a terminal."""
    line = answer.strip().partition(b"\n")[0][:_SHOWN].decode("ascii", "replace")
    return "".join(character for character in line if " " <= character < "\x7f")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None
