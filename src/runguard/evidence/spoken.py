"""Single things in words: what a job gave as rule or inputs, who did something, an entry that bears on a case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from runguard.evidence.localtime import Clocks

Facts = dict[str, Any]

_SENT = ("channel", "template", "version", "reference", "at")
_RULE = ("id", "version", "sha256")


def field(name: str, value: object) -> str:
    """Return what stands under a name of the protocol, in words; anything that is otherwise than expected, as JSON."""
    if not isinstance(value, Mapping):
        return plain(value)
    match name:
        case "rule":
            return ", ".join(_known(value, _RULE, bare="id"))
        case "sent":
            return ", ".join(_known(value, _SENT, bare="channel"))
    return "; ".join(f"{key}: {_sourced(each)}" for key, each in value.items())


def plain(value: object) -> str:
    """Return a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def actor(account: object) -> str:
    """Return who somebody is: the account, who logged in, who called sudo."""
    if not isinstance(account, Mapping):
        return plain(account) if account else "an unknown account"
    words = [str(account.get("user") or f"uid {account.get('uid')}")]
    login, sudo = account.get("login"), account.get("sudo_user")
    words += [f"logged in as {login}"] if login and login != words[0] else []
    words += [f"through sudo from {sudo}"] if sudo else []
    return words[0] + (f" ({', '.join(words[1:])})" if len(words) > 1 else "")


def entry(told: Facts, clocks: Clocks) -> str:
    """Return an entry that bears on a case as a sentence, with its number, when, who and where."""
    who = f"{actor(told['actor'])} on {told['host']}"
    return f"entry {told['entry']}, {clocks.both(told['at'], None)}: {who} {_did(told)}{_reason(told)}"


def _did(told: Facts) -> str:
    match told["kind"]:
        case "access":
            return _accessed(told)
        case "correction":
            right = f"; right is: {told['right']}" if told.get("right") else ""
            return f"corrected the record of {about(told)}: {told['wrong']}{right} (the original stays)"
        case "hold":
            return f"put a hold on {about(told)}"
        case "release":
            return f"released the hold of entry {told['hold']} on {about(told)}"
        case "redact":
            count = len(told["records"])
            authority = f"; authority: {told['authority']}" if told.get("authority") else ""
            return f"removed {count} record{'s' * (count != 1)} lawfully{authority}"
        case "prune":
            what, told_of = ("case entries", "records") if told["what"] == "cases" else ("entries", "entries")
            return f"removed {told[told_of]['removed']} {what} from before {told['before']} (kept: {told['keep']})"
        case "defect":
            reference = f" ({told['reference']})" if told.get("reference") else ""
            return f"noted a known fault of {about(told)}{reference}"
        case "recovery":
            lost = ", ".join(f"{first} to {last}" if first < last else str(first) for first, last in told["lost"])
            return f"recovered a damaged store; entries lost: {lost or 'none'} ({told['why']})"
    return f"wrote {told['kind']}"


def about(told: Facts) -> str:
    """Return what an entry is about, in words."""
    return ", ".join(_target(target) for target in told["about"])


def _accessed(told: Facts) -> str:
    if told.get("how") == "export":
        bundle = f" (bundle sha256 {told['bundle_sha256']})" if told.get("bundle_sha256") else ""
        return f"exported {about(told)}{bundle}"
    question = told.get("question") or {}
    of = f" as of {question['at']}" if question.get("at") else ""
    return (
        f"asked why it was not handled in {question['why_not']}{of}" if question.get("why_not") else f"explained it{of}"
    )


def _reason(told: Facts) -> str:
    return f": {told['reason']}" if told.get("reason") else ""


def _target(target: Facts) -> str:
    match target:
        case {"case": case, "run": run, "record": record}:
            return f"case {case}, record {record} of run {run}"
        case {"case": case, "run": run}:
            return f"case {case} in run {run}"
        case {"job": job, "window": key}:
            return f"window {job}@{key}"
        case {"code": _} | {"commit": _}:
            code = f"commit {target['commit']}" if "commit" in target else f"code with sha256 {target['code']}"
            since, until = target.get("since"), target.get("until")
            return f"{code}{_span(since, until)}" + (", as far as it ran then" if since or until else "")
        case {"erased": _}:
            return "a redacted case"
        case {"since": since, "until": until}:
            job = f" of {target['job']}" if "job" in target else ""
            return f"everything{job}{_span(since, until)}"
    return ", ".join(f"{key} {value}" for key, value in target.items())


def _span(since: str | None, until: str | None) -> str:
    return f"{f' from {since}' if since else ''}{f' before {until}' if until else ''}"


def _known(value: Mapping[str, Any], names: tuple[str, ...], bare: str) -> Iterator[str]:
    for name in (*names, *(key for key in value if key not in names)):
        if value.get(name) is not None:
            yield plain(value[name]) if name == bare else f"{name} {plain(value[name])}"


def _sourced(value: object) -> str:
    """Return a value with what is said of it: `{"value": 3, "source": "register"}` is `3 (source register)`."""
    if isinstance(value, Mapping) and "value" in value:
        rest = ", ".join(f"{key} {plain(each)}" for key, each in value.items() if key != "value")
        return plain(value["value"]) + (f" ({rest})" if rest else "")
    return plain(value)
