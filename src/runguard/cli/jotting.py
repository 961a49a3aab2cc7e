"""`item` read with the standard library: a shell job calls it for every case, and click alone would take 50 ms.

Anything that it does not recognise is click's to read (cli/item.py), which does the same with it.
"""

from __future__ import annotations

from runguard import items
from runguard.errors import NoTraceError, UsageError
from runguard.store import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PHASES = ("intent", "result", "note")
RESULTS = ("done", "no_action", "failed", "skipped")
# Options with a text, in the order of help and entry; the last can be given several times.
TEXTS = ("phase", "action", "result", "key", "rule", "reason", "field")


def read(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return case and options of `item CASE [OPTIONS]`, or None where click has to look."""
    found: dict[str, Any] = {"case": None, "field": []}
    at = 0
    while at < len(arguments):
        word, at = arguments[at], at + 1
        name, equals, text = word[2:].partition("=") if word.startswith("--") else ("", "", word)
        if not name:
            if word.startswith("-") or found["case"] is not None:
                return None
            found["case"] = word
            continue
        if name not in TEXTS or (not equals and at == len(arguments)):
            return None
        if not equals:
            text, at = arguments[at], at + 1
        if name == "field":
            found["field"].append(text)
        else:
            found[name] = text
    return found if found["case"] is not None else None


def append(given: Mapping[str, Any], environ: Mapping[str, str]) -> int:
    """Append the entry that was asked for. Raises UsageError, and NoTraceError where it cannot be written."""
    refuse_outside(environ)
    line = lines.encode(_entry(given))[:-1]
    if len(line) > items.MOST_LINE_BYTES:
        raise UsageError(f"item: the entry is {len(line)} bytes long: at most {items.MOST_LINE_BYTES}")
    write(line)
    return 0


def write(line: bytes, *, first: bool = False) -> None:
    """Append one line. Raises NoTraceError where it is not whole on file."""
    try:
        items.write(line, first=first)
    except OSError as error:
        raise NoTraceError(f"item: {error.filename}: {error.strerror}; the entry is not on record") from error


def refuse_outside(environ: Mapping[str, str]) -> None:
    """Raise UsageError where this is no command of `runguard run`."""
    if not environ.get("RUNGUARD_ITEMS"):
        hint = "start the job through runguard run -- COMMAND, which sets RUNGUARD_ITEMS"
        raise UsageError(f"item: case entries belong to a run: {hint}")


def _entry(given: Mapping[str, Any]) -> dict[str, Any]:
    phase, result = given.get("phase"), given.get("result")
    if phase is None:
        raise UsageError(f"item: --phase is missing ({', '.join(PHASES)})")
    _one_of("phase", phase, PHASES)
    if phase == "result" and result is None:
        raise UsageError(f"item: --result is missing ({', '.join(RESULTS)})")
    if phase != "result" and result is not None:
        raise UsageError(f"item: --result goes with --phase result, not with {phase}")
    if result is not None:
        _one_of("result", result, RESULTS)
    if given.get("action") is None:
        raise UsageError("item: --action is missing: what is done to the case, in a word")
    for name in ("case", "action", "key"):
        if given.get(name) is not None:
            try:
                items.check(name, given[name])
            except ValueError as error:
                raise UsageError(f"item: {error}") from None
    entry = {"case": given["case"], "phase": phase}
    entry |= {name: given[name] for name in ("key", "action", "result") if given.get(name) is not None}
    entry["at"] = items.now()
    if given.get("rule") is not None:
        entry["rule"] = {"id": given["rule"]}
    if given.get("reason") is not None:
        entry["reason"] = given["reason"]
    for text in given.get("field") or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"item: --field {text!r}: is not NAME=TEXT")
        if name in entry:
            raise UsageError(f"item: --field {name}: the entry has that already")
        entry[name] = value
    return entry


def _one_of(name: str, text: str, choices: Sequence[str]) -> None:
    if text not in choices:
        from runguard import values

        try:
            values.one_of(text, choices)
        except ValueError as error:
            raise UsageError(f"item: --{name}: {error}") from None
