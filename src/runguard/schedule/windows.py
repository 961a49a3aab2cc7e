"""The windows of one schedule in one zone under one policy.

Time falls into quiet stretches, where local minutes and instants correspond one to one by a constant offset, and the
hours around a change of offset, where each minute is looked at. How wide the latter are: two instants that share a
local minute, and a minute in a gap and the instant it is given, lie no further apart than the offsets around them.
"""

from __future__ import annotations

from itertools import pairwise

from runguard.instant import DAY_S, SECOND_US, civil_from_days
from runguard.model import Window
from runguard.schedule.cron import Cron
from runguard.schedule.nominal import FIRST_DAY, Nominal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runguard.schedule.policy import Rule
    from runguard.schedule.recurrence import Recurrence
    from runguard.schedule.zone import Zone

    # (due, nominal local second, how, fold, other nominal minutes that landed on the same instant)
    Moment = tuple[int, int, str, int, tuple[int, ...]]
    # (start, end, offset), offset None around a change of offset
    Stretch = tuple[int, int, int | None]


class Timetable:
    """The strictly increasing dues of a schedule, and the windows between them.

    The calendar runs from year 1 to 9999, that of a recurrence from its DTSTART to its end; `previous` and `next`
    return None beyond it. There is no due before the first one: its window starts at 1970, or a day earlier than due.
    """

    __slots__ = ("_reach_s", "cron", "nominal", "rule", "zone")

    def __init__(self, cron: Cron | Recurrence, zone: Zone, rule: Rule) -> None:
        self.cron = cron
        self.zone = zone
        self.rule = rule
        self.nominal: Nominal | Recurrence = Nominal(cron) if isinstance(cron, Cron) else cron
        self._reach_s = zone.highest_s - zone.lowest_s

    @property
    def by_instant(self) -> bool:
        """Tell whether keys are instants (`U…`), so that a due and its key are one."""
        return self.cron.all_hours

    @property
    def shortest_s(self) -> int:
        """The shortest spacing of nominal minutes, as if every day matched."""
        return self.nominal.shortest_s

    def previous(self, at_us: int, inclusive: bool = True) -> Window | None:
        """Return the window with the greatest `due <= at_us` (`<` if not inclusive)."""
        moment = self.last_before(at_us // SECOND_US + 1 if inclusive else -(-at_us // SECOND_US))
        return None if moment is None else self._window(moment)

    def next(self, after_us: int) -> Window | None:
        """Return the window with the least `due > after_us`."""
        moment = self._first_from(after_us // SECOND_US + 1)
        return None if moment is None else self._window(moment)

    def dues(self, after_us: int, until_us: int) -> Iterator[int]:
        """Return the dues of `after_us < due <= until_us`, in µs, ascending, in constant memory."""
        from runguard.schedule import spans  # a start asks for single windows only

        return spans.dues(self, after_us // SECOND_US + 1, until_us // SECOND_US + 1)

    def between(self, after_us: int, until_us: int) -> Iterator[Window]:
        """Return the windows of `after_us < due <= until_us`, ascending, in constant memory."""
        from runguard.schedule import spans

        return spans.windows(self, after_us // SECOND_US + 1, until_us // SECOND_US + 1)

    def windows_at(self, dues: Sequence[tuple[int, int]]) -> Iterator[Window]:
        """Return the windows of some (due, start), in µs, ascending, each known to be a due of this timetable."""
        from runguard.schedule import spans

        return spans.windows_at(self, dues)

    def last_before(self, until_s: int) -> Moment | None:
        """Return the last moment before an instant."""
        lowest_s, highest_s = self.zone.lowest_s, self.zone.highest_s
        while True:
            local_s = self.nominal.at_or_before(until_s - 1 + highest_s)
            if local_s is None:
                return None
            from_s, until_s = local_s - highest_s - DAY_S, min(until_s, local_s - lowest_s + 1)
            for start_s, end_s, offset_s in reversed(list(self.stretches(from_s, until_s))):
                if offset_s is None:
                    moments = self.moments(start_s, end_s)
                    if moments:
                        return moments[-1]
                    continue
                found_s = self.nominal.at_or_before(end_s - 1 + offset_s)
                if found_s is not None and found_s >= start_s + offset_s:
                    return found_s - offset_s, found_s, "real", 0, ()
            until_s = from_s

    def _first_from(self, from_s: int) -> Moment | None:
        """Return the first moment at or after an instant."""
        lowest_s, highest_s = self.zone.lowest_s, self.zone.highest_s
        while True:
            local_s = self.nominal.at_or_after(from_s + lowest_s)
            if local_s is None:
                return None
            # Whatever the policy, a due lies between the two outmost instants of its nominal minute. A day more,
            # lest a day that a gap takes be left minute by minute.
            from_s, until_s = max(from_s, local_s - highest_s), local_s - lowest_s + DAY_S
            for start_s, end_s, offset_s in self.stretches(from_s, until_s):
                if offset_s is None:
                    moments = self.moments(start_s, end_s)
                    if moments:
                        return moments[0]
                    continue
                found_s = self.nominal.at_or_after(start_s + offset_s)
                if found_s is not None and found_s < end_s + offset_s:
                    return found_s - offset_s, found_s, "real", 0, ()
            from_s = until_s

    def stretches(self, from_s: int, until_s: int) -> Iterator[Stretch]:
        """Yield the stretches that tile `[from_s, until_s)`."""
        for start_s, end_s in self._unquiet(from_s, until_s):
            start_s, end_s = max(start_s, from_s), min(end_s, until_s)
            if start_s >= end_s:
                continue
            if from_s < start_s:
                yield from_s, start_s, self.zone.offset_at(from_s)
            yield start_s, end_s, None
            from_s = end_s
        if from_s < until_s:
            yield from_s, until_s, self.zone.offset_at(from_s)

    def _unquiet(self, from_s: int, until_s: int) -> list[tuple[int, int]]:
        """Return the disjoint, ascending (start, end) around changes of offset that may touch `[from_s, until_s)`."""
        reach_s = self._reach_s
        changes = self.zone.changes(from_s - 2 * reach_s - 1, until_s + 2 * reach_s + 1)
        around = []
        for at_s, _, _ in changes:
            offsets = [o for other_s, *both in changes if abs(other_s - at_s) <= reach_s for o in both]
            width_s = max(offsets) - min(offsets)
            around.append((at_s - width_s, at_s + width_s + 1))
        merged: list[tuple[int, int]] = []
        for start_s, end_s in sorted(around):
            if merged and start_s <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end_s, merged[-1][1]))
            else:
                merged.append((start_s, end_s))
        return merged

    def moments(self, from_s: int, until_s: int) -> list[Moment]:
        """Return the moments of `from_s <= due < until_s` near a change of offset, ascending."""
        reach_s = self._reach_s + 60
        spans = list(self.zone.spans(from_s - reach_s, until_s + reach_s))
        lowest_s, highest_s = min(span[2] for span in spans), max(span[2] for span in spans)
        landed: dict[int, list[tuple[bool, int, str, int]]] = {}
        for local_s in self.nominal.between(from_s + lowest_s, until_s + highest_s):
            for due_s, how, fold in self.dues_of(local_s, spans):
                if from_s <= due_s < until_s:
                    landed.setdefault(due_s, []).append((how != "real", local_s, how, fold))
        moments: list[Moment] = []
        for due_s in sorted(landed):
            # A real minute names the window, else the earliest.
            (_, local_s, how, fold), *others = sorted(landed[due_s])
            moments.append((due_s, local_s, how, fold, tuple(sorted(other[1] for other in others))))
        return moments

    def dues_of(self, local_s: int, spans: list[tuple[int, int, int]]) -> list[tuple[int, str, int]]:
        """Return (due, how, fold) of what the policy gives a nominal minute, within `spans`."""
        found = [local_s - offset_s for start_s, end_s, offset_s in spans if start_s <= local_s - offset_s < end_s]
        rule = self.rule
        if len(found) == 1:
            return [(found[0], "real", 0)]
        if found:
            limit_s = rule.repeat_beyond_s
            if rule.fold == "both" or (limit_s is not None and found[1] - found[0] > limit_s):
                return [(due_s, "real", fold) for fold, due_s in enumerate(found)]
            return [(found[0], "real", 0)] if rule.fold == "first" else [(found[1], "real", 1)]
        for (_, change_s, before_s), (_, _, after_s) in pairwise(spans):
            if change_s + before_s <= local_s < change_s + after_s:
                limit_s = rule.skip_from_s
                if rule.gap == "skip" or (limit_s is not None and after_s - before_s >= limit_s):
                    return []
                return [(change_s if rule.gap == "after" else local_s - before_s, "gap", 0)]
        return []

    def _window(self, moment: Moment) -> Window:
        before = self.last_before(moment[0])
        return self.record(moment, None if before is None else before[0] * SECOND_US)

    def record(self, moment: Moment, start_us: int | None) -> Window:
        """Build the window of a moment; `start_us` is the due before it."""
        due_s, local_s, how, fold, others = moment
        offset_s = local_s - due_s if how == "real" else self.zone.offset_at(due_s)
        nominal = local_text(local_s)
        if self.by_instant:
            key = f"U{local_text(due_s)}Z"
        else:
            repeats = self.rule.fold == "both" or self.rule.repeat_beyond_s is not None
            key = f"L{nominal}~{fold + 1}" if fold and repeats else f"L{nominal}"
        return Window(
            key=key,
            start_us=beginning_us(due_s * SECOND_US) if start_us is None else start_us,
            due_us=due_s * SECOND_US,
            label=local_text(due_s + offset_s) + offset_text(offset_s),
            nominal=nominal,
            how=how,
            fold=fold,
            collapsed=tuple(map(local_text, others)),
        )


def beginning_us(due_us: int) -> int:
    """Return where the window of a schedule's very first due starts: at 1970, or a day before the due if that is less.

    Time before it belongs to no other window, so it would reach back without end; the calendar starts with year 1.
    """
    return min(due_us, max(FIRST_DAY * DAY_S * SECOND_US, min(0, due_us - DAY_S * SECOND_US)))


def local_text(local_s: int) -> str:
    """Return `YYYY-MM-DDTHH:MM`, with the second only where there is one (zones before about 1930)."""
    day, second = divmod(local_s, DAY_S)
    return date_text(day) + clock_text(second)


def date_text(day: int) -> str:
    year, month, day_of_month = civil_from_days(day)
    return f"{year:04d}-{month:02d}-{day_of_month:02d}"


def clock_text(second: int) -> str:
    text = f"T{second // 3600:02d}:{second // 60 % 60:02d}"
    return f"{text}:{second % 60:02d}" if second % 60 else text


def offset_text(offset_s: int) -> str:
    return ("-" if offset_s < 0 else "+") + clock_text(abs(offset_s))[1:]
