"""What a Healthchecks server is asked through its management API, so that it expects the windows that runguard does.

https://healthchecks.io/docs/api/ (v3). The server reads cron expressions and daylight saving as Debian's cron does. A
schedule that it would read otherwise is named and refused, never approximated.
"""

from __future__ import annotations

from itertools import zip_longest

from runguard.errors import ScheduleError
from runguard.heartbeat.address import is_uuid, split
from runguard.instant import DAY_S, SECOND_US
from runguard.model import Schedule
from runguard.record import NamedTuple
from runguard.schedule import revisions
from runguard.schedule.cron import MACROS, Cron

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.schedule.windows import Timetable
    from runguard.schedule.zone import Zone

COMPARED_US = 10 * 366 * DAY_S * SECOND_US  # how far ahead two readings of a schedule are compared
LEAST_S, MOST_S = 60, 365 * DAY_S  # of what a server takes as a time
_LONGEST_SCHEDULE = 100  # characters
_RULES = ("policy", "gap", "fold")
_HOSTED = {"hc-ping.com": "https://healthchecks.io"}
_API = "/api/v3"


class Check(NamedTuple):
    """Which check of a server an address is of; at most one of the two is given."""

    uuid: str = ""
    slug: str = ""


class Wish(NamedTuple):
    """What a check is to expect, and what of it a person should know."""

    fields: dict[str, Any]  # schedule and tz, or timeout; grace
    remark: str = ""


def check_of(url: str) -> Check:
    """Return the check that a Healthchecks address pings."""
    last = ("", *split(url).segments)[-1]
    return Check(uuid=last) if is_uuid(last) else Check(slug=last)


def server_of(url: str) -> str | None:
    """Return where the server of a Healthchecks address has its management API, without its path, or None.

    A server of one's own has it where the path of its addresses begins. Self-hosted pings may go elsewhere: then it
    is to be configured.
    """
    address = split(url)
    if address.host in _HOSTED:
        return _HOSTED[address.host]
    before, ping, _ = address.path.rpartition("/ping/")
    authority = address.authority.rpartition("@")[2]
    return f"{address.scheme}://{authority}{before}" if ping else None


def endpoint(server: str, check: Check) -> str:
    """Return where a check is created or updated; `server` may end in the path of the API or not."""
    base = server.rstrip("/")
    for version in ("/v1", "/v2", "/v3"):
        base = base.removesuffix(f"/api{version}")
    return f"{base}{_API}/checks/{check.uuid}"


def wish(schedule: Schedule, zone: Zone, now_us: int, *, grace_s: float) -> Wish | str:
    """Return what a check is to expect for a job, or why the server cannot expect the same.

    The server waits for the end of a run: `grace_s` is the job's grace and the time that a run may take.
    """
    text = schedule.expression.strip()
    expression = MACROS.get(text.lower(), text)
    if text[:6].upper() in ("RRULE:", "DTSTAR"):
        return "it is a recurrence, and the server knows cron expressions"
    if len(expression) > _LONGEST_SCHEDULE:
        return f"it has more than {_LONGEST_SCHEDULE} characters, and the server takes no more"
    try:
        ours = revisions.timetable(schedule, zone)
        theirs = revisions.timetable(Schedule(expression, schedule.zone), zone)
    except ScheduleError as error:
        return str(error)
    if why := _misread(expression, theirs, zone, now_us):
        return why
    if not _same(ours, theirs, now_us):
        rules = ", ".join(f"{name} {value}" for name, value in schedule._asdict().items() if name in _RULES and value)
        return f"with {rules} it has other windows than a server expects, which goes by Debian's cron"
    if schedule.zone == "localtime":
        return "the zone of this host has no name; name one (key timezone)"
    return _with_grace({"schedule": expression, "tz": schedule.zone}, grace_s)


def wish_without_schedule(max_age_s: float, *, grace_s: float) -> Wish | str:
    """Return the same for a job without a schedule, whose last success must not be older than `max_age_s`."""
    if not LEAST_S <= max_age_s <= MOST_S:
        return f"its max_age is {max_age_s:g} s, and the server takes {LEAST_S} to {MOST_S}"
    return _with_grace({"timeout": round(max_age_s)}, grace_s)


def _with_grace(fields: dict[str, Any], grace_s: float) -> Wish | str:
    whole_s = round(grace_s)
    if whole_s > MOST_S:
        return f"its grace and timeout are {whole_s} s together, and the server takes at most {MOST_S}"
    least = f"a grace of {whole_s} s is asked for; the least that the server takes is {LEAST_S}"
    return Wish({**fields, "grace": max(whole_s, LEAST_S)}, least if whole_s < LEAST_S else "")


def body_of(job: str, check: Check, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON that creates or updates a check: one that is known by its address keeps its name."""
    if check.uuid:
        return fields
    if check.slug:
        return {"slug": check.slug, **fields, "unique": ["slug"]}
    return {"name": job, **fields, "unique": ["name"]}


def words(status: int | None, said: str, check: Check) -> str:
    """Return what an answer that is no success means; `said` is the server's own text, or why there is none."""
    told = f" ({said})" if said else ""
    match status:
        case None:
            return f"no answer: {said}"
        case 400:
            return f"the server does not take this check{told}"
        case 401:
            return f"the server does not take the key of ping_api_key{told}"
        case 403 if check.uuid:
            return f"the check belongs to another project than the key of ping_api_key{told}"
        case 403:
            return f"the project has no room for another check, or the key of ping_api_key may only read{told}"
        case 404:
            return f"there is no such check, or no management API{told}; see ping_api_url"
        case 429:
            return f"the server asks for fewer requests{told}"
    return f"the server fails: HTTP {status}{told}" if status >= 500 else f"HTTP {status}{told}"


def _same(ours: Timetable, theirs: Timetable, now_us: int) -> bool:
    """Tell whether two readings of a schedule have the same dues, in the next ten years."""
    if ours.rule == theirs.rule:
        return True
    until_us = now_us + COMPARED_US
    return all(a == b for a, b in zip_longest(ours.dues(now_us, until_us), theirs.dues(now_us, until_us)))


def _misread(expression: str, timetable: Timetable, zone: Zone, now_us: int) -> str:
    """Return where the reader of cron expressions that servers use (cronsim) differs from Debian's cron, or ""."""
    for item in (item for field in expression.split() for item in field.split(",")):
        first, dash, rest = item.partition("-")
        last, slash, _ = rest.partition("/")
        if dash and slash and first == last:
            return f"a server takes {item!r} for '{first}/{rest.partition('/')[2]}': write {first!r}"
    for at_s, before_s, after_s in zone.changes(now_us // SECOND_US, (now_us + COMPARED_US) // SECOND_US):
        if (after_s - before_s) % 3600:
            return f"the clock of {zone.name} changes by a part of an hour, which a server cannot follow"
        skips_midnight = (at_s + before_s - 1) // DAY_S < (at_s + after_s - 1) // DAY_S
        following = timetable.next(at_s * SECOND_US - 1)
        wild = isinstance(timetable.cron, Cron) and timetable.cron.wild
        if wild and skips_midnight and following is not None and following.due_us != at_s * SECOND_US:
            return f"the clock of {zone.name} skips a midnight, at which a server expects it all the same"
    return ""
