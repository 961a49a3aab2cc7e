"""From an entry of the ledger to the tables: one function, used when an entry is written and when it is checked."""

from __future__ import annotations

from runguard import instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    # Sends the named statement and returns how many rows it changed.
    Send = Callable[[str, Mapping[str, Any]], int]

_NONE: dict[str, Any] = {}
_NO_SCHEDULE = dict.fromkeys(("expression", "zone", "policy", "gap", "fold"))


def index(send: Send, entry: Mapping[str, Any]) -> bool:
    """Bring the tables up to `entry`, from what its line says and nothing else.

    Returns False, and changes nothing, where a `run.finish` finds no run that still waits for it. Kinds that have no
    table change nothing. Raises KeyError, TypeError or ValueError where a field is missing or of another kind.
    """
    match entry["kind"]:
        case "run.finish":
            return _finish(send, entry)
        case "run.start" | "run.refused":
            _start(send, entry)
        case "job.changed":
            _job(send, entry)
        case "window.waived":
            _waive(send, entry)
        case "checkpoint":
            _checkpoint(send, entry)
        case "prune":
            _bear(send, entry)
            _prune(send, entry)
        case "correction" | "hold" | "release" | "redact" | "access" | "defect" | "recovery":
            _bear(send, entry)
        case "items" if entry["final"]:
            send("insert_bearing", {"about": "run", "which": entry["run_id"], "seq": entry["seq"], "kind": "items"})
    return True


def _start(send: Send, entry: Mapping[str, Any]) -> None:
    refused = entry["kind"] == "run.refused"
    window = entry["window"] or _NONE
    covers = entry.get("covers") or _NONE
    row = {
        "start_seq": entry["seq"],
        "run_id": entry["run_id"],
        "number": entry["number"],
        "job": entry["job"],
        "revision": entry.get("revision"),
        "window_key": window.get("key"),
        "window_start_us": _instant(window.get("start")),
        "due_us": _instant(window.get("due")),
        "label": window.get("label"),
        "nominal": window.get("nominal"),
        "zone": window.get("zone"),
        "attempt": entry.get("attempt"),
        "trigger": entry["trigger"],
        "reason": _text(entry.get("reason")),
        "outcome": "refused" if refused else "running",
        "returned": entry["returned"] if refused else None,
        "why": entry["why"] if refused else None,
        "started_us": instant.from_rfc3339(entry["at"]),
        "host": _text(entry["host"]),
        "boot_id": entry.get("boot_id"),
        "guard_pid": entry.get("guard_pid"),
        "actor": _text(_login(entry["actor"])),
        "supersedes": entry.get("supersedes"),
        "covers_first_us": _instant(covers.get("first")),
        "covers_last_us": _instant(covers.get("last")),
        "covers_count": covers.get("count"),
    }
    row["answered_due_us"] = None if refused else row["due_us"]
    send("insert_run", row)
    if row["supersedes"] and not refused:
        send("supersede_run", {"run_id": row["run_id"], "supersedes": row["supersedes"]})


def _finish(send: Send, entry: Mapping[str, Any]) -> bool:
    run_id = entry["run_id"]
    if entry.get("superseded"):
        return send("finish_lost_run", {"run_id": run_id, "late_seq": entry["seq"]}) == 1
    duration_s = entry.get("duration_s")
    row = {
        "run_id": run_id,
        "finish_seq": entry["seq"],
        "outcome": entry["outcome"],
        "exit_status": entry.get("exit_status"),
        "returned": entry.get("returned"),
        "signal": entry.get("signal"),
        "why": _text(entry.get("why")),
        "finished_us": _instant(entry.get("finished")),
        "duration_us": None if duration_s is None else round(duration_s * instant.SECOND_US),
        "suspect": _text(entry.get("suspect")),
    }
    return send("finish_run", row) == 1


def _job(send: Send, entry: Mapping[str, Any]) -> None:
    at_us = instant.from_rfc3339(entry["at"])
    job, revision, schedule = entry["job"], entry["revision"], entry["schedule"]
    if (schedule is None) != (revision is None or entry["change"] == "retired"):
        raise ValueError("a revision has a schedule, or retires the job")
    send("insert_job", {"job": job, "registered_us": at_us, "registered_seq": entry["seq"]})
    if revision is None:
        return
    schedule = schedule or _NO_SCHEDULE
    row = {
        "job": job,
        "number": revision,
        "expression": _text(schedule["expression"]),
        "zone": _text(schedule["zone"]),
        "policy": schedule["policy"],
        "gap": schedule["gap"],
        "fold": schedule["fold"],
        "after_us": _instant(entry["after"]),
        "opened_us": at_us,
        "seq": entry["seq"],
    }
    send("insert_revision", row)


def _waive(send: Send, entry: Mapping[str, Any]) -> None:
    key, since, until, withdraw = entry["key"], entry["since"], entry["until"], entry["withdraw"]
    if (key is None) == (since is None) or (since is None) != (until is None):
        raise ValueError("a waiver names one window by its key, or the span since < due <= until")
    if since is not None and instant.from_rfc3339(since) >= instant.from_rfc3339(until):
        raise ValueError(f"the span is empty: {since} is not before {until}")
    if not isinstance(withdraw, bool) or not (withdraw or (entry["reason"] or "").strip()):
        raise ValueError("a waiver has a reason, or withdraws another")
    row = {
        "seq": entry["seq"],
        "job": entry["job"],
        "window_key": key,
        "since_us": _instant(since),
        "until_us": _instant(until),
        "withdrawn": int(withdraw),
        "reason": _text(entry["reason"]),
        "host": _text(entry["host"]),
        "actor": _text(_login(entry["actor"])),
        "at_us": instant.from_rfc3339(entry["at"]),
    }
    send("insert_waiver", row)


def _checkpoint(send: Send, entry: Mapping[str, Any]) -> None:
    row = {
        "seq": entry["seq"],
        "first_seq": entry["first"],
        "last_seq": entry["last"],
        "at_us": instant.from_rfc3339(entry["at"]),
        "list_sha256": entry["list_sha256"],
    }
    send("insert_checkpoint", row)


def _bear(send: Send, entry: Mapping[str, Any]) -> None:
    from runguard.store import bearings  # no start writes such an entry

    for each in bearings.of_entry(entry):
        send("insert_bearing", {**each._asdict(), "which": _text(each.which)})


def _prune(send: Send, entry: Mapping[str, Any]) -> None:
    from runguard.evidence.lists import number

    if entry["what"] == "cases":
        ends = (entry["records"]["first"], entry["records"]["last"])
        first, last = (number(each["entry"], each["record"]) for each in ends)
    else:
        first, last = entry["entries"]["first"], entry["entries"]["last"]
    row = {
        "seq": entry["seq"],
        "what": entry["what"],
        "before_us": instant.from_rfc3339(entry["before"]),
        "first_number": first,
        "last_number": last,
        "checkpoint_seq": entry["checkpoint"],
    }
    send("insert_pruned", row)


def _instant(text: str | None) -> int | None:
    return None if text is None else instant.from_rfc3339(text)


def _login(actor: Mapping[str, Any]) -> str | None:
    found = actor.get("login") or actor.get("user") or actor.get("uid")
    return None if found is None else str(found)


def _text(text: str | None) -> str | None:
    """Return the text with lone surrogates spelled out: a database holds none."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
