"""Case entries: one line of a job, judged.

A job appends lines of JSON to the file `$RUNGUARD_ITEMS`. Each is one object: `case` (an opaque id), `phase` intent,
result or note, `action`, for a result its `result`, perhaps a `key` that ties a result to its intent, and whatever else
the job knows. The very first line may be `{"expected": N}` instead. The bytes are kept as they are: what is judged here
is only whether they can be read later, by anybody and in one way only.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

PHASES = ("intent", "result", "note")
RESULTS = ("done", "no_action", "failed", "skipped")
# What an entry says, in one word: the result of a result, else its phase.
SAID = ("intent", "note", *RESULTS)

MOST_LINE_BYTES = 64 << 10  # without the newline
MOST_CHARACTERS = 200  # of a case and of a key
MOST_LEVELS = 100  # of objects and lists in one another
MOST_EXPECTED = 10**9

_AT = "it is no JSON"


class Rejected(ValueError):
    """The line is no entry: the text is a clause that says why."""


class Entry(NamedTuple):
    """One entry: `said` is of SAID, `key` "" where there is none, `personal` what its case or reason looks like."""

    case: str
    said: str
    key: str
    action: str
    personal: str


def judge(line: bytes) -> Entry:
    """Return what the line, without its newline, says. Raises Rejected."""
    fields = parse(line)
    case = _text(fields, "case", most=MOST_CHARACTERS)
    phase = _text(fields, "phase")
    if phase not in PHASES:
        raise Rejected(f"phase is {_shown(phase)}, not one of {', '.join(PHASES)}")
    action = _text(fields, "action")
    said = phase
    if phase == "result":
        said = _text(fields, "result")
        if said not in RESULTS:
            raise Rejected(f"result is {_shown(said)}, not one of {', '.join(RESULTS)}")
    key = "" if fields.get("key") is None else _text(fields, "key", most=MOST_CHARACTERS)
    reason = fields.get("reason")
    looks = personal(case) or (personal(reason) if type(reason) is str else "")
    return Entry(case, said, key, action, looks)


def expected(line: bytes) -> int | None:
    """Return N where the line is `{"expected": N}` and says nothing else, or None. Raises Rejected for another N."""
    if b'"expected"' not in line:
        return None
    fields = parse(line)
    if list(fields) != ["expected"]:
        return None
    number = fields["expected"]
    if type(number) is not int or not 0 <= number <= MOST_EXPECTED:
        raise Rejected(f"expected is {_shown(number)}, not a number from 0 to {MOST_EXPECTED}")
    return number


def parse(line: bytes) -> dict[str, Any]:
    """Return the one object that the line is. Raises Rejected.

    Strict UTF-8 without a byte order mark, no key twice in an object, no NaN or Infinity, no number beyond a double.
    """
    if len(line) > MOST_LINE_BYTES:
        raise Rejected(too_long(len(line)))
    try:
        found = _decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Rejected(f"it is no UTF-8 (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        raise Rejected(f"{_AT}: {error.msg} (character {error.pos + 1})") from None
    except RecursionError:
        raise Rejected(f"it is nested deeper than {MOST_LEVELS} levels") from None
    except Rejected:
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise Rejected(f"{_AT}: {error}") from None
    if type(found) is not dict:
        raise Rejected(f"it is {_kind(found)}, not an object")
    if line.count(b"{") + line.count(b"[") > MOST_LEVELS and _levels(found) > MOST_LEVELS:
        raise Rejected(f"it is nested deeper than {MOST_LEVELS} levels")
    return found


def too_long(size_bytes: int) -> str:
    """Return why a line of that size is no entry."""
    return f"it is {size_bytes} bytes long, more than {MOST_LINE_BYTES}"


# What identifies a person does not belong into a record that is kept for years. Best effort, for a warning.
_EMAIL = re.compile(r"[^\s@<>\"']+@[^\s@<>\"']+\.[A-Za-z]{2,}")
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+\d{1,3}[ -]?(?:\(0\)[ -]?)?|\(?0)[1-9]\d{1,4}\)?[ -]?\d{3,4}[ -]?\d{3,4}(?![\w-])"
)
# https://www.gov.uk/hmrc-internal-manuals/national-insurance-manual/nim39110
_INSURANCE = re.compile(
    r"(?<!\w)(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D](?!\w)", re.IGNORECASE
)


def personal(text: str) -> str:
    """Return what the text seems to hold: an e-mail address, a phone or a national insurance number, or ""."""
    if "@" in text and _EMAIL.search(text):
        return "an e-mail address"
    if ("0" in text or "+" in text) and _PHONE.search(text):
        return "a phone number"
    if _INSURANCE.search(text):
        return "a national insurance number"
    return ""


def _text(fields: dict[str, Any], name: str, most: int = MOST_LINE_BYTES) -> str:
    value = fields.get(name)
    if type(value) is not str:
        raise Rejected(f"{name} is missing" if name not in fields else f"{name} is {_kind(value)}, not a text")
    if not value or value.isspace():
        raise Rejected(f"{name} is empty")
    if len(value) > most:
        raise Rejected(f"{name} is {len(value)} characters long, more than {most}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise Rejected(f"{name} holds half of a surrogate pair")
    if "\0" in value:
        raise Rejected(f"{name} holds a NUL")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Rejected(f"the key {_shown(twice)} stands in one object twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise Rejected(f"{name} is no number in JSON")


def _double(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Rejected("a number is too large")
    return number


_decode = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_double).decode


def _levels(value: object) -> int:
    """Return how many objects and lists stand in one another."""
    levels = 0
    inner = [value]
    while inner:
        levels += 1
        inner = [
            part
            for outer in inner
            for part in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(part, (dict, list))
        ]
    return levels


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number"}
    return names[type(value)]


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text) if len(text) <= 60 else repr(text[:60]) + "…"
