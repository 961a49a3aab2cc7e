"""Everything that is on record about one run: for JSON as it stands, for people as lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runguard import clock
from runguard.cli import case_entries
from runguard.cli.runs import facts
from runguard.cli.spans import local, span
from runguard.guard import liveness
from runguard.instant import from_rfc3339, rfc3339
from runguard.printable import line as safe
from runguard.store.database import ReadOnlyStore
from runguard.store.reads import Ping, Run

Facts = dict[str, Any]

# What the ledger's entries say about a run beside the columns of the table.
_OF_START = (
    "argv", "shell", "cwd", "path", "program", "inputs", "commit", "python", "version", "late_s", "parent", "because",
    "holder", "boot_id", "guard_pid", "waited_s", "ended",
)  # fmt: skip
_OF_FINISH = (
    "command_pid",
    "user_s",
    "system_s",
    "peak_memory_bytes",
    "output",
    "stragglers",
    "survivors",
    "killed_by",
)
_LINKS = (
    ("supersedes", "supersedes"), ("superseded by", "superseded_by"), ("inside run", "parent"),
    ("made way for", "killed_by"),
)  # fmt: skip
_WIDTH = 13
_FATES = {"ended": "waited for", "stopped": "stopped too"}
HANG = _WIDTH + 3  # where the texts begin


def gather(records: ReadOnlyStore, run: Run, life: liveness.Life | None) -> Facts:
    """Return the run by the JSON contract, with everything that its entries and pings add."""
    entries = records.entries(run.run_id)
    told = facts(run)
    start = entries[0] if entries else {}
    finish = entries[1] if len(entries) > 1 else {}
    if told["window"] is not None:
        told["window"] |= {key: value for key, value in (start.get("window") or {}).items() if value is not None}
    told |= {key: start.get(key) for key in _OF_START}
    told |= {key: finish.get(key) for key in _OF_FINISH}
    _fill_in_hashes(told, finish.get("hashed") or ())
    told["account"] = start.get("actor")
    if life is not None:
        told["command_pid"] = life.command_pid
    told["items"] = case_entries.totals(records, run, finish)
    told["remarks"] = [remark for entry in entries for remark in entry.get("remarks") or ()]
    told["pings"] = [_ping(ping) for ping in records.pings(run.run_id)]
    told["entries"] = [{"seq": entry["seq"], "kind": entry["kind"], "at": entry["at"]} for entry in entries]
    return told


def _fill_in_hashes(told: Facts, hashed: Sequence[Facts]) -> None:
    """Put the hashes that were taken beside the command where the start has none."""
    known = {code["path"]: code["sha256"] for code in hashed}
    for code in (told["program"], *(told["inputs"] or ())):
        if code and code.get("sha256") is None:
            code["sha256"] = known.get(code["path"])


def lines(records: ReadOnlyStore, told: Facts, run: Run, life: liveness.Life | None) -> Iterator[str]:
    """Yield the lines for a person, each safe to print."""
    took = f", took {span(told['duration_s'])}" if told["duration_s"] is not None else ""
    yield safe(f"run {run.number} of {run.job}: {ending(told)}{took}")
    for label, text in _rows(records, told, run, life):
        if text:
            yield f"  {label:<{_WIDTH}} {safe(text)}"


def ending(told: Facts) -> str:
    """Return how the run ended: `failed (exit status 3)`."""
    marks = []
    if told["exit_status"] is not None:
        marks.append(f"exit status {told['exit_status']}")
    if told["signal"] is not None:
        marks.append(f"signal {told['signal']}")
    if told["returned"] not in (None, told["exit_status"]):
        marks.append(f"runguard returned {told['returned']}")
    if told["why"]:
        marks.append(str(told["why"]))
    return str(told["outcome"]) + (f" ({', '.join(marks)})" if marks else "")


def _rows(records: ReadOnlyStore, told: Facts, run: Run, life: liveness.Life | None) -> Iterator[tuple[str, str]]:
    yield "id", run.run_id
    yield from _when(told, run, life)
    yield from _links(records, told)
    yield from _code(told)
    yield from _end(told)
    yield from case_entries.lines(records, run, told["items"])
    for ping in told["pings"]:
        yield "ping", _ping_line(ping)
    for remark in told["remarks"]:
        yield "remark", remark
    yield "ledger", ", ".join(f"{entry['seq']} ({entry['kind']})" for entry in told["entries"])


def _when(told: Facts, run: Run, life: liveness.Life | None) -> Iterator[tuple[str, str]]:
    window = told["window"]
    if window is None:
        yield "window", "none"
    else:
        yield "window", f"{window['label']} ({window['key']}), {window['start']} to {window['due']}"
        schedule = window.get("schedule") or {}
        if schedule:
            rule = ", ".join(f"{key} {schedule[key]}" for key in ("policy", "gap", "fold") if schedule.get(key))
            data = f", tzdata {window['tzdata']}" if window.get("tzdata") else ""
            yield (
                "schedule",
                f"{schedule['expression']!r} in {schedule['zone']} ({rule}{data}), revision {run.revision}",
            )
        oddity = {"gap": "the clock skipped this minute", "shift": "the clock skipped this minute"}
        yield "", oddity.get(str(window.get("how")), "")
        yield "", "the second of two such minutes" if window.get("fold") else ""
        yield "", "also answers " + ", ".join(window["collapsed"]) if window.get("collapsed") else ""
    if told["late_s"] is not None:
        early = told["late_s"] < 0
        yield ("early" if early else "late"), span(abs(told["late_s"]))
    if told["waited_s"]:
        yield "waited", f"{span(told['waited_s'])} for an earlier run"
    if told["covers"]:
        count, first, last = (told["covers"][key] for key in ("count", "first", "last"))
        yield "covers", f"{count} window{'s' * (count != 1)}, due from {first} to {last}"
    yield "attempt", "" if run.attempt is None else str(run.attempt)
    yield "trigger", run.trigger + (f": {run.reason}" if run.reason else "")
    yield "by", _account(told["account"]) or run.actor or ""
    yield "host", run.host
    yield "started", f"{local(run.started_us)} ({rfc3339(run.started_us)})"
    if run.finished_us is not None:
        yield "finished", f"{local(run.finished_us)} ({rfc3339(run.finished_us)})"
    if life is not None:
        yield "now", life.because + _goes_on(run, life)


def _goes_on(run: Run, life: liveness.Life) -> str:
    """Return the command's pid and for how long the run has lasted, where it lives."""
    if life.state == liveness.LOST:
        return ""
    named = life.command_pid is None or life.state == liveness.GUARD_GONE
    pid = "" if named else f", command pid {life.command_pid}"
    return f"{pid}, for {span(max(clock.look().wall_us - run.started_us, 0) / 1_000_000)}"


def _links(records: ReadOnlyStore, told: Facts) -> Iterator[tuple[str, str]]:
    for label, key in _LINKS:
        other = records.run(told[key]) if told[key] and told[key].isascii() else None  # SQLite takes no lone surrogate
        if told[key]:
            yield label, f"run {other.number} ({other.outcome}, {other.run_id})" if other else told[key]
    if told["holder"]:
        yield "held by", _holder(told["holder"])
    for ended in told["ended"] or ():
        yield "stopped", _holder(ended)
    yield "because", told["because"] or ""


def _holder(holder: Mapping[str, Any]) -> str:
    started = f" since {local(from_rfc3339(holder['started']))}" if holder.get("started") else ""
    number = f"run {holder['number']}, " if holder.get("number") else ""
    pid = holder.get("command_pid") or holder.get("guard_pid")
    return f"{number}pid {pid}{started}: {holder.get('command') or holder.get('run_id')}"


def _code(told: Facts) -> Iterator[tuple[str, str]]:
    argv = told["argv"] or []
    yield "command", f"/bin/sh -c {shlex.quote(argv[0])}" if told["shell"] and argv else shlex.join(argv)
    yield "directory", told["cwd"] or ""
    yield "PATH", told["path"] or ""
    for label, file in [("program", told["program"]), *(("input", each) for each in told["inputs"] or ())]:
        if file:
            digest = f"sha256 {file['sha256']}" if file.get("sha256") else "not hashed"
            yield label, f"{file['path']}, {file.get('size')} bytes, {digest}"
    yield "commit", told["commit"] or ""
    versions = [
        f"runguard {told['version']}" if told["version"] else "",
        f"Python {told['python']}" if told["python"] else "",
    ]
    yield "with", ", ".join(version for version in versions if version)


def _end(told: Facts) -> Iterator[tuple[str, str]]:
    if told["user_s"] is not None:
        memory = told["peak_memory_bytes"]
        peak = f", at most {memory / 1_048_576:.1f} MiB of memory" if memory else ""
        yield "used", f"{told['user_s']:.2f}s user, {told['system_s']:.2f}s system{peak}"
    output = told["output"]
    if output:
        streams = [("stdout and stderr", output)] if output.get("merged") and "bytes" in output else []
        streams = streams or [(name, output[name]) for name in ("stdout", "stderr") if output.get(name)]
        for name, stream in streams:
            digest = f"sha256 {stream['sha256']}" if stream.get("sha256") else "not hashed"
            label = "stdout+stderr" if output.get("merged") and name == "stdout" else name
            yield "output", f"{label}: {stream['bytes']} bytes, {digest}" if stream["bytes"] else ""
        yield "", f"{output['omitted_bytes']} bytes were not kept" if output.get("omitted_bytes") else ""
    for each in told["stragglers"] or ():
        yield _FATES.get(str(each.get("fate")), "left behind"), f"pid {each.get('pid')}: {each.get('command')}"
    for each in told["survivors"] or ():
        owner = "" if each.get("uid") is None else f" (uid {each['uid']})"
        yield "survived", f"pid {each.get('pid')}{owner}: {each.get('command')}"


def _account(account: object) -> str:
    if not isinstance(account, Mapping):
        return ""
    words = [str(account.get("user") or f"uid {account.get('uid')}")]
    login, sudo = account.get("login"), account.get("sudo_user") or account.get("sudo")
    words += [f"logged in as {login}"] if login and login != words[0] else []
    words += [f"through sudo from {sudo}"] if sudo else []
    return ", ".join(words)


def _ping(ping: Ping) -> Facts:
    told = ping._asdict()
    sent_us, duration_us = told.pop("sent_us"), told.pop("duration_us")
    told["sent_at"] = None if sent_us is None else rfc3339(sent_us)
    told["duration_s"] = None if duration_us is None else duration_us / 1_000_000
    return told


def _ping_line(ping: Facts) -> str:
    answer = f"HTTP {ping['http_status']}" if ping["http_status"] else ping["error"] or "no answer"
    tries = f" after {ping['tries']} tries" if ping["tries"] > 1 else ""
    verdict = {"accepted": "accepted", "retry": "not delivered", "final": "refused"}.get(
        ping["verdict"], ping["verdict"]
    )
    took = f", {span(ping['duration_s'])}" if ping["duration_s"] is not None else ""
    return f"{ping['event']} ({ping['style']}) to {ping['target']}: {verdict}, {answer}{tries}{took}"
