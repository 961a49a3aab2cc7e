"""What a monitor is told of one run: its start beside the command, its end after record and lock are done with.

Nothing on this path may change the exit status: every fault is a line on stderr and a row.
"""

from __future__ import annotations

from runguard import clock
from runguard.guard.excerpts import last_bytes
from runguard.guard.supervise import Beside
from runguard.heartbeat import client, styles
from runguard.heartbeat.body import MOST_BYTES, Body, compose, summary
from runguard.heartbeat.redact import mask_url
from runguard.instant import SECOND_US
from runguard.store.reads import Ping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from runguard.errors import RunguardError
    from runguard.guard.execution import Execution
    from runguard.guard.late import Late
    from runguard.guard.prepare import Prepared
    from runguard.guard.signals import Signals
    from runguard.guard.voice import Voice
    from runguard.heartbeat.client import Sending, Sent
    from runguard.model import Window
    from runguard.store.database import Appended

START_AFTER_S = 1.0  # a command that ends sooner needs only the ping of its end
LEFT_FOR_START_S = 3.0  # how long the end waits for the start's answer: a late start would set the timer going again
_LOOK_S = 0.25


class Monitor:
    """The heartbeat of one run. Without a usable URL it says nothing."""

    def __init__(self, prepared: Prepared, voice: Voice) -> None:
        settings = prepared.settings
        self._prepared = prepared
        self._voice = voice
        self._url = settings.ping or ""
        if self._url and (why := styles.usable(self._url)):
            voice(f"{why}; the job runs without a ping")
            self._url = ""
        self._style = settings.ping_style or (styles.detect(self._url) if self._url else "plain")
        self._limit = min(settings.ping_body_limit, MOST_BYTES)
        self._start: Sending | None = None
        self._start_at_us = 0
        self._pings: list[Ping] = []
        self._late: Late | None = None
        self._window: Window | None = None

    def beside(self) -> tuple[Beside, ...]:
        """Return what is sent beside the command: what earlier runs could not deliver, then the start ping."""
        return (Beside(START_AFTER_S, self._send_beside()),) if self._url else ()

    def late_rows(self) -> list[tuple[str, Ping]]:
        """Return the pings that told of earlier runs, each with its run."""
        return self._late.rows if self._late is not None else []

    def tell_end(self, done: Execution, window: Window | None, head: Appended | None, signals: Signals) -> list[Ping]:
        """Tell how the run ended and return every ping of it, for the record; `head` is the ledger's after its finish.

        Waits at most 15 s, 3 s once we were told to stop.
        """
        if not self._url:
            return []
        self._window = window
        verdict = done.verdict
        succeeded = verdict.outcome == "succeeded" and verdict.suspect is None
        summed_up = summary(
            outcome=verdict.outcome,
            exit_status=verdict.exit_status,
            signal=verdict.signal,
            duration_s=done.ended.duration_s if done.ended else None,
            label=window.label if window else None,
            host=self._prepared.author.host,
            run_id=self._prepared.start.run_id,
            ledger=(head.seq, head.hash) if head else None,
        )
        body = self._body(summed_up, done, succeeded)
        kind = "success" if succeeded else "failure"
        self._send_end(
            styles.Event(kind, self._prepared.start.run_id, verdict.returned, verdict.signal, body=body), signals
        )
        return self._pings

    def tell_refusal(self, error: RunguardError, signals: Signals) -> None:
        """Tell that nothing was started because that would have been unsafe: the monitor must not wait for it."""
        if self._url:
            body = compose(f"not started: {error}", secrets=self._prepared.secrets)
            self._send_end(styles.Event("failure", self._prepared.start.run_id, error.status, body=body), signals)

    def _send_end(self, event: styles.Event, signals: Signals) -> None:
        patience = _Patience(signals)
        cut = client.Cut(signals.fd, patience.told_to_stop)
        ended_us = clock.look().wall_us
        late = self._spooled()
        if late is not None:
            late.deliver_before_end(min(LEFT_FOR_START_S, patience.left_s() / 2), cut)
        acknowledged = False
        if self._start is not None:
            sent = client.collect(self._start, min(LEFT_FOR_START_S, patience.left_s() / 2), cut)
            acknowledged = sent.verdict == "accepted"
            self._limit = min(self._limit, sent.body_limit or MOST_BYTES)
            self._note("start", sent, self._start_at_us)
        at_us = clock.look().wall_us
        event = event._replace(rid_ok=acknowledged)
        sending = self._launch(event, patience.left_s())
        answer = client.collect(sending, patience.left_s(), cut) if sending is not None else None
        kept = late.conclude(self._prepared, self._window, event, ended_us, answer) if late is not None else ""
        if answer is not None:
            self._note(event.kind, answer, at_us, kept)

    def _body(self, summed_up: str, done: Execution, succeeded: bool) -> Body:
        """Return the text of the end's ping, its secrets masked; by default a success tells no output."""
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

    def _spooled(self) -> Late | None:
        """Return what waits in the spool for this monitor, or None where there is no place for one."""
        places = self._prepared.places
        if self._late is None and places is not None and self._prepared.unsafe is None:
            try:
                from runguard.guard.late import Late  # the command runs, or has ended
            except (ImportError, OSError, MemoryError) as error:  # no descriptor is left
                self._voice(f"nothing is kept for a later ping: {error}")
                return None
            self._late = Late(
                places.spool, self._prepared.start.job, self._style, (self._url,), self._launch, self._voice
            )
        return self._late

    def _send_beside(self) -> Iterator[float]:
        if (late := self._spooled()) is not None:
            yield from late.steps()
        if self._prepared.settings.ping_start:
            yield from self._send_start()

    def _send_start(self) -> Iterator[float]:
        self._start_at_us = clock.look().wall_us
        self._start = self._launch(styles.Event("start", self._prepared.start.run_id), client.DEADLINE_S)
        while self._start is not None and client.poll(self._start) is None:
            yield _LOOK_S

    def _launch(self, event: styles.Event, deadline_s: float) -> Sending | None:
        request = styles.request(self._style, self._url, event)
        if request is None:
            return None
        message = client.message(self._style, request, deadline_s=deadline_s, body_limit=self._limit)
        return client.launch(message, self._prepared.start.environ)

    def _note(self, event: str, sent: Sent, at_us: int, kept: str = "") -> None:
        target = mask_url(self._url)
        if sent.verdict != "accepted":
            self._voice(f"{event} ping to {target} not delivered: {sent.detail}{kept}")
        error = None if sent.verdict == "accepted" else sent.detail
        duration_us = round(sent.elapsed_s * SECOND_US)
        self._pings.append(
            Ping(event, self._style, target, sent.verdict, sent.status, sent.tries, at_us, duration_us, error)
        )


class _Patience:
    """One deadline for all pings of an end: 15 s, or 3 s from when we were told to stop."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._until_s = clock.look().monotonic_s + client.DEADLINE_S
        self._stopped = False
        self.told_to_stop()

    def left_s(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self._until_s - clock.look().monotonic_s)

    def told_to_stop(self) -> bool:
        """Return whether we were told to stop, which shortens the deadline."""
        self._signals.take()
        if self._signals.stop is not None and not self._stopped:
            self._stopped = True
            self._until_s = min(self._until_s, clock.look().monotonic_s + client.STOPPED_DEADLINE_S)
        return self._stopped
