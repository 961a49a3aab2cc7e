"""`ping`: the outcomes that the spool holds, delivered a few at a time, with one line for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from runguard import clock, config
from runguard.cli.asking import Place, open_records
from runguard.cli.fast import say
from runguard.cli.output import Column, Row, emit, page
from runguard.errors import RunguardError, UnsafeError, reason
from runguard.guard import host, late
from runguard.guard.late import Delivery, Told
from runguard.heartbeat import client, spool
from runguard.heartbeat.client import Sending
from runguard.heartbeat.event import Event
from runguard.heartbeat.lateness import is_too_soon, kind_now, late_event
from runguard.heartbeat.slot import Slot
from runguard.heartbeat.spool import Claim
from runguard.heartbeat.targets import Target, targets_of
from runguard.instant import SECOND_US, rfc3339, span
from runguard.printable import line as safe
from runguard.settings import Settings
from runguard.store.reads import Ping
from runguard.store.sqlite import open_store

AT_ONCE = 4  # helpers; each takes 30 MiB
FIELDS = (
    "job", "run_id", "event", "ended_at", "late_s", "target", "sent_as", "verdict", "http_status", "tries", "detail",
)  # fmt: skip
BY_HAND = "dropped by hand"
# What is settled: nothing is left to be delivered, as far as this job's monitor goes.
_SETTLED = ("accepted", "dropped", "elsewhere")


class Outcome(NamedTuple):
    """What became of one slot, or would."""

    slot: Slot
    ping: Ping  # verdict accepted, undelivered, final, dropped; or kept, elsewhere and would, which are not recorded


def deliver(
    environ: dict[str, str], place: Place, jobs: Sequence[str] | None, form: str | None, *, dry_run: bool
) -> int:
    """Send what waits of `jobs`, or of all; print a line for each, record it, and return 1 where something is left."""
    directory = _trusted(place)
    now_us = clock.look().wall_us
    paths = [path for path in spool.waiting(directory) if jobs is None or spool.job_of(path) in jobs]
    damaged: list[str] = []
    if dry_run:
        damaged += [f"{path}: it cannot be read, and would be kept aside" for path in paths if not spool.look(path)]
        outcomes = [
            _foretold(environ, place, each, now_us)
            for each in spool.slots(directory)
            if jobs is None or each.job in jobs
        ]
    else:
        spool.tidy(directory, now_us / SECOND_US)
        outcomes = list(_delivered(environ, place, paths, now_us, damaged))
    _tell(place, outcomes, form, now_us)
    for sentence in damaged:
        say(sentence)
    if not dry_run:
        _record(environ, place, outcomes)
    if jobs and not outcomes and not damaged and form in (None, "table"):
        say(f"nothing waits for the {'monitors' if len(jobs) > 1 else 'monitor'} of {', '.join(jobs)}")
    left = any(each.ping.verdict not in _SETTLED for each in outcomes) and not dry_run
    return 1 if left or damaged else 0


def drop(environ: dict[str, str], place: Place, jobs: Sequence[str], form: str | None, *, dry_run: bool) -> int:
    """Drop what waits of `jobs` unsent, print a line for each, record it; return 1 where something is left."""
    directory = _trusted(place)
    now_us = clock.look().wall_us
    slots = [each for each in spool.slots(directory) if each.job in jobs]
    outcomes = [Outcome(each, late.row(each, "dropped", BY_HAND)) for each in slots]
    if not dry_run:
        outcomes = [_dropped(directory, each, now_us) for each in slots]
        _record(environ, place, outcomes)
    _tell(place, outcomes, form, now_us)
    return 1 if any(each.ping.verdict != "dropped" for each in outcomes) else 0


def _dropped(directory: str, slot: Slot, now_us: int) -> Outcome:
    """Drop a slot, unless a newer outcome has taken its place."""
    try:
        found = spool.supersede(spool.path_of(directory, slot), slot.at_us, now_us)
    except OSError as error:
        return Outcome(slot, late.row(slot, "kept", reason(error)))
    return Outcome(slot, late.row(slot, "dropped" if found else "kept", BY_HAND if found else "there is a newer one"))


def _trusted(place: Place) -> str:
    """Return the directory of the spool. Raises UnsafeError where others could have put there what it holds."""
    directory = place.kept.spool
    if why := spool.flaw(directory):
        raise UnsafeError(f"spool {directory}: {why} (uid {os.geteuid()}); nothing was sent")
    return directory


def _delivered(
    environ: dict[str, str], place: Place, paths: Sequence[str], now_us: int, damaged: list[str]
) -> Iterator[Outcome]:
    """Deliver what these files hold, AT_ONCE at a time, and yield what became of each."""
    under_way: list[tuple[Slot, Delivery]] = []
    for path in paths:
        claim = spool.claim(path)
        if isinstance(claim, str):
            damaged.append(claim)
        elif claim is None:
            slot = spool.look(path)
            if slot is not None:
                yield Outcome(slot, late.row(slot, "elsewhere", "another process is delivering it"))
        else:
            begun = _begun(environ, place, claim, now_us)
            if isinstance(begun, Delivery):
                under_way.append((claim.slot, begun))
            else:
                yield Outcome(claim.slot, begun)
        if len(under_way) == AT_ONCE:
            yield _ended(*under_way.pop(0))
    for each in under_way:
        yield _ended(*each)


def _begun(environ: dict[str, str], place: Place, claim: Claim, now_us: int) -> Delivery | Ping:
    """Begin to deliver a slot; where nothing is sent, return why."""
    slot = claim.slot
    found = _target(environ, place, slot)
    if isinstance(found, str) or is_too_soon(slot, now_us):
        claim.close()
        return late.row(slot, "kept", found if isinstance(found, str) else _too_soon(slot))
    target, settings = found
    kind = kind_now(slot, now_us, superseded=_is_outdated(place, slot))
    begun = late.begin(claim, kind, _launcher(environ, target, settings))
    return _said(begun) if isinstance(begun, Told) else begun


def _ended(slot: Slot, delivery: Delivery) -> Outcome:
    return Outcome(slot, _said(late.end(delivery, client.collect(delivery.sending))))


def _said(told: Told) -> Ping:
    """Say what went wrong with the spool itself; that a ping was not taken is told in its line."""
    if told.unkept:
        say(told.unkept)
    return told.ping


def _launcher(environ: dict[str, str], target: Target, settings: Settings) -> Callable[[Event, float], Sending | None]:
    def launch(event: Event, deadline_s: float) -> Sending | None:
        request = target.request(event)
        if request is None:
            return None
        limit = settings.ping_body_limit
        return client.launch(client.message(target.style, request, deadline_s=deadline_s, body_limit=limit), environ)

    return launch


def _target(environ: dict[str, str], place: Place, slot: Slot) -> tuple[Target, Settings] | str:
    """Return the monitor that a slot is meant for, its address read again, or why it is not known."""
    given = {"ping": slot.source} if slot.source.startswith("file:") else {}
    settings, problems = config.effective(given, environ, place.loaded, slot.job)
    found = targets_of(settings)
    try:
        for target in found.targets:
            if spool.address(place.kept.spool, *target.addresses) == slot.address:
                return target, settings
    except OSError as error:
        return f"{place.kept.spool}: {reason(error)}"
    if slot.source == "--ping":
        return "its address was an option of the run, and is not stored: the job's next run sends it"
    for why in (*(each.text for each in problems if each.breaks in ("ping", "that ping")), *found.flaws):
        return why
    if not found.targets:
        return f"no address is configured for the job; runguard ping --drop {slot.job} drops it"
    return f"it was meant for another address than the job has now; runguard ping --drop {slot.job} drops it"


def _is_outdated(place: Place, slot: Slot) -> bool:
    """Tell whether a later run than that of a success is on record that was none: it may have had no monitor."""
    if slot.event != "success":
        return False
    try:
        records = open_records(place)
        if records is None:
            return False
        with records:
            told, last = records.run(slot.run_id), records.last_ended(slot.job)
    except RunguardError:
        return False
    return told is not None and last is not None and last.start_seq > told.start_seq and last.outcome != "succeeded"


def _foretold(environ: dict[str, str], place: Place, slot: Slot, now_us: int) -> Outcome:
    """Return what would become of a slot."""
    found = _target(environ, place, slot)
    if isinstance(found, str) or is_too_soon(slot, now_us):
        return Outcome(slot, late.row(slot, "kept", found if isinstance(found, str) else _too_soon(slot)))
    kind = kind_now(slot, now_us, superseded=_is_outdated(place, slot))
    if found[0].request(late_event(slot, kind, now_us)) is None:
        return Outcome(slot, late.row(slot, "dropped", late.why_dropped(slot)))
    return Outcome(slot, late.row(slot, "would", "")._replace(event=kind))


def _too_soon(slot: Slot) -> str:
    return f"before its due, {rfc3339(slot.from_us)}, it would count for the window before"


def _tell(place: Place, outcomes: Sequence[Outcome], form: str | None, now_us: int) -> None:
    rows = [Row(_facts(each, now_us), ()) for each in outcomes]
    if form not in (None, "table"):
        emit(form or "", rows, [Column(field) for field in FIELDS], FIELDS)
        return
    numbers = _numbers(place, [each.slot.run_id for each in outcomes])
    page(safe(_sentence(each, numbers, now_us)) for each in outcomes)


def _facts(outcome: Outcome, now_us: int) -> dict[str, Any]:
    slot, ping = outcome
    return {
        "job": slot.job,
        "run_id": slot.run_id,
        "event": slot.event,
        "ended_at": rfc3339(slot.at_us),
        "late_s": max(0, now_us - slot.at_us) / SECOND_US,
        "target": slot.target,
        "sent_as": ping.event if ping.tries or ping.verdict == "would" else None,
        "verdict": ping.verdict,
        "http_status": ping.http_status,
        "tries": slot.tries + (ping.verdict == "undelivered"),
        "detail": ping.error,
    }


def _sentence(outcome: Outcome, numbers: dict[str, str], now_us: int) -> str:
    slot, ping = outcome
    told = f"{slot.job}: {slot.event} of run {numbers.get(slot.run_id, slot.run_id)}"
    where = f"to {'the log of ' if ping.event == 'log' else ''}{slot.target}"
    by = span(max(0, now_us - slot.at_us))
    match ping.verdict:
        case "accepted":
            return f"{told} delivered late by {by} {where}"
        case "would":
            return f"{told} of {rfc3339(slot.at_us)} would be sent {where}, late by {by}"
        case "final":
            return f"{told} refused for good by {slot.target}: {ping.error}; dropped"
        case "undelivered" if ping.event == "log":
            return f"{told} not delivered {where}: {ping.error}; dropped: {late.why_dropped(slot)}"
        case "undelivered":
            return f"{told} not delivered {where}: {ping.error}; kept, {slot.tries + 1} tries so far"
    if ping.error == BY_HAND:
        return f"{told} to {slot.target} {ping.error}"
    return f"{told} {'left' if ping.verdict == 'elsewhere' else ping.verdict}: {ping.error}"


def _numbers(place: Place, run_ids: Sequence[str]) -> dict[str, str]:
    """Return the short numbers of runs, for display: a store that cannot be read does not keep a ping back."""
    found: dict[str, str] = {}
    try:
        records = open_records(place) if run_ids else None
        if records is not None:
            with records:
                for run_id in run_ids:
                    run = records.run(run_id)
                    if run is not None:
                        found[run_id] = str(run.number)
    except RunguardError:
        pass
    return found


def _record(environ: dict[str, str], place: Place, outcomes: Sequence[Outcome]) -> None:
    """Write down what was sent, each with the run that it tells of; what cannot be written is said."""
    sent = [each for each in outcomes if each.ping.verdict not in ("kept", "elsewhere")]
    if not sent or not os.path.lexists(place.kept.store):
        return
    try:
        author = host.author(environ)
        with open_store(place.kept.store, author=author, create=False, witness_directory=place.kept.witness) as store:
            for slot, ping in sent:
                if store.run(slot.run_id) is not None:
                    store.record_pings(slot.run_id, [ping])
    except RunguardError as error:
        say(f"{error}; what became of the pings is not recorded")
