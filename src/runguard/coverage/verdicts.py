"""One verdict for every window, with the reason as a clause (time.md, "Missing").

The latest start or waiver by sequence decides; a refused start never does.
"""

from __future__ import annotations

from runguard.instant import SECOND_US
from runguard.model import Window
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from runguard.coverage.onrecord import Refusal, Start, Waiver

# A change of the zone's data moves a due by no more: offsets differ by at most 26 hours.
MARGIN_US = 26 * 3600 * SECOND_US
_TIMES = {1: "once", 2: "twice"}
_NOT_DECIDING = ("refused", "superseded")


class Judged(NamedTuple):
    """A window with its verdict, of model.VERDICTS."""

    window: Window
    verdict: str
    because: str  # a clause: "no start at all", "waived by anna: planned downtime"
    runs: tuple[int, ...]  # the numbers of all starts that bear on it, refused ones too, by sequence
    suspect: str | None = None  # why the success is doubted


def judge(
    windows: Iterable[Window],
    starts: Iterable[Start],
    waivers: Iterable[Waiver],
    now_us: int,
    grace_us: int,
    *,
    span: tuple[int, int] | None = None,
) -> Iterator[Judged]:
    """Yield a verdict for each window, in their order, then for the windows that are on record only, by due.

    A window is known by its key. One that was run is shown with the bounds that were recorded, where those differ.
    The latter arise where a change of the zone's data or an edit moved a window; those that only refused starts name
    are not among them. Verdicts outside of `span` (`after < due <= until`) are left out: give the windows and starts
    of a span widened by MARGIN_US, lest a window that moved across an end of it be counted twice or not at all.
    """
    by_key: dict[str | None, list[Start]] = {}
    covering: list[Start] = []
    for start in sorted(starts, key=lambda start: start.seq):
        by_key.setdefault(start.key, []).append(start)
        if start.covers_first_us is not None and start.outcome not in _NOT_DECIDING:
            covering.append(start)
    covers, waived = _Covers(covering), Waivers(waivers)
    for window in windows:
        own = by_key.pop(window.key, [])
        shown = _as_recorded(window, own)
        if span is None or span[0] < shown.due_us <= span[1]:
            yield _verdict(shown, own, covers.of(window.due_us), waived.latest(window), now_us - grace_us)
    rest = [own for own in by_key.values() if own[0].key is not None and any(s.outcome != "refused" for s in own)]
    for own in sorted(rest, key=lambda own: own[-1].due_us):
        window = _recorded(own[-1])
        if span is None or span[0] < window.due_us <= span[1]:
            yield _verdict(window, own, [], waived.latest(window), now_us - grace_us)


def because_missing(refusals: Sequence[Refusal | Start], waiver: Waiver | None = None) -> str:
    """Return why nothing ran for a window: `refusals` by sequence, and the withdrawn waiver, if any."""
    clause = "no start at all"
    if refusals:
        last = refusals[-1]
        why = f"run {last.number} ({last.why})" if last.why else f"run {last.number}"
        clause = f"refused by {why}" if len(refusals) == 1 else f"refused {_times(len(refusals))}, last by {why}"
        if last.why == "deadline":
            clause = f"past its deadline, refused by run {last.number}"
    if waiver is not None and waiver.withdraw:
        clause += f"; the waiver was withdrawn by {waiver.actor or 'somebody'}"
    return clause


def because_waived(waiver: Waiver) -> str:
    """Return who waived and why: `waived by anna: planned downtime`."""
    by = f"waived by {waiver.actor}" if waiver.actor else "waived"
    return f"{by}: {waiver.reason}" if waiver.reason else by


class Waivers:
    """The waivers of a job, to find the one that decides about a window."""

    __slots__ = ("_by_key", "_spans")

    def __init__(self, waivers: Iterable[Waiver]) -> None:
        ascending = sorted(waivers, key=lambda waiver: waiver.seq)
        self._by_key = {waiver.key: waiver for waiver in ascending if waiver.key is not None}
        self._spans = [waiver for waiver in reversed(ascending) if waiver.key is None]

    def latest(self, window: Window) -> Waiver | None:
        """Return the latest waiver or withdrawal that matches."""
        own = self._by_key.get(window.key)
        for waiver in self._spans:
            if own is not None and own.seq > waiver.seq:
                return own
            if waiver.since_us is not None and waiver.until_us is not None:  # noqa: SIM102 - one is the type's reason
                if waiver.since_us < window.due_us <= waiver.until_us:
                    return waiver
        return own


class _Covers:
    """The starts that cover spans of dues, asked by ascending due."""

    def __init__(self, covering: list[Start]) -> None:
        self._waiting = sorted(covering, key=lambda start: start.covers_first_us or 0, reverse=True)
        self._open: list[Start] = []

    def of(self, due_us: int) -> list[Start]:
        """Return the starts that cover a due, by sequence."""
        while self._waiting and (self._waiting[-1].covers_first_us or 0) <= due_us:
            self._open.append(self._waiting.pop())
            self._open.sort(key=lambda start: start.seq)
        if self._open:
            self._open = [start for start in self._open if (start.covers_last_us or 0) >= due_us]
        return self._open


def _verdict(window: Window, own: list[Start], covering: list[Start], waiver: Waiver | None, graced_us: int) -> Judged:
    runs = sorted({start.seq: start.number for start in (*own, *covering)}.items())
    numbers = tuple(number for _, number in runs)
    ran = [start for start in own if start.outcome not in _NOT_DECIDING]
    # A run whose claim was taken over decides only where the record of who took it is wanting.
    ran = ran or [start for start in own if start.outcome == "superseded"]
    # A window's own run counts before one that covers it: it was not missing when that one caught up.
    deciding = next(iter((*ran[-1:], *covering[-1:])), None)
    if waiver is not None and not waiver.withdraw and (deciding is None or waiver.seq > deciding.seq):
        return Judged(window, "waived", because_waived(waiver), numbers)
    if deciding is not None:
        verdict = _verdict_of(deciding.outcome)
        covered = deciding not in ran
        because = _covered(deciding) if covered else _ran(verdict, ran)
        return Judged(window, verdict, because, numbers, deciding.suspect)
    clause = because_missing([start for start in own if start.outcome == "refused"], waiver)
    if window.due_us > graced_us:
        return Judged(window, "pending", "within the grace" if not own else f"within the grace, {clause}", numbers)
    return Judged(window, "missing", clause, numbers)


def _verdict_of(outcome: str) -> str:
    if outcome in ("succeeded", "running", "lost"):
        return outcome
    return "lost" if outcome == "superseded" else "failed"


def _covered(start: Start) -> str:
    return f"covered by run {start.number}, which {_said(start)}"


def _ran(verdict: str, ran: list[Start]) -> str:
    last = ran[-1]
    failures = sum(_verdict_of(start.outcome) == "failed" for start in ran)
    if verdict == "failed" and failures > 1:
        return f"failed {_times(failures)}, last run {last.number} {_said(last)}"
    return f"run {last.number} {_said(last)}"


def _said(start: Start) -> str:
    """Return what became of a start: "failed with exit status 3"."""
    if start.outcome == "failed":
        why = f" with exit status {start.exit_status}" if start.exit_status is not None else ""
        return f"failed{why}" + (f" ({start.why})" if start.why else "")
    if start.outcome == "succeeded":
        return f"succeeded, suspect: {start.suspect}" if start.suspect else "succeeded"
    told = {"running": "is running", "timed_out": "timed out", "lost": "was lost"}
    said = told.get(start.outcome, f"was {start.outcome}")
    return f"{said} ({start.why})" if start.why else said


def _times(number: int) -> str:
    return _TIMES.get(number, f"{number} times")


def _as_recorded(window: Window, own: list[Start]) -> Window:
    """Return the window as the latest run recorded it: what was recorded is history and is not derived again."""
    ran = [start for start in own if start.outcome != "refused"]
    if not ran or ran[-1].due_us == window.due_us:
        return window
    return _recorded(ran[-1])._replace(how=window.how, fold=window.fold, collapsed=window.collapsed)


def _recorded(start: Start) -> Window:
    key = start.key or ""
    fold = 1 if key.endswith("~2") else 0
    return Window(key, start.start_us, start.due_us, start.label or "", start.nominal or "", "real", fold)
