"""An outcome that a monitor has not heard, and the text of the file that keeps it: a hash, then JSON."""

from __future__ import annotations

from runguard.heartbeat.body import Body
from runguard.heartbeat.event import Event
from runguard.record import NamedTuple
from runguard.store.lines import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUTCOMES = ("success", "failure")  # what is kept: a start that is late would set a timer going

_FORMAT = 1
_DIGEST_LENGTH = 64


class Slot(NamedTuple):
    """An outcome that a monitor has not heard."""

    job: str
    at_us: int  # when the run had ended
    from_us: int  # not to be told before: it would count for the window before
    until_us: int | None  # a success counts only before this instant; None: it counts until a newer outcome is told
    tries: int  # deliveries so far that came to nothing
    why: str  # the last one did
    style: str
    target: str  # the address with its secrets masked
    source: str  # where the address was said: "file:/PATH", an option's name, or "" for configuration and environment
    address: str  # its hash
    told: Event

    @property
    def event(self) -> str:
        """Return `success` or `failure`."""
        return self.told.kind

    @property
    def run_id(self) -> str:
        """Return the id of the run that it tells of."""
        return self.told.run_id

    @property
    def name(self) -> str:
        """Return the name of its file: no job's name has a tilde in it."""
        return f"{self.job}~{self.address}"


def encode(slot: Slot) -> bytes:
    """Return what the file of a slot holds."""
    import json  # the command is running, or has ended

    told = slot.told._asdict()
    body = told.pop("body")
    fields = {"format": _FORMAT, **slot._asdict(), "told": told, "body": list(body)}
    content = json.dumps(fields).encode() + b"\n"
    return digest(content).encode() + content


def decode(content: bytes, name: str) -> Slot | str:
    """Return the slot in a file of this name, or why it is none."""
    import json

    if digest(content[_DIGEST_LENGTH:]).encode() != content[:_DIGEST_LENGTH]:
        return "it is damaged"
    try:
        slot = _slot(json.loads(content[_DIGEST_LENGTH:]))
    except (ValueError, TypeError, LookupError, RecursionError):
        return "it is of another version"
    return slot if slot.name == name and slot.event in OUTCOMES else "it belongs elsewhere"


def _slot(fields: dict[str, Any]) -> Slot:
    """Return what a slot's file says. Raises ValueError, TypeError or LookupError."""
    if fields.pop("format") != _FORMAT:
        raise ValueError
    told = {name: value for name, value in fields.pop("told").items() if name in Event._fields}
    body = Body(*fields.pop("body"))
    if not all(isinstance(fields[name], int) for name in ("at_us", "from_us", "tries")):
        raise TypeError
    if not isinstance(fields["until_us"], int | None):
        raise TypeError
    return Slot(told=Event(**told, body=body), **fields)
