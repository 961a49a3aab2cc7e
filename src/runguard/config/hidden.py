"""Addresses in a configuration file are secrets: its cache tells where in the file each one stands, and not what it is.

In a cached parse an address is a tuple (offset, length, hash of its bytes). TOML itself has no tuples.
"""

from __future__ import annotations

from runguard.store.lines import digest

_KEYS = ("ping", "ping_success_url", "ping_start_url", "ping_fail_url", "store")
_LEFT_OUT = ("ping_api_key", "ping_api_url")  # of which no run has need


def hide(data: dict[str, object], content: bytes) -> dict[str, object]:
    """Return a parse of `content` without its addresses.

    Raises LookupError where one does not stand there letter by letter, but with escapes: then it cannot be found again.
    """
    hidden: dict[str, object] = {}
    for key, value in data.items():
        if key in _LEFT_OUT and isinstance(value, str):
            continue
        if isinstance(value, dict):
            value = hide(value, content)
        elif key in _KEYS and isinstance(value, str) and "://" in value:
            text = value.encode()
            at = content.find(text)
            if at < 0:
                raise LookupError(key)
            value = (at, len(text), digest(text))
        hidden[key] = value
    return hidden


def reveal(data: dict[str, object], content: bytes) -> tuple[dict[str, object], bool]:
    """Return a parse with its addresses, and whether all are still in `content`; the others are left out.

    In a file that was changed meanwhile they are looked for between quotes.
    """
    return _reveal(data, content, [])


def _reveal(data: dict[str, object], content: bytes, quoted: list[dict[str, bytes]]) -> tuple[dict[str, object], bool]:
    revealed: dict[str, object] = {}
    whole = True
    for key, value in data.items():
        if isinstance(value, dict):
            value, complete = _reveal(value, content, quoted)
            whole = whole and complete
        elif isinstance(value, tuple):
            at, length, hashed = value
            text = content[at : at + length]
            if digest(text) != hashed:
                if not quoted:
                    pieces = content.replace(b"'", b'"').split(b'"')
                    quoted.append({digest(piece): piece for piece in pieces if b"://" in piece})
                found = quoted[0].get(hashed)
                if found is None:
                    whole = False
                    continue
                text = found
            value = text.decode()
        revealed[key] = value
    return revealed, whole
