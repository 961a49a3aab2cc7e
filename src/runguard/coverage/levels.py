"""How bad it is: a job's standing as a level with its reasons, for monitors and for the person who asks.

Critical is what somebody should look at now: the newest window was missed, failed or was lost, or starts are refused
again and again. A warning is what somebody should look at some day. The absence of a report is never ok.
"""

from __future__ import annotations

from runguard.instant import SECOND_US, rfc3339, span
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runguard.coverage.standing import Running, Standing
    from runguard.coverage.verdicts import Judged
    from runguard.model import Holder

OK, WARNING, CRITICAL, UNKNOWN = "ok", "warning", "critical", "unknown"
LEVELS = (OK, WARNING, CRITICAL, UNKNOWN)  # in the order of a monitor's statuses: 0, 1, 2, 3
_WEIGHT = (OK, WARNING, UNKNOWN, CRITICAL)  # the worst last
_BAD = ("missing", "failed", "lost")


class Limits(NamedTuple):
    """What a job's configuration says about its alarms."""

    alarm_after: int  # refused starts in a row that are critical
    max_age_s: float | None  # how old its last success may be; None: as old as it likes
    holds_lost: bool  # a lost window waits for a person


class Reason(NamedTuple):
    """One thing that is not as it should be: a clause that follows the job's name."""

    level: str
    text: str


class Assessment(NamedTuple):
    """How a job stands, how bad that is, and why: the gravest reason first."""

    standing: Standing
    level: str
    reasons: tuple[Reason, ...]


def assess(standing: Standing, limits: Limits) -> Assessment:
    """Return the level of a job and its reasons. Of a retired job only what still runs, or waits, counts."""
    found = [*_now(standing)] if standing.retired else [*_expected(standing, limits), *_now(standing)]
    found.sort(key=lambda reason: -_WEIGHT.index(reason.level))
    return Assessment(standing, found[0].level if found else OK, tuple(found))


def worst(levels: Sequence[str]) -> str:
    """Return the gravest of some levels: critical, then unknown, then warning."""
    return max(levels, key=_WEIGHT.index, default=OK)


def _expected(standing: Standing, limits: Limits) -> Iterator[Reason]:
    """Yield what is wrong with the windows, or, without a schedule, with the last run."""
    if not standing.readable:
        text = f"its schedule {standing.schedule!r} in {standing.zone} cannot be read on this host"
        yield Reason(UNKNOWN, text)
    newest = standing.newest
    if newest is not None and newest.verdict in _BAD and not _tried_again(standing, newest):
        yield Reason(CRITICAL, _newest(standing, newest))
    elif standing.schedule is None:
        yield from _last_run(standing)
    elif newest is not None and newest.verdict == "running" and _before(standing, newest):
        yield from (reason for reason in _last_run(standing) if reason.level == CRITICAL)
    if standing.refusals_in_a_row >= limits.alarm_after:
        yield Reason(CRITICAL, _refused(standing))
    yield from _too_old(standing, limits)
    yield from _older(standing, limits)
    if not standing.recorded and newest is None:
        yield Reason(WARNING, "only the configuration names it: nothing is recorded of it yet")


def _tried_again(standing: Standing, newest: Judged) -> bool:
    """Tell whether a window that failed is still within its grace and something holds the lock: a retry, perhaps."""
    within = newest.window.due_us > standing.now_us - standing.grace_s * SECOND_US
    return within and newest.verdict != "missing" and (standing.holder is not None or bool(standing.running))


def _before(standing: Standing, newest: Judged) -> bool:
    """Tell whether the last end was that of an earlier window: while the next one runs, a failure is not over yet."""
    return standing.ended is not None and standing.ended.due_us not in (None, newest.window.due_us)


def _newest(standing: Standing, newest: Judged) -> str:
    others = {"missing": len(standing.missing), "lost": len(standing.lost), "failed": 0}[newest.verdict] - 1
    more = f" ({others} more)" if others > 0 else ""
    if newest.verdict == "failed" and standing.failures_in_a_row > 1:
        more = f" ({standing.failures_in_a_row} failures in a row)"
    said = f"window {newest.window.label} {newest.verdict}{more}: {newest.because}"
    return said if standing.recorded else f"{said}, and nothing is recorded of the job"


def _last_run(standing: Standing) -> Iterator[Reason]:
    """Yield how the last run of a job without a schedule ended, where that is no success."""
    if standing.journaled_outcome not in ("", "running"):
        if standing.journaled_outcome != "succeeded":
            yield Reason(
                CRITICAL, f"the last run, which waits in the journal, {standing.journaled_outcome.replace('_', ' ')}"
            )
        return
    ended = standing.ended
    if ended is None or (ended.outcome == "succeeded" and ended.suspect is None):
        return
    if ended.outcome == "succeeded":
        yield Reason(WARNING, f"run {ended.number} is suspect: {ended.suspect}")
        return
    why = f"exit status {ended.exit_status}" if ended.exit_status else ended.why
    times = f", {standing.failures_in_a_row} failures in a row" if standing.failures_in_a_row > 1 else ""
    outcome = ended.outcome.replace("_", " ")
    yield Reason(CRITICAL, f"run {ended.number} {outcome}" + (f" ({why})" if why else "") + times)


def _refused(standing: Standing) -> str:
    number = standing.refusals_in_a_row
    since = _at(standing.refused_since_us or standing.now_us)
    said = f"refused {number} times in a row since {since}" if number > 1 else f"refused at {since}"
    holder = standing.refused_by
    if holder is None:
        return f"{said} ({standing.refused_why})"
    name = f"run {holder.number}" if holder.number is not None else f"run {holder.run_id[:8]}"
    pid = f"pid {holder.command_pid}" if holder.command_pid else f"guard pid {holder.guard_pid}"
    if not _lives(standing, holder):
        return f"{said}, by {name} ({pid}: {holder.command}), which has gone"
    return f"{said}, by {name} ({pid}, for {span(standing.now_us - holder.started_us)}: {holder.command})"


def _lives(standing: Standing, holder: Holder) -> bool:
    pids = standing.holder.pids if standing.holder else ()
    known = {holder.command_pid, holder.guard_pid} - {None}
    return not known.isdisjoint(pids) or any(run.run_id == holder.run_id for run in standing.running)


def _too_old(standing: Standing, limits: Limits) -> Iterator[Reason]:
    """Yield that the last success is older than it may be; twice as old is critical."""
    since_us = standing.last_success.finished_us if standing.last_success else standing.since_us
    if limits.max_age_s is None or since_us is None:
        return
    age_us = standing.now_us - since_us
    if age_us <= limits.max_age_s * SECOND_US:
        return
    level = CRITICAL if age_us > 2 * limits.max_age_s * SECOND_US else WARNING
    limit = span(round(limits.max_age_s * SECOND_US))
    what = "the last success is" if standing.last_success else "there was no success since it became known,"
    yield Reason(level, f"{what} {span(age_us)} ago, longer than max_age ({limit})")


def _older(standing: Standing, limits: Limits) -> Iterator[Reason]:
    """Yield what is wrong with windows before the newest."""
    newest = standing.newest.window.key if standing.newest else ""
    waiting = {"missing": standing.missing, "lost": standing.lost if limits.holds_lost else ()}
    for verdict, windows in waiting.items():
        older = [each for each in windows if each.window.key != newest]
        if older and standing.newest is not None and standing.newest.verdict != verdict:
            yield Reason(WARNING, _many(older, f"{verdict}{' and held' if verdict == 'lost' else ''}"))
    if standing.suspects:
        last = standing.suspects[-1]
        yield Reason(WARNING, f"{_many(standing.suspects, 'suspect')}: {last.suspect}")


def _many(windows: Sequence[Judged], what: str) -> str:
    if len(windows) == 1:
        return f"window {windows[0].window.label} {what}"
    return f"{len(windows)} windows {what}, from {windows[0].window.label} to {windows[-1].window.label}"


def _now(standing: Standing) -> Iterator[Reason]:
    """Yield what is wrong with what runs now, and with what has not been told yet."""
    for run in standing.running:
        if run.overdue:
            yield Reason(WARNING, _overdue(run, standing.usual_duration_s))
        if run.state == "guard gone":
            yield Reason(WARNING, f"the guard of run {run.number} is gone, its command goes on")
        if run.state == "unknown":
            yield Reason(WARNING, f"run {run.number}: {run.because}")
    for ping in standing.undelivered:
        waits = ", it waits in the spool" if ping.waits else ""
        yield Reason(WARNING, f"{ping.event} ping to {ping.target} not delivered{waits}: {ping.why}")
    if standing.journaled:
        entries = "1 entry waits" if standing.journaled == 1 else f"{standing.journaled} entries wait"
        yield Reason(WARNING, f"{entries} in the journal")


def _overdue(run: Running, usual_s: float | None) -> str:
    usually = f", usually {span(round(usual_s * SECOND_US))}" if usual_s is not None else ""
    return f"run {run.number} runs for {span(round(run.running_s * SECOND_US))}{usually}: {run.overdue}"


def _at(at_us: int) -> str:
    return rfc3339(at_us // SECOND_US * SECOND_US)
