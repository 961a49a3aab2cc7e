"""The windows beside those in which a case was touched: which of them should have been answered, and were not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from runguard.coverage import verdicts
from runguard.coverage.verdicts import MARGIN_US, Judged
from runguard.evidence import asof
from runguard.evidence.quoting import Quotes
from runguard.evidence.ran import Facts, Moment
from runguard.guard.expecting import Expecting, expecting
from runguard.guard.start import window_fields
from runguard.instant import from_rfc3339

GraceUs = Callable[[str], int]  # by job

_MOST_DUES = 2_000  # of one look at a job's windows
_MOST_TOUCHED = 50  # windows, where all between them would be more
_MOST_OUTWARD = 10  # windows before the first and after the last touch, as long as they were not answered


def broken(quotes: Quotes, runs: Iterable[Facts], moment: Moment, grace_us: GraceUs) -> Iterator[dict[str, Any]]:
    """Yield the windows that no success answered, by job and due: between those of these runs, and next to them."""
    dues: dict[str, set[int]] = {}
    for run in runs:
        if run["window"] and run["window"].get("due"):
            dues.setdefault(run["job"], set()).add(from_rfc3339(run["window"]["due"]))
    for job in sorted(dues):
        expected = expecting(quotes.reader, job)
        if expected is not None:
            for judged in _of_job(quotes, job, expected, sorted(dues[job]), moment, grace_us(job)):
                yield facts(job, judged)


def facts(job: str, judged: Judged) -> dict[str, Any]:
    """Return a window and its verdict by the JSON contract."""
    return {
        "job": job, **window_fields(judged.window), "verdict": judged.verdict, "because": judged.because,
        "runs": list(judged.runs),
    }  # fmt: skip


def judge(
    quotes: Quotes, job: str, expected: Expecting | None, span: tuple[int, int], moment: Moment, grace_us: int
) -> list[Judged]:
    """Return every window of a span (`after < due <= until`) with its verdict as of then, by due."""
    first_us, last_us = span[0] - MARGIN_US, span[1] + MARGIN_US
    windows = expected.succession.between(max(first_us, expected.since_us), last_us) if expected else ()
    starts = asof.starts(quotes.reader.coverage(job, first_us, last_us), quotes, moment)
    waivers = asof.waivers(quotes.reader.waivers(job, first_us, last_us), moment)
    due_by_then = (window for window in windows if window.due_us <= moment.at_us)
    found = verdicts.judge(due_by_then, starts, waivers, moment.at_us, grace_us, span=span)
    return sorted(found, key=lambda each: each.window.due_us)


def _of_job(
    quotes: Quotes, job: str, expected: Expecting, touched: list[int], moment: Moment, grace_us: int
) -> Iterator[Judged]:
    seen: set[str] = set()
    for first_us, last_us in _stretches(expected, touched):
        for each in _stretch(quotes, job, expected, (first_us, last_us), moment, grace_us):
            if each.window.key not in seen:
                seen.add(each.window.key)
                yield each


def _stretches(expected: Expecting, touched: list[int]) -> list[tuple[int, int]]:
    """Return first and last due of all that was touched, or, where too much lies between, each of the latest."""
    between = islice(expected.succession.dues(touched[0], touched[-1]), _MOST_DUES + 1)
    if sum(1 for _ in between) <= _MOST_DUES:
        return [(touched[0], touched[-1])]
    return [(due_us, due_us) for due_us in touched[-_MOST_TOUCHED:]]


def _stretch(
    quotes: Quotes, job: str, expected: Expecting, ends: tuple[int, int], moment: Moment, grace_us: int
) -> Iterator[Judged]:
    """Yield the windows between two dues that no success answered, and those next to them, up to the next success."""
    span = _before(expected, ends[0]), _after(expected, ends[1], moment)
    dues = list(expected.succession.dues(*span))
    # Nearly all are done, and that an index tells.
    rows = () if moment.past else quotes.reader.rows("dues_done", job=job, after_us=span[0], until_us=span[1])
    done = {due_us for (due_us,) in rows}
    found = {}
    for first_us, last_us in _together([due_us for due_us in dues if due_us not in done]):
        for each in judge(quotes, job, expected, (first_us - 1, last_us), moment, grace_us):
            found[each.window.due_us] = each
    done |= {due_us for due_us, each in found.items() if each.verdict == "succeeded"}
    # By what was recorded: a change of the zone's data has moved what is expected now.
    after_us = max((due_us for due_us in done if due_us < ends[0]), default=span[0])
    until_us = min((due_us for due_us in done if due_us > ends[1]), default=span[1])
    for due_us in sorted(found):
        if due_us not in done and after_us < due_us <= until_us:
            yield found[due_us]


def _before(expected: Expecting, due_us: int) -> int:
    """Return where a span begins that holds some windows before a due."""
    at_us = due_us
    for _ in range(_MOST_OUTWARD + 1):
        window = expected.succession.previous(at_us, inclusive=False)
        if window is None or window.due_us <= expected.since_us:
            return min(expected.since_us, due_us - 1)
        at_us = window.due_us
    return at_us


def _after(expected: Expecting, due_us: int, moment: Moment) -> int:
    """Return where a span ends that holds some windows after a due, as far as they were due by then."""
    at_us = due_us
    for _ in range(_MOST_OUTWARD):
        window = expected.succession.next(at_us)
        if window is None or window.due_us > moment.at_us:
            return at_us
        at_us = window.due_us
    return at_us


def _together(dues: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of dues that lie so close that one look is for all of them."""
    first_us = last_us = None
    for due_us in dues:
        if first_us is None or last_us is None:
            first_us = due_us
        elif due_us - last_us > 2 * MARGIN_US:
            yield first_us, last_us
            first_us = due_us
        last_us = due_us
    if first_us is not None and last_us is not None:
        yield first_us, last_us
