"""What a job said of a case, put together: an intent, its result and the notes between them are one touch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from runguard.evidence.entries import RESULTS

UNCERTAIN = "uncertain"  # an intent without a result
NOTED = "note"  # nothing but notes
REMOVED = "removed"  # its records were lawfully erased
STATES = (*RESULTS, UNCERTAIN, NOTED, REMOVED)

# What the protocol names; all else is the job's own.
ABOUT = ("rule", "reason", "inputs", "before", "after", "sent", "basis", "legal", "link")
_FRAME = ("case", "phase", "action", "result", "key", "at")


class Said(NamedTuple):
    """One case entry as a job wrote it. `record` is its number in the run, None while it is not on record."""

    record: int | None
    said: str  # of entries.SAID
    item: dict[str, Any]
    received_at: str | None  # by runguard
    sha256: str | None  # of the record line

    @property
    def at(self) -> str | None:
        """When the job says it wrote this, in its own words."""
        at = self.item.get("at")
        return at if isinstance(at, str) else None

    def facts(self) -> dict[str, Any]:
        """Return the entry by the JSON contract."""
        return {
            "record": self.record,
            "said": self.said,
            "at": self.at,
            "received_at": self.received_at,
            "sha256": self.sha256,
            "item": self.item,
        }


class Touch(NamedTuple):
    """What one run did with a case, once: `state` is of STATES."""

    state: str
    said: tuple[Said, ...]

    def facts(self) -> dict[str, Any]:
        """Return the touch by the JSON contract: each field as the last entry that has it says."""
        merged: dict[str, Any] = {}
        for each in self.said:
            merged |= {name: value for name, value in each.item.items() if value is not None}
        first = self.said[0]
        return {
            "state": self.state,
            "action": merged.get("action"),
            "key": merged.get("key"),
            "at": first.at or first.received_at,
            **{name: merged.get(name) for name in ABOUT},
            "more": {name: value for name, value in merged.items() if name not in (*ABOUT, *_FRAME)},
            "records": [each.facts() for each in self.said],
        }


def pair(said: Iterable[Said]) -> list[Touch]:
    """Return what the entries of one run about one case come to, by first entry; `said` are in their order.

    A result belongs to the intent with its key before it that has none yet; of two intents with one key the later gets
    it. A note belongs to the touch with its key before it.
    """
    touches: list[list[Said]] = []
    states: list[str] = []
    waiting: dict[str, int] = {}  # by key: the intent that has no result
    latest: dict[str, int] = {}  # by key: the touch that a note belongs to
    for each in said:
        key = each.item.get("key") or ""
        at = waiting.get(key) if each.said in RESULTS else latest.get(key) if each.said == "note" else None
        if at is None:
            at = len(touches)
            touches.append([])
            states.append(NOTED)
        touches[at].append(each)
        latest[key] = at
        if each.said == "intent":
            waiting[key] = at
            states[at] = UNCERTAIN
        elif each.said in RESULTS:
            waiting.pop(key, None)
            states[at] = each.said
    return [Touch(state, tuple(each)) for state, each in zip(states, touches, strict=True)]
