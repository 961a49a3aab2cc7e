"""Which run a person means by `41` or `8c2f`."""

from __future__ import annotations

from runguard.errors import UsageError
from runguard.store.reads import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.store.reads import Reader

_SHORTEST_PREFIX = 4
_SHOWN = 5
_LARGEST_NUMBER = 18  # digits


def find_run(reader: Reader, text: str) -> Run:
    """Return the one run that `text` names; see `Reader.find_run`."""
    wanted = text.strip().lower()
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= _LARGEST_NUMBER:
        for row in reader.rows("run_by_number", number=int(wanted)):
            return Run(*row)
    found: list[Run] = []
    if len(wanted) >= _SHORTEST_PREFIX and _is_id(wanted):
        page = reader.rows("runs_by_prefix", first=wanted, beyond=wanted + "g", page=_SHOWN + 1)
        found = [Run(*row) for row in page]
    if len(found) == 1:
        return found[0]
    if found:
        named = ", ".join(_named(run) for run in found[:_SHOWN])
        more = ", …" if len(found) > _SHOWN else ""
        raise UsageError(f"{text!r} is the beginning of several runs: {named}{more}")
    raise UsageError(_unknown(reader, text, wanted))


def _unknown(reader: Reader, text: str, wanted: str) -> str:
    last = [Run(*row) for row in reader.rows("last_run")]
    if not last:
        return f"no run {text!r}: nothing has been recorded yet"
    near: list[Run] = []
    if len(wanted) >= _SHORTEST_PREFIX and _is_id(wanted):
        same = wanted[:_SHORTEST_PREFIX]
        near = [Run(*row) for row in reader.rows("runs_by_prefix", first=same, beyond=same + "g", page=1)]
    elif not (wanted.isascii() and wanted.isdigit()):
        return f"{text!r} names no run: give its number, or four or more characters of its id ({_example(last[0])})"
    if near:
        return f"no run {text!r}; the nearest is {_named(near[0])}"
    return f"no run {text!r}; the newest is {_named(last[0])}"


def _is_id(text: str) -> bool:
    return not text.strip("0123456789abcdef-")


def _named(run: Run) -> str:
    return f"{run.number} ({run.run_id[:13]}, {run.job})"


def _example(run: Run) -> str:
    return f"{run.number} or {run.run_id[:8]}"
