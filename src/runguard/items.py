"""Case entries from Python: what a job is about to do with a case, what came of it, and why.

    from runguard import items

    items.expected(6000)                        # the first call, if it is known
    done = items.done()                         # cases that an earlier attempt has done
    for case_id in find_cases():
        if case_id in done:
            continue
        with items.case(case_id, action="reminder", reason="No reply for 28 days.") as case:
            reference = send(case_id)           # the intent is on file by now
            case.done(sent={"reference": reference})

Every write is checked, and NotRecorded raised where it fails: a job that cannot explain itself stops acting. With
RUNGUARD_ITEMS_SYNC=1 each line is durable before the next step. Outside of a run (by hand, in a test) nothing is
written and nothing is raised.

Threads and forked children may share it. This file needs nothing but Python 3.8 and can be copied beside a job.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Literal

MOST_LINE_BYTES = 64 << 10
MOST_CHARACTERS = 200
MOST_LEVELS = 100
MOST_EXPECTED = 10**9
MOST_FILE_BYTES = 1 << 30


class NotRecorded(OSError):
    """A case entry could not be written whole: what it announces must not be done."""


class Case:
    """One case in hand; see `case`. Its methods write what came of it, with any further fields."""

    def __init__(self, case: str, action: str, key: str, fields: Mapping[str, Any]) -> None:
        self.case = case
        self.action = action
        self.key = key
        self._fields = fields
        self._over = False

    def done(self, **fields: Any) -> None:
        """The case was dealt with."""
        self._result("done", fields)

    def no_action(self, **fields: Any) -> None:
        """The case was looked at, and nothing was due."""
        self._result("no_action", fields)

    def skipped(self, **fields: Any) -> None:
        """The case is left for another time, or for a person."""
        self._result("skipped", fields)

    def failed(self, **fields: Any) -> None:
        """The action failed."""
        self._result("failed", fields)

    def note(self, **fields: Any) -> None:
        """Add what is worth knowing, before or after the result."""
        _append(_joined(self._head("note"), fields))

    def __enter__(self) -> Case:
        _append(_joined(self._head("intent"), self._fields))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if kind is None:
            if not self._over:
                self.done()
        elif issubclass(kind, NotRecorded):
            pass  # nothing more can be written
        elif self._over:
            self.note(error=kind.__name__)  # after the result
        else:
            self.failed(error=kind.__name__)  # not its message: that may hold personal data
        return False

    def _result(self, result: str, fields: Mapping[str, Any]) -> None:
        self._over = True
        _append(_joined({**self._head("result"), "result": result}, fields), whole=False)

    def _head(self, phase: str) -> dict[str, Any]:
        return {"case": self.case, "phase": phase, "key": self.key, "action": self.action, "at": now()}


def case(case: str, action: str, key: str | None = None, **fields: Any) -> Case:
    """Return a case to be entered with `with`.

    Its beginning writes the intent with `fields` (rule, reason, inputs, …), its end `done`, unless one of its methods
    wrote another result before; an exception writes `failed` with its type, and goes on its way. `key` ties the result
    to the intent: by itself a new one. Raises ValueError for what is no case id, and NotRecorded.
    """
    check("case", case)
    check("action", action)
    if key is not None:
        check("key", key)
    return Case(case, action, os.urandom(6).hex() if key is None else key, fields)


def note(case: str, action: str, **fields: Any) -> None:
    """Write a note about a case that is not in hand. Raises ValueError and NotRecorded."""
    check("case", case)
    check("action", action)
    if "key" in fields:
        check("key", fields["key"])
    _append(_joined({"case": case, "phase": "note", "action": action, "at": now()}, fields))


def expected(cases: int) -> None:
    """Say, before anything else, how many cases there are. Raises NotRecorded where something was written before."""
    if type(cases) is not int or not 0 <= cases <= MOST_EXPECTED:
        raise ValueError(f"{cases!r} is not a number of cases")
    _append({"expected": cases}, first=True)


def done() -> frozenset[str]:
    """Return the cases that earlier attempts in this window have done."""
    return _cases("RUNGUARD_DONE")


def uncertain() -> frozenset[str]:
    """Return the cases that earlier attempts may have touched: look before touching them again."""
    return _cases("RUNGUARD_UNCERTAIN")


def recording() -> bool:
    """Return whether entries are written: whether this is a run."""
    return bool(os.environ.get("RUNGUARD_ITEMS") or os.environ.get("RUNGUARD_RUN_ID"))


def write(line: bytes, *, first: bool = False) -> None:
    """Append one line, without its newline, by one write. Raises NotRecorded where it is not whole on file."""
    path = os.environ.get("RUNGUARD_ITEMS")
    if not path:
        raise NotRecorded(errno.ENOENT, "this run has no file for case entries", path)
    with _lock:
        fd, size = _file(path)
        if first and size:
            raise NotRecorded(errno.EEXIST, "the number of expected cases comes before all entries", path)
        if size + len(line) > MOST_FILE_BYTES:
            raise NotRecorded(errno.EFBIG, "a run has at most 1 GiB of case entries", path)
        # What was torn before (a full disk) stays a line of its own. Beside a write of another process the last byte
        # may look torn: then there is an empty line, which says nothing.
        torn = size and os.pread(fd, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + line + b"\n"
        try:
            written = os.write(fd, data)
            if os.environ.get("RUNGUARD_ITEMS_SYNC") == "1":
                os.fdatasync(fd)
        except OSError as error:
            raise NotRecorded(error.errno, error.strerror, path) from error
    if written < len(data):
        raise NotRecorded(errno.ENOSPC, f"only {written} of {len(data)} bytes could be written", path)


def check(name: str, text: Any) -> None:
    """Raise ValueError where `text` is no case id, action or key."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name} is {text!r}, not a text")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{name} is {len(text)} characters long: at most {MOST_CHARACTERS}")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{name} holds a NUL or half of a surrogate pair: {text!r}")


def now() -> str:
    """Return the time by the host's clock, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


_lock = allocate_lock()
_open: tuple[str, int, tuple[int, int]] | None = None  # path, descriptor, device and inode


def _renew_lock() -> None:
    global _lock  # another thread may have held it at the moment of the fork
    _lock = allocate_lock()


os.register_at_fork(after_in_child=_renew_lock)


def _file(path: str) -> tuple[int, int]:
    """Return the descriptor of the file and its size. The descriptor may have been closed, and its number reused."""
    global _open
    try:
        if _open is not None and _open[0] == path:
            found = os.fstat(_open[1])
            if (found.st_dev, found.st_ino) == _open[2] and found.st_nlink:
                return _open[1], found.st_size
    except OSError:
        pass
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        found = os.fstat(fd)
    except OSError as error:  # the run is over, or the file is another account's
        raise NotRecorded(error.errno, error.strerror, path) from error
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise NotRecorded(errno.EINVAL, "it is no regular file", path)
    _open = path, fd, (found.st_dev, found.st_ino)
    return fd, found.st_size


def _joined(head: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    taken = [name for name in fields if name in head]
    if taken:
        raise ValueError(f"{', '.join(taken)}: every case entry has that already")
    return {**head, **fields}


def _append(fields: dict[str, Any], *, whole: bool = True, first: bool = False) -> None:
    """Write one entry. Of a result (not `whole`) fields that no entry can hold, and the largest of one that is too
    long, are left out, by name: what was done is on record.
    """
    if not recording():
        return
    omitted: list[str] = []
    try:
        line = _spelled(fields)
    except (ValueError, TypeError, RecursionError):
        if whole:
            raise
        omitted = [name for name in _further(fields) if not _fits({name: fields[name]})]
        fields = {name: value for name, value in fields.items() if name not in omitted}
        line = _spelled({**fields, "omitted": omitted})
    while len(line) > MOST_LINE_BYTES:
        more = _further(fields)
        if whole or not more:
            raise ValueError(f"a case entry of {len(line)} bytes is too long: at most {MOST_LINE_BYTES}")
        largest = max(more, key=lambda name: len(_spelled({name: fields[name]})))
        omitted.append(largest)
        fields = {name: value for name, value in fields.items() if name != largest}
        line = _spelled({**fields, "omitted": omitted})
    write(line, first=first)


def _further(fields: Mapping[str, Any]) -> list[str]:
    return [name for name in fields if name not in ("case", "phase", "key", "action", "at", "result")]


def _fits(fields: Mapping[str, Any]) -> bool:
    try:
        _spelled(fields)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _spelled(fields: Mapping[str, Any]) -> bytes:
    """Return one line of ASCII JSON: dates, decimals and the like as their text, never NaN.

    Raises ValueError, TypeError or RecursionError for what would be no entry.
    """
    import json

    try:
        text = json.dumps(fields, separators=(",", ":"), default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(fields), separators=(",", ":"), default=str, allow_nan=False)
    levels = text.count("{") + text.count("[")  # at most
    if levels > 1:  # keys of dicts inside may come to the same text: 1 and "1"
        value = json.loads(text, object_pairs_hook=_once)
        if levels > MOST_LEVELS:
            _refuse_deep(value)
    return text.encode("ascii")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key stands in one object twice: {[key for key, _ in pairs]}")
    return found


def _refuse_deep(value: Any) -> None:
    inner, levels = [value], 0
    while inner:
        levels += 1
        if levels > MOST_LEVELS:
            raise ValueError(f"a case entry is nested deeper than {MOST_LEVELS} levels")
        parts = [part for outer in inner for part in (outer.values() if isinstance(outer, dict) else outer)]
        inner = [part for part in parts if isinstance(part, (dict, list))]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value


def _cases(variable: str) -> frozenset[str]:
    import json

    path = os.environ.get(variable)
    if not path:
        return frozenset()
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")[:-1]
    return frozenset(json.loads(line) if line.startswith('"') else line for line in lines)
