"""From a command line to a start: options and configuration, one look at the clock, the window.

Nothing is locked, recorded or spawned yet, and no mistake in a schedule, zone or ping stops the job: it is said, and
the job runs without.
"""

from __future__ import annotations

import os

from runguard import clock, config, paths, zones
from runguard.errors import RunguardError, ScheduleError, UnsafeError, ZoneError
from runguard.guard import host
from runguard.guard.start import Expected, Start, new_run_id, parent_of
from runguard.heartbeat import redact
from runguard.instant import SECOND_US
from runguard.model import Asked, Resolution, Schedule
from runguard.paths import Places
from runguard.record import NamedTuple
from runguard.schedule import revisions
from runguard.settings import Request, Settings
from runguard.store.lines import Author

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runguard.guard.lock import Lock

    Say = Callable[[str], None]


NOTHING_STARTED = "; nothing was started"


class Prepared(NamedTuple):
    """A start with its settings. `unsafe` is why it must not go on, if it must not."""

    start: Start
    settings: Settings
    author: Author
    places: Places | None
    secrets: tuple[str, ...]
    unsafe: RunguardError | None
    ping_source: str = ""  # "file:/PATH" or "--ping" where the address was given as an option


class Turn(NamedTuple):
    """A start whose turn it is. `held` is None where it runs beside others, one of which holds the lock alone."""

    prepared: Prepared
    held: Lock | None


def prepare(request: Request, environ: dict[str, str], say: Say) -> Prepared:
    """Return what is to be started. Faults that a job survives are said; the others are in `unsafe`."""
    real = "dry_run" not in request.values
    state, unsafe = _state(environ, make=real)
    loaded = config.load(environ, state, remember=real)
    settings, problems = config.effective(request.values, environ, loaded, request.job)
    origin = config.Origin(request.values, environ, loaded, request.job)
    for problem in problems:
        if problem.severity == "unsafe":
            unsafe = unsafe or UnsafeError(problem.text + NOTHING_STARTED)
        else:
            say(problem.text + _consequence(problem.breaks))
    look = clock.look()
    asked = request.asked
    intended_us = asked.window.due_us if asked and asked.window else _intended_us(settings, environ, look.wall_us)
    ticks = host.start_ticks(os.getpid())
    world = environ
    if settings.like_cron:
        from runguard.guard import like_cron  # a person tries a line

        world = like_cron.enter(say)
    start = Start(
        run_id=new_run_id(),
        job=request.job,
        argv=request.command,
        shell=settings.shell,
        cwd=_working_directory(),
        environ=world,
        at_us=look.wall_us,
        at_since_boot_s=look.since_boot_s,
        intended_us=intended_us,
        expected=_asked_for(asked, look.wall_us) if asked else _expected(settings, intended_us, say, origin),
        asked=asked,
        covers=request.covers,
        trigger=asked.trigger if asked else "manual" if settings.reason is not None else "schedule",
        reason=settings.reason,
        parent=parent_of(environ),
        boot_id=host.boot_id(),
        guard_pid=os.getpid(),
        guard_ticks=ticks,
    )
    secrets = redact.secrets_of(environ, *settings.ping_urls)
    places = paths.places(state, settings.store) if state else None
    return Prepared(start, settings, host.author(environ), places, secrets, unsafe, _ping_source(request))


def schedule_of(settings: Settings) -> Schedule | None:
    """Return the schedule of a job, in the host's zone where it names none, or None."""
    if settings.schedule is None:
        return None
    zone = settings.timezone or zones.host_zone_name()
    return Schedule(settings.schedule, zone, settings.policy, settings.gap, settings.fold)


def early_us(settings: Settings) -> int:
    """Return how much before a due a start answers it already."""
    return round(settings.early_s * SECOND_US)


def _ping_source(request: Request) -> str:
    given = request.values.get("ping")
    if given is None:
        return ""
    return given if isinstance(given, str) and given.startswith("file:") else "--ping"


def _state(environ: dict[str, str], *, make: bool) -> tuple[str | None, RunguardError | None]:
    try:
        state = paths.state_directory(environ)
        return paths.prepare(state) if make else state, None
    except UnsafeError as error:
        said = str(error)
        return None, error if said.endswith(NOTHING_STARTED) else UnsafeError(said + NOTHING_STARTED)


def _intended_us(settings: Settings, environ: dict[str, str], now_us: int) -> int:
    """Return the instant whose window is answered: given, or the timer's, or now.

    systemd's variable counts only in the very process that systemd started: a shell deep inside a long-lived service
    inherits it too, and would answer the same window for ever.
    """
    if settings.scheduled_at_us is not None:
        return settings.scheduled_at_us
    timer_us = environ.get("TRIGGER_TIMER_REALTIME_USEC", "")
    ours = environ.get("SYSTEMD_EXEC_PID") == str(os.getpid())
    return int(timer_us) if ours and timer_us.isascii() and timer_us.isdigit() and len(timer_us) < 18 else now_us


def _expected(settings: Settings, intended_us: int, say: Say, origin: config.Origin) -> Expected | None:
    """Return what the start answers; None, said with the `origin` of what cannot be read, where that is not known."""
    schedule = schedule_of(settings)
    if schedule is None:
        return None
    try:
        data = zones.load(schedule.zone)
        timetable = revisions.timetable(schedule, data.zone)
        resolution = revisions.resolve(timetable, intended_us, early_us=early_us(settings))
    except ScheduleError as error:
        named = str(error) if error.text else f"schedule {schedule.expression!r}: {error.why}"
        where = origin("schedule")
        say(f"{where}{named.removeprefix('schedule ') if where else named}{_consequence('window')}")
        return None
    except ZoneError as error:
        say(f"{origin('timezone')}{error}{_consequence('window')}")
        return None
    return Expected(schedule, timetable, data.tzdata, resolution)


def _asked_for(asked: Asked, now_us: int) -> Expected | None:
    window = asked.window
    if window is None or asked.schedule is None:
        return None
    late_s = (now_us - window.due_us) / SECOND_US
    return Expected(asked.schedule, None, asked.tzdata, Resolution(window, late_s, None, off_schedule=False))


def _consequence(breaks: str) -> str:
    consequences = {
        "window": "; the job runs without a window",
        "ping": "; the job runs without a ping",
        "that ping": "; the job runs without that ping",
    }
    return consequences.get(breaks, "")


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was deleted: the command finds the same
