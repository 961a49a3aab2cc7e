"""The windows that nobody answered, over spans of any length in constant memory.

The dues that a schedule expects and those that were answered are sets of numbers, so nearly all windows are never
built. A due says which window it is only as long as the zone's data stay: where the two sets differ, keys decide.
"""

from __future__ import annotations

from runguard.coverage.verdicts import MARGIN_US, Judged, Waivers, because_missing
from runguard.instant import DAY_S, SECOND_US
from runguard.record import NamedTuple
from runguard.schedule.windows import beginning_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from runguard.coverage.onrecord import Record, Refusal, Span
    from runguard.model import Window
    from runguard.schedule.revisions import Succession

_PIECE_US = 60 * DAY_S * SECOND_US  # 86,400 dues of a minutely job are held at once


def missing(
    expected: Succession, record: Record, job: str, since_us: int, now_us: int, grace_us: int
) -> Iterator[Judged]:
    """Yield the missing windows of `since < due <= now - grace`, ascending: neither run, nor covered, nor waived."""
    until_us = now_us - grace_us
    waivers = Waivers(record.waivers(job, since_us, until_us))
    after_us = since_us
    while after_us < until_us:
        end_us = min(after_us + _PIECE_US, until_us)
        windows = _never_run(expected, record, job, (after_us, end_us), (since_us, until_us))
        if windows:
            yield from _unanswered(windows, record, job, waivers)
        after_us = end_us


class Gap(NamedTuple):
    """Missing windows as one: the first of them, the due of the last, and how many they are."""

    first: Window
    last_due_us: int
    windows: int


def gap(expected: Succession, record: Record, job: str, since_us: int, until_us: int) -> Gap | None:
    """Return the missing windows of `since < due <= until` as one, or None where there is none.

    Where keys are instants they are counted without being built: years of a minutely job in a moment.
    """
    waived = record.waivers(job, since_us, until_us)
    first: Window | None = None
    last_us, count, after_us = 0, 0, since_us
    while after_us < until_us:
        end_us = min(after_us + _PIECE_US, until_us)
        if expected.by_instant(after_us, end_us) and not waived:
            left = _left(expected, after_us, end_us, set(record.answered_dues(job, after_us, end_us)))
            left = _uncovered(left, record.covers(job, after_us, end_us))
            if left and first is None:
                first = next(iter(expected.windows_at(left[:1])))
            count += len(left)
            last_us = left[-1][0] if left else last_us
        else:
            for found in missing(expected, record, job, after_us, end_us, 0):
                first = first or found.window
                count, last_us = count + 1, found.window.due_us
        after_us = end_us
    return Gap(first, last_us, count) if first is not None else None


def _never_run(
    expected: Succession, record: Record, job: str, span: tuple[int, int], whole: tuple[int, int]
) -> list[Window]:
    """Return the windows of a span, a piece of `whole`, that no start was let run for."""
    after_us, until_us = span
    if expected.by_instant(after_us, until_us):
        answered = set(record.answered_dues(job, after_us, until_us))
        left = _left(expected, after_us, until_us, answered)
        return list(expected.windows_at(_uncovered(left, record.covers(job, after_us, until_us))))
    # A window that a change of the zone's data moved across an end of the span is seen beyond it.
    wide = max(after_us - MARGIN_US, whole[0]), min(until_us + MARGIN_US, whole[1])
    answered = set(record.answered_dues(job, *wide))
    windows = list(expected.windows_at(_left(expected, *wide, answered)))
    moved = bool(answered.difference(expected.dues(*wide))) if answered else False
    if moved or record.answered_keys(job, (window.key for window in windows)):
        windows = list(expected.between(after_us, until_us))
        keys = record.answered_keys(job, (window.key for window in windows))
        return [window for window in windows if window.key not in keys]
    return [window for window in windows if after_us < window.due_us <= until_us]


def _left(expected: Succession, after_us: int, until_us: int, answered: set[int]) -> list[tuple[int, int]]:
    """Return (due, the due before it) of those dues of a span that are not among `answered`."""
    left = []
    before_us: int | None = None
    for due_us in expected.dues(after_us, until_us):
        if due_us not in answered:
            left.append((due_us, _start_us(expected, due_us) if before_us is None else before_us))
        before_us = due_us
    return left


def _uncovered(left: list[tuple[int, int]], covers: Sequence[Span]) -> list[tuple[int, int]]:
    """Return those of some (due, start) that no catch-up covers."""
    if not covers:
        return left
    spans = [(span.first_us, span.last_us) for span in covers]
    return [pair for pair in left if not any(first_us <= pair[0] <= last_us for first_us, last_us in spans)]


def _start_us(expected: Succession, due_us: int) -> int:
    before = expected.previous(due_us, inclusive=False)
    return beginning_us(due_us) if before is None else before.due_us


def _unanswered(windows: list[Window], record: Record, job: str, waivers: Waivers) -> Iterator[Judged]:
    """Yield those of the windows, in which nothing ran, that were not answered otherwise either."""
    first_us, last_us = windows[0].due_us - 1, windows[-1].due_us
    covers = record.covers(job, first_us, last_us)
    refusals = _by_key(record.refusals(job, first_us - MARGIN_US, last_us + MARGIN_US))
    for window in windows:
        if any(span.first_us <= window.due_us <= span.last_us for span in covers):
            continue
        waiver = waivers.latest(window)
        if waiver is not None and not waiver.withdraw:
            continue
        refused = refusals.get(window.key, [])
        numbers = tuple(refusal.number for refusal in refused)
        yield Judged(window, "missing", because_missing(refused, waiver), numbers)


def _by_key(refusals: Iterable[Refusal]) -> dict[str, list[Refusal]]:
    found: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        found.setdefault(refusal.key, []).append(refusal)
    return found
