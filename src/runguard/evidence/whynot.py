"""`explain --why-not`: why a case was not handled in a window, as far as the record can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runguard.coverage.verdicts import Judged
from runguard.evidence import beside, lists, ran, spoken, unknown
from runguard.evidence.found import Asked, Found
from runguard.evidence.localtime import Clocks
from runguard.evidence.quoting import Quotes
from runguard.evidence.ran import Facts, Moment
from runguard.evidence.touches import NOTED, REMOVED, UNCERTAIN
from runguard.evidence.unknown import name
from runguard.evidence.words import numbers
from runguard.guard.expecting import expecting
from runguard.guard.start import window_fields
from runguard.instant import rfc3339
from runguard.model import Window
from runguard.store.reads import Reader

# Of a run, by what it says of the case; the first of them that a run of the window has is the answer.
UNDER_WAY, NOT_REACHED, NOT_IN_INPUT, SILENT = "running", "not_reached", "not_in_input", "silent"
_ORDER = ("handled", UNCERTAIN, "failed", "considered", REMOVED, UNDER_WAY, NOT_REACHED, NOT_IN_INPUT, SILENT)
_BY_STATE = {
    "done": ("handled", "it handled the case"),
    "failed": ("failed", "it tried to handle the case and failed"),
    "skipped": ("considered", "it considered the case and skipped it"),
    "no_action": ("considered", "it considered the case and found nothing to be done"),
    REMOVED: (REMOVED, "what it recorded of the case was lawfully removed"),
}
REFUSED = "refused"  # no run was let start for it; beside that the window's own verdict: missing, waived, pending
VERDICTS = (*_ORDER, REFUSED)

_EVER_US = 1 << 62


def answer(reader: Reader, asked: Asked, job: str, window: Window) -> tuple[Facts, bool]:
    """Return why, by the JSON contract, and whether the case is on record at all.

    That is a verdict of the above, a sentence, and each start for the window with what it says of the case.
    """
    quotes, moment = Quotes(reader), asked.moment
    found = Found(quotes, asked)
    span = window.due_us - 1, window.due_us
    judged = beside.judge(quotes, job, expecting(reader, job), span, moment, asked.grace_us(job))
    of_window = next((each for each in judged if each.window.key == window.key), None)
    starts = [start.seq for start in reader.coverage(job, *span) if _is_for(start, window)]
    told = [run for run in (_of_start(quotes, found, seq, moment) for seq in starts) if run is not None]
    verdict, because = _answer(told, of_window, due=window.due_us <= moment.at_us)
    return {
        "case": asked.case,
        "at": rfc3339(moment.at_us) if moment.past else None,
        "job": job,
        "window": {
            **window_fields(window),
            "verdict": of_window.verdict if of_window else None,
            "because": of_window.because if of_window else None,
        },
        "verdict": verdict,
        "because": because,
        "runs": told,
        "unknown": _unknown(found, asked, [run for run in told if run["verdict"] != REFUSED]),
        "damage": quotes.damage,
    }, found.any


def lines(told: Facts) -> Iterator[str]:
    """Yield the answer in plain English."""
    clocks = Clocks()
    for each in told["damage"]:
        yield f"DAMAGED: {each['text']} (runguard verify --full)"
    yield f"{told['case']} in {told['job']}@{told['window']['key']}, due {told['window']['label']}: {told['because']}"
    if told["at"]:
        yield f"As of {clocks.both(told['at'], None)}: what was recorded later is left out."
    for run in told["runs"]:
        zone = (run["window"] or {}).get("zone")
        yield ""
        yield f"{name(run)}{numbers(each['entry'] for each in run['entries'])}: {run['because']}"
        yield f"   started  {clocks.both(run['started_at'], zone)}, by {spoken.actor(run['actor'])} on {run['host']}"
        if run["last_entry_at"]:
            yield f"   entries  {run['case_entries']:,}, the last {clocks.both(run['last_entry_at'], zone)}"
        for touch in run["touches"]:
            reason = spoken.plain(touch["reason"]) if touch["reason"] is not None else "the job gave no reason"
            records = ", ".join(str(each["record"]) for each in touch["records"])
            yield f"   said     {touch['action']}: {touch['state'].replace('_', ' ')}; {reason} (records {records})"
    if told["unknown"]:
        yield ""
        yield "Not known:"
        yield from (f"- {each['text']}{numbers(each['entries'])}" for each in told["unknown"])


def _is_for(start: Any, window: Window) -> bool:
    covers = start.covers_first_us is not None and start.covers_first_us <= window.due_us <= start.covers_last_us
    return bool(start.key == window.key or covers)


def _of_start(quotes: Quotes, found: Found, start_seq: int, moment: Moment) -> Facts | None:
    """Return one start for the window with what it says of the case; None where it was not on record by then."""
    run = ran.told(quotes, start_seq, moment)
    if run is None:
        return None
    if run["outcome"] == REFUSED:
        why = f"refused ({run['why']})" + (f": {run['because']}" if run["because"] else "")
        return {**run, "verdict": REFUSED, "because": why, "touches": [], "case_entries": 0, "last_entry_at": None}
    touches = found.touches(run["run_id"])
    entries, last_at = _last_entry(quotes.reader, start_seq, moment)
    doubtful = any(piece["run_id"] == run["run_id"] for piece in found.pieces)
    doubtful |= any(file.run_id == run["run_id"] and (file.torn or file.unread_bytes) for file in found.files)
    verdict, because = _judge({**run, "case_entries": entries}, touches, doubtful=doubtful)
    return {**run, "verdict": verdict, "because": because, "touches": touches, "case_entries": entries,
            "last_entry_at": last_at}  # fmt: skip


def _last_entry(reader: Reader, start_seq: int, moment: Moment) -> tuple[int, str | None]:
    """Return how many case entries a run has, and when the last of them was received."""
    after, beyond = lists.bounds(start_seq)
    until_us = moment.at_us if moment.past else _EVER_US
    for id, received_us in reader.rows("last_item", after=after, beyond=beyond, until_us=until_us):
        return lists.place(id)[1], rfc3339(received_us)
    return 0, None


def _judge(run: Facts, touches: list[Facts], *, doubtful: bool) -> tuple[str, str]:
    """Return what a run says of the case, and why it says no more; `doubtful`: a torn line of it may name the case."""
    states = {touch["state"]: touch for touch in touches if touch["state"] != NOTED}
    if UNCERTAIN in states:
        return UNCERTAIN, "it meant to handle the case and did not say what came of it: uncertain"
    for state, (verdict, because) in _BY_STATE.items():
        if state in states:
            reason = states[state]["reason"]
            return verdict, because + (f": {spoken.plain(reason)}" if reason is not None and state != "done" else "")
    items = run["items"] or {}
    if doubtful or any(items.get(key) for key in ("rejected", "beyond_bytes", "pending_bytes", "removed")):
        return UNCERTAIN, "it says nothing of the case, and not all that it wrote could be read: uncertain"
    if run["outcome"] == "running":
        return UNDER_WAY, "it is still running and has said nothing of the case so far"
    ended = str(run["outcome"]).replace("_", " ")
    if not run["case_entries"]:
        if run["outcome"] == "succeeded":
            return SILENT, "it succeeded and said nothing of any case: whether this one was looked at is not known"
        return NOT_REACHED, f"it ended ({ended}) before it said anything of any case"
    count = f"{items['cases']:,} case{'s' * (items['cases'] != 1)}" if items.get("cases") is not None else ""
    if run["outcome"] != "succeeded" or _fewer(items):
        expected = f" of {items['expected']:,} expected" if items.get("expected") is not None else ""
        after = f", after {count}{expected}" if count else ""
        return NOT_REACHED, f"it ended ({ended}) before it reached the case, as far as is known{after}"
    went = f"it went through its input ({count})" if count else "it went through its input"
    return NOT_IN_INPUT, f"{went}, and this case was not in it, as far as is known"


def _fewer(items: Facts) -> bool:
    return items.get("expected") is not None and items.get("cases", 0) < items["expected"]


def _answer(runs: list[Facts], of_window: Judged | None, *, due: bool) -> tuple[str, str]:
    """Return the verdict over all starts: what a run has done stands, whatever an earlier or later one has not."""
    for verdict in _ORDER:
        for run in reversed(runs):
            if run["verdict"] == verdict:
                return verdict, f"{name(run)} started for this window, and {run['because']}"
    if not due:
        return "pending", "the window was not due yet"
    if of_window is not None and of_window.verdict == "waived":
        return "waived", f"no run started for this window: {of_window.because}"
    if runs:
        return REFUSED, f"no run was let start for this window: {name(runs[-1])} was {runs[-1]['because']}"
    if of_window is None:
        return "missing", "nothing is on record of this window"
    return of_window.verdict, f"the window is {of_window.verdict}: {of_window.because}"


def _unknown(found: Found, asked: Asked, runs: list[Facts]) -> list[Facts]:
    ids = {run["run_id"] for run in runs}
    touches = [touch for run in runs for touch in run["touches"]]
    pieces = [each for each in found.pieces if each["run_id"] in ids]
    files = [each for each in found.files if each.run_id in ids]
    return list(unknown.about(touches, runs, pieces, files, found.unread, asked.journaled))
