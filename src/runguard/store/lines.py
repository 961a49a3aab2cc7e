"""Ledger lines: what is written down, byte for byte, and how one line names the line before it.

An entry is one line of ASCII JSON and a newline. `prev` is the SHA-256 of the previous line with its newline; the
first entry's is 64 zeros. What was hashed is what is stored: no line is ever spelled anew.
"""

from __future__ import annotations

import sys
from _json import encode_basestring_ascii, make_encoder

from runguard import instant
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:  # hashlib loads OpenSSL (2 ms); these are the same function without it
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:  # an interpreter built without its own hashes
        from hashlib import sha256

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

VERSION = 1
CHECKPOINT_EVERY_US = instant.DAY_S * instant.SECOND_US
CHECKPOINT_ENTRIES = 10_000
FIRST_PREV = "0" * 64
KINDS = (
    "job.changed",
    "run.start",
    "run.finish",
    "run.refused",
    "window.waived",
    "clock",
    "restart",
    "checkpoint",
    "correction",
    "hold",
    "release",
    "redact",
    "prune",
    "access",
    "defect",
    "items",
    "recovery",
)
# What every entry says besides the fields of its kind.
HEADER = ("v", "seq", "prev", "kind", "at", "host", "actor", "version")


class Author(NamedTuple):
    """Who writes: on every entry."""

    host: str
    actor: dict[str, Any]  # uid, user, login, sudo_user; None where not known
    version: str  # of runguard


def entry(seq: int, prev: str, kind: str, at_us: int, author: Author, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the line `seq` says, its keys in the order in which they are written.

    Raises ValueError where `fields` claims a key of the header.
    """
    header = {"v": VERSION, "seq": seq, "prev": prev}
    return header | _signed(kind, at_us, author, fields)


def unnumbered(kind: str, at_us: int, author: Author, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same without `seq` and `prev`: what the journal keeps until the ledger can be written."""
    return {"v": VERSION} | _signed(kind, at_us, author, fields)


def encode(value: Mapping[str, Any]) -> bytes:
    """Return the value as one line of ASCII JSON with its newline.

    A byte that was no UTF-8 (a lone surrogate) becomes `\\udcXX`. Raises TypeError or ValueError for what JSON has no
    word for: bytes, NaN.
    """
    return ("".join(_encoder(value, 0)) + "\n").encode("ascii")


def digest(line: bytes) -> str:
    """Return the SHA-256 of a line, newline included, in hex."""
    return sha256(line).hexdigest()


def parse(line: bytes) -> dict[str, Any]:
    """Return what a line says. Raises ValueError where it is not one whole JSON object and a newline."""
    import json  # only for reading: never before a healthy start

    if not line.endswith(b"\n"):
        raise ValueError("the line is cut short")
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("the line is no object")
    return found


def _signed(kind: str, at_us: int, author: Author, fields: Mapping[str, Any]) -> dict[str, Any]:
    for key in HEADER:
        if key in fields:
            raise ValueError(f"{kind}: the field {key!r} belongs to every entry")
    said = {
        "kind": kind,
        "at": instant.rfc3339(at_us),
        "host": author.host,
        "actor": author.actor,
        "version": author.version,
    }
    return said | dict(fields)


def _no_word(value: object) -> NoReturn:
    raise TypeError(f"a ledger line cannot hold {type(value).__name__}")


# The encoder behind json.dumps, taken without json (which imports re): compact, keys as they come, no NaN.
_encoder = make_encoder(None, _no_word, encode_basestring_ascii, None, ":", ",", False, False, False)
