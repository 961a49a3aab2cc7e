"""From the journal to the ledger, once the store takes entries again. Imported when something waits."""

from __future__ import annotations

import os

from runguard import instant
from runguard.errors import reason
from runguard.record import NamedTuple
from runguard.store import lines, reserve
from runguard.store.database import UNFIT
from runguard.store.journal import Reconciled, Source, locked, names, opened
from runguard.store.lines import Author

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.store.database import Transaction
    from runguard.store.journal import Journal

_ORDER = {"run.start": 0, "run.refused": 0, "run.finish": 1}
# What may be missing or null, and is of one kind where it is not: the tables would take others too.
_INTEGERS = ("revision", "guard_pid", "exit_status", "returned", "signal")
_TEXTS = ("trigger", "reason", "boot_id", "supersedes", "why")


class _Line(NamedTuple):
    at_us: int
    order: int
    entry: dict[str, Any]
    raw: bytes
    source: Source


def entries(journal: Journal) -> list[dict[str, Any]]:
    """Return every readable entry of the journal in the order of `Journal.entries`."""
    return [line.entry for line in _sorted(_sources(journal)[0])[0]]


def reconcile(journal: Journal, transaction: Transaction) -> Reconciled:
    """Append what the ledger has not yet; see `Journal.reconcile`."""
    sources, remarks = _sources(journal)
    fitting, torn = _sorted(sources)
    rejected = [(_beside(journal, source), raw, why) for source, raw, why in torn]
    waiting = set()
    count = 0
    for line in fitting:
        why = _bring(transaction, line)
        if why == "known":
            continue
        if why == "no start" and remarks:  # its start may stand in the file that was skipped
            waiting.add(line.source.path)
        elif why:
            rejected.append((_beside(journal, line.source), line.raw, why))
        else:
            count += 1
    remarks += [f"a journal line was kept aside in {path}: {why}" for path, _, why in rejected]
    done = tuple(source for source in sources if source.path not in waiting)
    kept = tuple((path, raw) for path, raw, _ in rejected)
    return Reconciled(count, tuple(remarks), done, kept)


def clear(journal: Journal, reconciled: Reconciled) -> list[str]:
    """Remove what was brought over; see `Journal.clear`. Rejected lines are kept first."""
    remarks: list[str] = []
    for source in reconciled.sources:
        aside = [raw for path, raw in reconciled.rejected if path == _beside(journal, source)]
        try:
            _clear(source, aside, _beside(journal, source))
        except FileNotFoundError:
            continue  # another start was faster
        except OSError as error:
            remarks.append(f"journal {source.path}: {reason(error)}; it stays and is read again")
    return remarks


def _sources(journal: Journal) -> tuple[list[Source], list[str]]:
    """Return what each journal file holds, and remarks on those that cannot be read now."""
    sources, remarks = [], []
    paths = [os.path.join(journal.directory, name) for name in names(journal.directory) if name.endswith(".jsonl")]
    for path in [*paths, journal.reserve]:
        try:
            sources.append(_read(path, path == journal.reserve))
        except FileNotFoundError:
            continue
        except OSError as error:
            remarks.append(f"journal {path}: {reason(error)}; it is left for a later start")
    return [source for source in sources if source.length or not source.is_reserve], remarks


def _read(path: str, is_reserve: bool) -> Source:
    """Read a file under its lock; one that a writer holds right now is not waited for."""
    file = locked(path, os.O_RDONLY, 0)
    try:
        if is_reserve:
            data = reserve.read(file)
        else:
            with open(file, "rb", closefd=False) as stream:
                data = stream.read()
    finally:
        os.close(file)
    return Source(path, len(data), tuple(data.splitlines(keepends=True)), is_reserve)


def _sorted(sources: list[Source]) -> tuple[list[_Line], list[tuple[Source, bytes, str]]]:
    """Return the lines that say something, oldest first, and those that do not, with why."""
    fitting, torn = [], []
    for source in sources:
        for raw in source.lines:
            if not raw.strip():
                continue
            try:
                entry = lines.parse(raw)
                at_us = _judge(entry)
            except UNFIT as error:
                torn.append((source, raw, f"{type(error).__name__}: {error}"))
            else:
                fitting.append(_Line(at_us, _ORDER[entry["kind"]], entry, raw, source))
    fitting.sort(key=lambda line: (line.order, line.at_us))
    return fitting, torn


def _judge(entry: dict[str, Any]) -> int:
    """Return the instant of a journaled entry. Raises KeyError, TypeError or ValueError where it is none."""
    kind = entry["kind"]
    if kind not in _ORDER:
        raise ValueError(f"the kind {kind!r} is not known here")
    for name in ("run_id", "host", "version", "outcome" if kind == "run.finish" else "job"):
        _refuse_other(entry[name], str)
    _refuse_other(entry["actor"], dict)
    for optional, type_of_value in ((_INTEGERS, int), (_TEXTS, str)):
        for name in optional:
            if entry.get(name) is not None:
                _refuse_other(entry[name], type_of_value)
    if kind != "run.finish" and (window := entry["window"]) is not None:
        for name in ("key", "start", "due", "label", "nominal", "zone"):
            _refuse_other(window[name], str)
        instant.from_rfc3339(window["due"])
    if kind == "run.start":
        _refuse_other(entry["attempt"], int)
        if (covers := entry.get("covers")) is not None:
            instant.from_rfc3339(covers["first"]), instant.from_rfc3339(covers["last"])
    return instant.from_rfc3339(entry["at"])


def _refuse_other(value: object, kind: type) -> None:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")


def _bring(transaction: Transaction, line: _Line) -> str:
    """Append one entry; returns "", "known" where the ledger has it, or why it does not fit."""
    try:
        return _append(transaction, line)
    except UNFIT as error:
        return f"{type(error).__name__}: {error}"


def _append(transaction: Transaction, line: _Line) -> str:
    entry = line.entry
    run = transaction.store.run(entry["run_id"])
    if entry["kind"] == "run.finish":
        if run is None:
            return "no start"
        late = run.outcome == "lost" and run.late_seq is None
        if run.finish_seq is not None and not late:
            return "known"
    elif run is not None:
        return "known"
    fields = {key: value for key, value in entry.items() if key not in lines.HEADER}
    if entry["kind"] != "run.finish":
        fields["number"] = transaction.store.next_number()  # its own could be beyond what is left of the numbers
        fields["revision"] = fields.get("revision") or _revision(transaction, entry)
    fields["journaled"] = True
    author = Author(entry["host"], entry["actor"], entry["version"])
    return transaction.attempt(entry["kind"], line.at_us, fields, author)


def _revision(transaction: Transaction, entry: dict[str, Any]) -> int | None:
    """Return the revision that expects the due of the entry's window."""
    window = entry.get("window")
    if not window:
        return None
    due_us = instant.from_rfc3339(window["due"])
    known = transaction.store.revisions(entry["job"])
    numbers = [found.number for found in known if found.after_us < due_us and found.schedule]
    return numbers[-1] if numbers else None


def _clear(source: Source, aside: list[bytes], beside: str) -> None:
    file = locked(source.path, os.O_RDWR, 0)
    try:
        length = len(reserve.read(file)) if source.is_reserve else os.fstat(file).st_size
        if length != source.length:
            return  # a run has added to it: it is read again, and what is known by then is passed over
        if aside:
            _keep(beside, aside)
        if source.is_reserve:
            reserve.wipe(file, length)
        else:
            os.unlink(source.path)
    finally:
        os.close(file)


def _keep(path: str, raw_lines: list[bytes]) -> None:
    file = opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        for raw in raw_lines:
            os.write(file, raw if raw.endswith(b"\n") else raw + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def _beside(journal: Journal, source: Source) -> str:
    """Return the file that keeps the lines of `source` that do not fit."""
    name = "journal" if source.is_reserve else os.path.basename(source.path).removesuffix(".jsonl")
    return os.path.join(journal.directory, f"{name}.rejected")
