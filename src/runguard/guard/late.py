"""The spool of one run's job: what monitors have not heard is told beside the command, before the run's own outcome.

Imported once the command runs or has ended. Nothing here raises: what cannot be kept or read is said.
"""

from __future__ import annotations

import os
import time

from runguard import clock, zones
from runguard.errors import ScheduleError, ZoneError, reason
from runguard.heartbeat import client, spool
from runguard.heartbeat.lateness import is_too_soon, kind_now, late_event, valid_until_us
from runguard.heartbeat.redact import mask_url
from runguard.heartbeat.slot import Slot
from runguard.instant import SECOND_US, rfc3339
from runguard.record import NamedTuple
from runguard.schedule import revisions
from runguard.store.reads import Ping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runguard.guard.prepare import Prepared
    from runguard.heartbeat.client import Cut, Sending, Sent
    from runguard.heartbeat.event import Event
    from runguard.heartbeat.spool import Claim
    from runguard.heartbeat.targets import Target
    from runguard.model import Window

    Launch = Callable[[Event, float], Sending | None]  # None: the style says nothing then

LOOK_S = 0.25
_WAIT_LOOK_S = 0.05


class Delivery(NamedTuple):
    """A slot on its way to its monitor."""

    claim: Claim
    kind: str  # success | failure | log
    at_us: int
    sending: Sending


class Told(NamedTuple):
    """What came of a slot: the row of its run, and sentences for a person where something is wrong."""

    run_id: str
    ping: Ping
    said: str = ""  # it was not delivered
    unkept: str = ""  # the spool cannot be written


def begin(claim: Claim, kind: str, launch: Launch) -> Delivery | Told:
    """Start the helper on a slot. Where its style has nothing to say for it, the slot is dropped."""
    now_us = clock.look().wall_us
    sending = launch(late_event(claim.slot, kind, now_us), client.DEADLINE_S)
    if sending is not None:
        return Delivery(claim, kind, now_us, sending)
    return Told(claim.slot.run_id, row(claim.slot, "dropped", why_dropped(claim.slot)), unkept=_drop(claim))


def end(delivery: Delivery, sent: Sent) -> Told:
    """Do with a slot what the answer to its delivery asks for."""
    claim, kind, at_us, _ = delivery
    slot = claim.slot
    duration_us = round(sent.elapsed_s * SECOND_US)
    error = None if sent.verdict == "accepted" else sent.detail
    ping = Ping(kind, slot.style, slot.target, sent.verdict, sent.status, sent.tries, at_us, duration_us, error)
    accepted = sent.verdict == "accepted"
    said = "" if accepted else f"{slot.event} of run {slot.run_id} to {slot.target} not delivered: {sent.detail}"
    if accepted or sent.verdict == "final" or kind == "log":
        return Told(slot.run_id, ping, said, _drop(claim))
    try:
        claim.put_back(sent.detail)
    except OSError as unkept:  # it stays as it was
        return Told(slot.run_id, ping, said, f"{claim.path}: {reason(unkept)}")
    return Told(slot.run_id, ping, said)


def row(slot: Slot, verdict: str, why: str) -> Ping:
    """Return the row of a slot of which nothing is sent."""
    return Ping(slot.event, slot.style, slot.target, verdict, None, 0, None, None, why)


def why_dropped(slot: Slot) -> str:
    """Return why a success is not told any more."""
    until = f", from {rfc3339(slot.until_us)} on the next run is waited for" if slot.until_us is not None else ""
    return f"too late{until}"


class Late:
    """What waits in the spool `directory` for one monitor of a job; `launch` starts a helper on an event.

    `others` are the job's other monitors: what waits for them is theirs. `rows` are those that came of it, each with
    the run that it tells of.
    """

    def __init__(
        self,
        directory: str,
        job: str,
        target: Target,
        others: tuple[Target, ...],
        launch: Launch,
        voice: Callable[[str], None],
    ) -> None:
        self.rows: list[tuple[str, Ping]] = []
        self._directory = directory
        self._job = job
        self._target = target
        self._others = others
        self._launch = launch
        self._voice = voice
        self._delivery: Delivery | None = None

    def steps(self) -> Iterator[float]:
        """Deliver beside the command, as steps that yield the seconds until the next one is wanted."""
        self._begin(superseded=False)
        while self._delivery is not None and (sent := client.poll(self._delivery.sending)) is None:
            yield LOOK_S
        if self._delivery is not None:
            self._end(sent)

    def deliver_before_end(self, limit_s: float, cut: Cut) -> None:
        """Deliver what waits still, or see through what is under way, within `limit_s`, before the outcome is told.

        A delivery by another process is waited for as long: what it sends must not come after what we send.
        """
        until_s = time.monotonic() + limit_s
        while self._delivery is None and self._begin(superseded=True) and time.monotonic() < until_s:
            time.sleep(_WAIT_LOOK_S)
        if self._delivery is not None:
            self._end(client.collect(self._delivery.sending, max(0.0, until_s - time.monotonic()), cut))

    def conclude(self, prepared: Prepared, window: Window | None, event: Event, at_us: int, sent: Sent | None) -> str:
        """Let the spool know what became of the outcome `event` of `at_us`: `sent`, or None where the style says none.

        An outcome that was not delivered is kept for later; returns what a person is told of that, or "".
        """
        if sent is None or sent.verdict != "undelivered":
            self._settle(at_us, event.run_id, heard=True)
            return ""
        from_us = _counts_from_us(prepared, window, at_us)
        until_us = _valid_until_us(prepared, from_us) if event.kind == "success" else None
        try:
            address = spool.address(self._directory, *self._target.addresses)
            target = mask_url(self._target.url(event.kind))
            style, source = self._target.style, prepared.ping_source if self._target.is_ping else ""
            slot = Slot(self._job, at_us, from_us, until_us, 1, sent.detail, style, target, source, address, event)
            if not spool.keep(self._directory, slot, clock.look().wall_us):
                return "; not kept: the outcome of a later run is"
        except (OSError, MemoryError, ValueError, TypeError) as error:
            self._settle(at_us, event.run_id, heard=False)  # an older outcome must not be told after this one
            return f"; it cannot be kept for later: {self._directory}: {reason(error)}"
        return "; kept: the next run, or runguard ping, sends it"

    def _settle(self, at_us: int, run_id: str, *, heard: bool) -> None:
        """Remove what an outcome of `at_us` has superseded.

        `heard`: the monitor knows it, or is not to know it, so that no other address of the job is waited for either.
        """
        waiting = spool.waiting(self._directory, self._job)
        others = [self._path(each) for each in self._others] if waiting else []
        for path in waiting:
            ours = path == self._path(self._target)
            if path in others or not (ours or heard):
                continue
            try:
                slot = spool.supersede(path, at_us, clock.look().wall_us)
            except OSError as error:
                self._voice(f"{path}: {reason(error)}; what it holds may be sent again")
                continue
            if slot is None:
                continue
            self.rows.append((slot.run_id, row(slot, "dropped", f"superseded by the outcome of run {run_id}")))
            if not ours:
                lost = "was never delivered, and the address of the job is another one now; dropped"
                self._voice(f"{slot.event} of run {slot.run_id} to {slot.target} {lost}")

    def _path(self, target: Target) -> str | None:
        """Return where the slot of a monitor of this job is, or None where there cannot be any."""
        try:
            return os.path.join(self._directory, f"{self._job}~{spool.address(self._directory, *target.addresses)}")
        except OSError as error:
            self._voice(f"{self._directory}: {reason(error)}; what it holds is not sent")
            return None

    def _begin(self, *, superseded: bool) -> bool:
        """Begin to deliver what waits for our address; returns whether another process is at it."""
        if not spool.waiting(self._directory, self._job):
            return False
        path = self._path(self._target)
        if path is None:
            return False
        claimed = spool.claim(path)
        if claimed is None:
            return os.path.lexists(path)
        if isinstance(claimed, str):
            self._voice(claimed)
            return False
        now_us = clock.look().wall_us
        if is_too_soon(claimed.slot, now_us) and not superseded:
            claimed.close()
            return False
        kind = kind_now(claimed.slot, now_us, superseded=superseded)
        begun = begin(claimed, kind, self._launch)
        if isinstance(begun, Delivery):
            self._delivery = begun
        else:
            self._note(begun)
        return False

    def _end(self, sent: Sent | None) -> None:
        assert self._delivery is not None
        assert sent is not None
        delivery, self._delivery = self._delivery, None
        self._note(end(delivery, sent))

    def _note(self, told: Told) -> None:
        self.rows.append((told.run_id, told.ping))
        for sentence in (told.said, told.unkept):
            if sentence:
                self._voice(sentence)


def _counts_from_us(prepared: Prepared, window: Window | None, at_us: int) -> int:
    """Return from when on a run that ended at `at_us` counts for its window: not before that is due.

    Who names an instant far ahead does not mean the clock's.
    """
    early_us = round(prepared.settings.early_s * SECOND_US)
    return window.due_us if window is not None and at_us < window.due_us <= at_us + early_us else at_us


def _valid_until_us(prepared: Prepared, from_us: int) -> int | None:
    """Return until when a success may be told as one; see lateness.valid_until_us."""
    expected = prepared.start.expected
    timetable = expected.timetable if expected is not None else None
    try:
        if expected is not None and timetable is None:  # the window was asked for
            zone = zones.load(expected.schedule.zone).zone
            timetable = revisions.timetable(expected.schedule, zone)
    except (ScheduleError, ZoneError):
        timetable = None
    return valid_until_us(from_us, timetable)


def _drop(claim: Claim) -> str:
    """Remove a slot; returns "" or what is wrong."""
    try:
        claim.drop()
    except OSError as error:
        return f"{claim.path}: {reason(error)}; what it holds may be sent again"
    return ""
