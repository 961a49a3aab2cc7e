"""One monitor during one run: what it is told, what came of that, and what waits for it in the spool."""

from __future__ import annotations

from runguard import clock
from runguard.guard.late import Late
from runguard.heartbeat import client
from runguard.heartbeat.body import MOST_BYTES
from runguard.heartbeat.client import Sent
from runguard.heartbeat.redact import mask_url
from runguard.instant import SECOND_US
from runguard.store.reads import Ping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runguard.guard.prepare import Prepared
    from runguard.heartbeat.client import Cut, Sending
    from runguard.heartbeat.event import Event
    from runguard.heartbeat.targets import Target
    from runguard.model import Window

LOOK_S = 0.25


class Listener:
    """A monitor, and what it was told so far: `pings`, each with its run. What it did not take is said."""

    def __init__(
        self, target: Target, others: tuple[Target, ...], prepared: Prepared, say: Callable[[str], None]
    ) -> None:
        self.pings: list[tuple[str, Ping]] = []
        self._target = target
        self._environ = prepared.start.environ
        self._limit_bytes = min(prepared.settings.ping_body_limit, MOST_BYTES)
        self._say = say
        self._under_way: list[tuple[Event, Sending, int]] = []
        self._heard_start_of = ""  # a run
        self._series = ""  # the first attempt whose start it was told: it may wait for the end of that very id
        places = prepared.places if prepared.unsafe is None else None
        self._late = Late(places.spool, prepared.start.job, target, others, self._launch, say) if places else None

    @property
    def late_rows(self) -> list[tuple[str, Ping]]:
        """The pings that told of earlier runs, each with its run."""
        return self._late.rows if self._late is not None else []

    def beside(self, start: Event | None, due_us: int | None) -> Iterator[float]:
        """Tell beside the command what earlier runs could not, then the start: not before the due, if there is one.

        Yields the seconds until the next step is wanted.
        """
        if self._late is not None:
            yield from self._late.steps()
        if start is None:
            return
        while due_us is not None and (left_us := due_us - clock.look().wall_us) > 0:
            yield left_us / SECOND_US
        self.tell(start._replace(at_us=clock.look().wall_us), client.DEADLINE_S)
        while any(client.poll(sending) is None for _, sending, _ in self._under_way):
            yield LOOK_S

    def finish_before(self, limit_s: float, cut: Cut) -> None:
        """See through what must not come after the outcome, within `limit_s`: what waits in the spool, the start."""
        until_s = clock.look().monotonic_s + limit_s
        if self._late is not None:
            self._late.deliver_before_end(limit_s, cut)
        under_way, self._under_way = self._under_way, []
        for event, sending, at_us in under_way:
            self._note(event, client.collect(sending, max(0.0, until_s - clock.look().monotonic_s), cut), at_us)

    def tell(self, event: Event, deadline_s: float) -> None:
        """Start to send, if this monitor is told of such events at all. Never waits."""
        if event.kind == "start":
            self._series = self._series or event.run_id
        event = event._replace(rid_ok=event.rid_ok or self._heard_start_of == event.run_id, series=self._series)
        sending = self._launch(event, deadline_s)
        if sending is not None:
            self._under_way.append((event, sending, clock.look().wall_us))

    def conclude(
        self, event: Event, deadline_s: float, cut: Cut, spooled: tuple[Prepared, Window | None] | None, too_early: str
    ) -> None:
        """Wait at most `deadline_s` for the answer to an outcome; `too_early` is why it was not told at all, if so.

        One that was not delivered is kept for later where it is `spooled`.
        """
        at_us, sent = event.at_us, None
        if self._under_way:
            event, sending, at_us = self._under_way.pop()
            sent = client.collect(sending, deadline_s, cut)
        elif too_early and self._target.request(event) is not None:
            sent = Sent("undelivered", None, 0, too_early, 0.0)
        kept = ""
        if self._late is not None and spooled is not None:
            kept = self._late.conclude(*spooled, event, event.at_us, sent)
        if sent is not None:
            self._note(event, sent, at_us, kept)

    def _launch(self, event: Event, deadline_s: float) -> Sending | None:
        request = self._target.request(event)
        if request is None:
            return None
        style, limit_bytes = self._target.style, self._limit_bytes
        return client.launch(
            client.message(style, request, deadline_s=deadline_s, body_limit=limit_bytes), self._environ
        )

    def _note(self, event: Event, sent: Sent, at_us: int, kept: str = "") -> None:
        accepted = sent.verdict == "accepted"
        if accepted and event.kind == "start":
            self._heard_start_of = event.run_id
        self._limit_bytes = min(self._limit_bytes, sent.body_limit or MOST_BYTES)
        target = mask_url(self._target.url(event.kind))
        if not accepted:
            self._say(f"{event.kind} ping to {target} not delivered: {sent.detail}{kept}")
        duration_us, error = round(sent.elapsed_s * SECOND_US), None if accepted else sent.detail
        style = self._target.style
        self.pings.append(
            (
                event.run_id,
                Ping(event.kind, style, target, sent.verdict, sent.status, sent.tries, at_us, duration_us, error),
            )
        )
