"""What monitors are told of one run: its start beside the command, its end after record and lock are done with.

Nothing on this path may change the exit status: every fault is a line on stderr and a row. What it needs is imported
beside the command, or after its end.
"""

from __future__ import annotations

from runguard import clock
from runguard.guard.supervise import Beside
from runguard.instant import SECOND_US, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runguard.errors import RunguardError
    from runguard.guard.ending import Verdict
    from runguard.guard.execution import Execution
    from runguard.guard.listener import Listener
    from runguard.guard.prepare import Prepared
    from runguard.guard.signals import Signals
    from runguard.guard.voice import Voice
    from runguard.heartbeat.body import Body
    from runguard.heartbeat.event import Event
    from runguard.model import Window
    from runguard.store.database import Appended
    from runguard.store.reads import Ping

START_AFTER_S = 1.0  # a command that ends sooner needs only the ping of its end
LOAD_AFTER_S = 0.1
LEFT_FOR_START_S = 3.0  # how long the end waits for the start's answer: a late start would set the timer going again
_LOOK_S = 0.25
_NEEDED = (
    "runguard.heartbeat.body",
    "runguard.heartbeat.styles",
    "runguard.heartbeat.targets",
    "runguard.heartbeat.client",
    "runguard.guard.deadline",
    "runguard.guard.listener",  # and with it late.py
    "runguard.guard.excerpts",
)
# Refusals that leave their window without its work: a success would hide that.
_UNDONE = ("held", "deadline")


class Monitor:
    """The heartbeats of one run. Without a usable address it says nothing."""

    def __init__(self, prepared: Prepared, voice: Voice) -> None:
        self._prepared = prepared
        self._voice = voice
        self._found: tuple[Listener, ...] | None = None

    def beside(self) -> tuple[Beside, ...]:
        """Return what is done beside the command.

        Making ready for its end; telling what earlier runs could not, and the start.
        """
        ready, told = self._make_ready(), self._tell_beside()
        return Beside(LOAD_AFTER_S, self._quietly(ready)), Beside(START_AFTER_S, self._quietly(told))

    def late_rows(self) -> list[tuple[str, Ping]]:
        """Return the pings that told of earlier runs and attempts, each with its run."""
        own = self._prepared.start.run_id
        rows = [row for listener in self._found or () for row in (*listener.late_rows, *listener.pings)]
        return [row for row in rows if row[0] != own]

    def tell_attempt(self, done: Execution, window: Window | None) -> None:
        """Tell how an attempt ended after which another one follows: at most a line in a monitor's log. Never waits."""

        def tell() -> None:
            from runguard.heartbeat.client import DEADLINE_S

            event = self._end_event("log", done, window, self._summary(done, window, None))
            for listener in self._listeners():
                listener.tell(event._replace(rid_ok=True), DEADLINE_S)

        self._safely(tell)

    def again(self, prepared: Prepared) -> Monitor:
        """Return the heartbeat of the next attempt; what came of this one's pings is among its `late_rows`."""
        following = Monitor(prepared, self._voice)
        following._found = self._found
        return following

    def tell_end(self, done: Execution, window: Window | None, head: Appended | None, signals: Signals) -> list[Ping]:
        """Tell how the run ended and return its pings, for the record; `head` is the ledger's after its finish.

        Waits at most 15 s, 3 s once we were told to stop: for the window's due too, where the run ended before it.
        """

        def tell() -> None:
            verdict = done.verdict
            kind = "success" if verdict.outcome == "succeeded" and verdict.suspect is None else "failure"
            summed_up = self._summary(done, window, head)
            event = self._end_event(kind, done, window, summed_up)
            self._send(event, signals, (self._prepared, window), self._due_to_wait_for(window))

        self._safely(tell)
        return self._pings()

    def tell_skip(self, verdict: Verdict, signals: Signals) -> list[Ping]:
        """Tell of a start that was refused for another run or for what is on record, as `ping_on_skip` has it.

        Returns the pings, for the record. By default nothing is told: it would hide a run that hangs.
        """
        kind = self._prepared.settings.ping_on_skip
        if kind == "success" and verdict.why in _UNDONE:
            kind = "log"

        def tell() -> None:
            from runguard.heartbeat.body import compose

            body = compose(f"not run ({verdict.why})", secrets=self._prepared.secrets)
            # With our own run id, which no monitor knows, the timer of a run that goes on is left alone.
            event = self._event(kind, body)._replace(exit_status=verdict.returned, rid_ok=True)
            self._send(event, signals, None)

        if kind != "none":
            self._safely(tell)
        return self._pings()

    def tell_refusal(self, error: RunguardError, signals: Signals) -> None:
        """Tell that nothing was started because that would have been unsafe: the monitor must not wait for it."""

        def tell() -> None:
            from runguard.heartbeat.body import compose

            body = compose(f"not started: {error}", secrets=self._prepared.secrets)
            event = self._event("failure", body)._replace(exit_status=error.status)
            self._send(event, signals, (self._prepared, None))

        self._safely(tell)

    def _send(
        self,
        event: Event,
        signals: Signals,
        spooled: tuple[Prepared, Window | None] | None,
        due_us: int | None = None,
    ) -> None:
        """Tell every monitor, after the due instant where there is one; `spooled`: keep for later what gets lost."""
        from runguard.guard.deadline import Deadline
        from runguard.heartbeat import client

        deadline = Deadline(signals, client.DEADLINE_S, client.STOPPED_DEADLINE_S)
        cut = client.Cut(signals.fd, deadline.told_to_stop)
        first = Deadline(signals, min(LEFT_FOR_START_S, deadline.left_s() / 2), client.STOPPED_DEADLINE_S)
        for listener in self._listeners():
            if spooled is not None:
                listener.finish_before(first.left_s(), cut)
        too_early = ""
        if due_us is not None and not deadline.wait_until(due_us):
            too_early = f"before its due, {rfc3339(due_us)}, it would count for the window before"
        for listener in self._listeners():
            if not too_early:
                listener.tell(event, deadline.left_s())
        for listener in self._listeners():
            listener.conclude(event, deadline.left_s(), cut, spooled, too_early)

    def _listeners(self) -> tuple[Listener, ...]:
        """Return the job's monitors; an address that cannot be used is said once."""
        if self._found is None:
            from runguard.guard.listener import Listener
            from runguard.heartbeat.targets import targets_of

            found = targets_of(self._prepared.settings)
            for why in found.flaws:
                self._voice(f"{why}; the job runs without that ping")
            self._found = tuple(
                Listener(target, tuple(each for each in found.targets if each != target), self._prepared, self._voice)
                for target in found.targets
            )
        return self._found

    def _make_ready(self) -> Iterator[None]:
        """Import what the end needs: the package may be upgraded before."""
        for module in _NEEDED:
            __import__(module)
            yield None
        self._listeners()

    def _tell_beside(self) -> Iterator[float]:
        start = self._event("start") if self._prepared.settings.ping_start else None
        due_us = self._due_to_wait_for(self._window())
        work = [listener.beside(start, due_us) for listener in self._listeners()]
        while waits_s := [wait_s for steps in work if (wait_s := next(steps, None)) is not None]:
            yield min(_LOOK_S, *waits_s) if len(work) > 1 else waits_s[0]

    def _window(self) -> Window | None:
        expected = self._prepared.start.expected
        return expected.resolution.window if expected else None

    def _due_to_wait_for(self, window: Window | None) -> int | None:
        """Return the due that no ping may come before, since it would count for the window before; or None.

        That is for starts a little before their due. Who names an instant far ahead does not mean the clock's.
        """
        start = self._prepared.start
        early_us = round(self._prepared.settings.early_s * SECOND_US)
        if window is None or not start.at_us < window.due_us <= start.at_us + early_us:
            return None
        return window.due_us

    def _event(self, kind: str, body: Body | None = None) -> Event:
        from runguard.heartbeat.body import EMPTY
        from runguard.heartbeat.event import Event

        start, window = self._prepared.start, self._window()
        return Event(
            kind,
            start.run_id,
            rid_ok=False,
            body=body or EMPTY,
            job=start.job,
            host=self._prepared.author.host,
            due_us=window.due_us if window else None,
            at_us=clock.look().wall_us,
            text_limit_bytes=self._prepared.settings.ping_body_limit,
        )

    def _end_event(self, kind: str, done: Execution, window: Window | None, summed_up: str) -> Event:
        return self._event(kind, self._body(summed_up, done, kind == "success"))._replace(
            exit_status=done.verdict.returned,
            due_us=window.due_us if window else None,
            duration_s=done.ended.duration_s if done.ended else None,
        )

    def _summary(self, done: Execution, window: Window | None, head: Appended | None) -> str:
        from runguard.heartbeat.body import summary

        doubt = f", but {done.verdict.suspect}" if done.verdict.suspect else ""  # it is told as a failure
        return summary(
            outcome=done.verdict.outcome + doubt,
            exit_status=done.verdict.exit_status,
            signal=done.verdict.signal,
            duration_s=done.ended.duration_s if done.ended else None,
            label=window.label if window else None,
            host=self._prepared.author.host,
            run_id=self._prepared.start.run_id,
            ledger=(head.seq, head.hash) if head else None,
        )

    def _body(self, summed_up: str, done: Execution, succeeded: bool) -> Body:
        """Return the text of the end's ping, its secrets masked; by default a success tells no output."""
        from runguard.guard.excerpts import last_bytes
        from runguard.heartbeat.body import compose

        settings, output, omitted_bytes = self._prepared.settings, b"", 0
        if settings.ping_output == "always" or (settings.ping_output == "on-failure" and not succeeded):
            kept = done.capture.kept()
            output = last_bytes(kept.tail) if kept.omitted_bytes else last_bytes(kept.head) + last_bytes(kept.tail)
            omitted_bytes = done.capture.total - len(output)
        return compose(
            summed_up,
            output,
            omitted_bytes=omitted_bytes,
            secrets=self._prepared.secrets,
            patterns=settings.mask,
        )

    def _safely(self, tell: Callable[[], None]) -> None:
        """Tell. Whatever fails here is no reason for another status."""
        try:
            tell()
        except Exception as error:  # noqa: BLE001 - its text may hold an address
            self._voice(f"the ping failed: {type(error).__name__}")

    def _quietly(self, steps: Iterator[float | None]) -> Iterator[float | None]:
        """Take steps beside the command; what fails in them is told without its text."""
        try:
            yield from steps
        except Exception as error:  # noqa: BLE001
            self._voice(f"the ping failed: {type(error).__name__}")

    def _pings(self) -> list[Ping]:
        """Return what became of every ping of this run so far, in the order in which they were sent."""
        own = self._prepared.start.run_id
        pings = [ping for listener in self._found or () for run_id, ping in listener.pings if run_id == own]
        return sorted(pings, key=lambda ping: ping.sent_us or 0)
