"""What `explain` has found, in plain English, a line at a time. Nothing is escaped here: who prints it does that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from runguard.evidence import spoken
from runguard.evidence.localtime import Clocks
from runguard.evidence.touches import NOTED, UNCERTAIN
from runguard.evidence.unknown import name

Facts = dict[str, Any]

_WIDTH = 8
HANG = _WIDTH + 4  # where the texts of a touch begin
_STARTED = {
    "schedule": "by its schedule",
    "catch-up": "by a catch-up of missed windows",
    "rerun": "by hand, once more",
    "manual": "by hand",
}
_NEEDED = ("rule", "reason")  # said also where the job did not give them
_LABELS = {
    "rule": "Rule", "reason": "Reason", "inputs": "Inputs", "before": "Before", "after": "After", "sent": "Sent",
    "basis": "Basis", "legal": "Legal", "link": "Link", "more": "Also",
}  # fmt: skip


def lines(told: Facts) -> Iterator[str]:
    """Yield the explanation. `told` is what `explain` has returned."""
    clocks = Clocks()
    for each in told["damage"]:
        yield f"DAMAGED: {each['text']} (runguard verify --full)"
    yield _summary(told)
    if told["at"]:
        yield f"As of {clocks.both(told['at'], None)}: what was recorded later is left out."
    runs = {run["run_id"]: run for run in told["runs"]}
    for number, touch in enumerate(told["touches"], 1):
        yield ""
        yield from _touch(number, touch, runs, clocks)
    yield from _section("Later entries that bear on it", (spoken.entry(each, clocks) for each in told["later"]))
    yield from _section("Windows beside these that no success answered", _windows(told["windows"]))
    yield from _section("Not known", (each["text"] + numbers(each["entries"]) for each in told["unknown"]))


def numbers(entries: Iterable[int]) -> str:
    """Return entries of the ledger as a remark: ` (entries 12, 15)`; nothing for none."""
    found = list(entries)
    return f" (entr{'y' if len(found) == 1 else 'ies'} {', '.join(map(str, found))})" if found else ""


def _summary(told: Facts) -> str:
    touches = told["touches"]
    case = told["case"]
    if not touches:
        return f"No case entry about {case} is on record."
    states = Counter(touch["state"].replace("_", " ") for touch in touches)
    jobs = list(dict.fromkeys(touch["job"] for touch in touches))
    runs = len({touch["run_id"] for touch in touches})
    times = "once" if len(touches) == 1 else f"{len(touches)} times"
    by = "one run" if runs == 1 else f"{runs} runs"
    said = ", ".join(f"{count} {state}" if len(touches) > 1 else state for state, count in states.items())
    return f"{case} was touched {times}, by {by} of {' and '.join(jobs)}: {said}."


def _touch(number: int, touch: Facts, runs: Mapping[str, Facts], clocks: Clocks) -> Iterator[str]:
    run = runs[touch["run_id"]]
    zone = (run["window"] or {}).get("zone")
    yield f"{number}. {_headline(touch, zone, clocks)}"
    for label, text in _rows(touch, run, runs, clocks):
        yield f"   {label:<{_WIDTH}} {text}"


def _headline(touch: Facts, zone: str | None, clocks: Clocks) -> str:
    if touch["removed_by"]:
        return f"removed: what {name(touch)} recorded of it was lawfully removed by entry {touch['removed_by']}"
    state = "UNCERTAIN" if touch["state"] == UNCERTAIN else touch["state"].replace("_", " ")
    return f"{touch['action']}: {state}, {clocks.both(touch['at'], zone)}"


def _rows(touch: Facts, run: Facts, runs: Mapping[str, Facts], clocks: Clocks) -> Iterator[tuple[str, str]]:
    zone = (run["window"] or {}).get("zone")
    yield "Run", _of_run(run, runs)
    if not touch["removed_by"]:
        for field, label in _LABELS.items():
            yield from _field(touch, field, label)
    yield from _code(run)
    yield "Started", _started(run, zone, clocks)
    yield "Ended", _ended(run, zone, clocks)
    yield "Records", _records(touch, run, clocks)


def _of_run(run: Facts, runs: Mapping[str, Facts]) -> str:
    window = run["window"]
    attempt = f", attempt {run['attempt']}" if run["attempt"] else ""
    where = f" for the window {window['label']} ({window['key']})" if window else ", without a window"
    others = (("supersedes", "it replaces"), ("superseded_by", "it was replaced by"))
    links = [f"{said} {name(runs.get(run[key], _other(run[key])))}" for key, said in others if run[key]]
    return "; ".join([f"{name(run).removeprefix('run ')} of {run['job']}{attempt}{where}", *links])


def _other(run_id: str) -> Facts:
    return {"run_id": run_id, "number": None}


def _field(touch: Facts, field: str, label: str) -> Iterator[tuple[str, str]]:
    """Yield what was said under a name; where a later entry says it otherwise, both, with who says which."""
    said: list[tuple[str, str]] = []
    for record in touch["records"]:
        value = touch["more"] if field == "more" else record["item"].get(field)
        text = spoken.field(field, value) if value not in (None, {}) else ""
        if text and text not in [known for _, known in said]:
            said.append((record["said"].replace("_", " "), text))
    if not said and field in _NEEDED and touch["state"] != NOTED:
        yield label, "the job gave none"
    for at, (who, text) in enumerate(said):
        yield label if not at else "", f"{text} ({who})" if len(said) > 1 else text


def _code(run: Facts) -> Iterator[tuple[str, str]]:
    label = "Code"
    for code in (run["program"], *(run["inputs"] or ())):
        if code:
            digest = f"sha256 {code['sha256']}" if code.get("sha256") else "not hashed"
            yield label, f"{code['path']}, {digest}"
            label = ""
    versions = [f"commit {run['commit']}"] if run["commit"] else []
    versions += [f"runguard {run['version']}"] if run["version"] else []
    versions += [f"Python {run['python']}"] if run["python"] else []
    yield label, ", ".join(versions)


def _started(run: Facts, zone: str | None, clocks: Clocks) -> str:
    how = _STARTED.get(str(run["trigger"]), str(run["trigger"]))
    if run["trigger"] == "schedule" and run["window"] is None:
        how = "without a schedule"
    reason = f": {run['reason']}" if run["reason"] else ""
    entry = f" (entry {run['entries'][0]['entry']})" if run["entries"] else " (in the journal)"
    who = spoken.actor(run["actor"])
    return f"{clocks.both(run['started_at'], zone)} {how}, by {who} on host {run['host']}{reason}{entry}"


def _ended(run: Facts, zone: str | None, clocks: Clocks) -> str:
    if run["outcome"] == "running":
        return f"not on record: {run['why']}" if run["why"] else "not on record"
    marks = [f"exit status {run['exit_status']}"] if run["exit_status"] is not None else []
    marks += [f"signal {run['signal']}"] if run["signal"] is not None else []
    marks += [str(run["why"])] if run["why"] else []
    marks += [f"suspect: {run['suspect']}"] if run["suspect"] else []
    marks += [f"to make way for run {run['killed_by']}"] if run["killed_by"] else []
    marks += [f"but it ended later: {run['late']['outcome']}"] if run["late"] else []
    at = f"{clocks.both(run['finished_at'], zone)} " if run["finished_at"] else ""
    outcome = str(run["outcome"]).replace("_", " ")
    return f"{at}{', '.join([outcome, *marks])}{numbers(each['entry'] for each in run['entries'][1:])}"


def _records(touch: Facts, run: Facts, clocks: Clocks) -> str:
    told = []
    for each in touch["records"]:
        number = "not on record yet" if each["record"] is None else str(each["record"])
        marks = [each["said"].replace("_", " ")]
        marks += [f"written {clocks.both(each['at'], None)}"] if each["at"] else []
        marks += [f"received {clocks.both(each['received_at'], None)}"] if each["received_at"] else []
        told.append(f"{number} ({', '.join(marks)})")
    listed = f"; listed by entry {run['list_entry']}" if run["list_entry"] else ""
    return "; ".join(told) + (f"; in {touch['file']}" if touch["file"] else listed)


def _windows(windows: Iterable[Facts]) -> Iterator[str]:
    """Yield windows and their verdicts; those that follow one another and are told alike as one."""
    for _, alike in groupby(windows, key=lambda each: (each["job"], each["verdict"], each["because"], each["runs"])):
        first, *rest = alike
        runs = f" (run {', '.join(map(str, first['runs']))})" if first["runs"] else ""
        to = f" to {rest[-1]['key']}, {len(rest) + 1} windows" if rest else f", due {first['label']}"
        yield f"{first['job']}@{first['key']}{to}: {first['verdict']}, {first['because']}{runs}"


def _section(title: str, texts: Iterable[str]) -> Iterator[str]:
    found = list(texts)
    if found:
        yield ""
        yield f"{title}:"
        yield from (f"- {text}" for text in found)
