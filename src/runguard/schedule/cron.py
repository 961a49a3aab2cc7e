"""Read five-field cron as Vixie and Debian cron read it."""

from __future__ import annotations

from runguard.errors import ScheduleError
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTH_LENGTHS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # the longest each month can be

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _WEEKDAYS),
)
_ACCEPTED = (
    "a schedule is five cron fields such as '30 2 * * *', one of "
    + " ".join(MACROS)
    + ", or 'RRULE:FREQ=…' with 'DTSTART:…' before it or not"
)
_LONGEST = 1000  # characters: every value of every field listed by name takes less than half
_SHOWN = 60  # characters of a text or piece that a message repeats


class Cron(NamedTuple):
    """What a cron expression names; every tuple ascends, Sunday is 0."""

    expression: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    day_star: bool  # Vixie's flag: the first character of the field is `*`
    weekday_star: bool
    wild: bool  # the job class: minute or hour starts with `*`, or @hourly

    @property
    def all_hours(self) -> bool:
        """Tell whether the hour field covers the day, so that keys are UTC instants."""
        return len(self.hours) == 24

    @property
    def day_and(self) -> bool:
        """Tell whether day of month and day of week must both match; otherwise either does."""
        return self.day_star or self.weekday_star


def parse(text: str) -> Cron:
    """Return what `text` names: five fields, parted by spaces or tabs, or an @-macro in any case.

    Raises ScheduleError with the field and the column of the piece that cannot be read.
    """
    if len(text) > _LONGEST:
        _refuse(text, "", 0, f"longer than {_LONGEST} characters")
    pieces = _split(text)
    if len(pieces) == 1 and pieces[0][1].startswith("@"):
        column, name = pieces[0]
        macro = MACROS.get(name.lower())
        if macro is None:
            _refuse_macro(text, name, column)
        return parse(macro)._replace(expression=text, wild=name.lower() == "@hourly")
    if len(pieces) != 5:
        # The place of the first surplus field, where there is one: it is often the command of a pasted line.
        column, surplus = pieces[5] if len(pieces) > 5 else (0, "")
        _refuse(text, "", column, f"need 5 fields, got {len(pieces)}" + (f": {surplus!r}" if surplus else ""), True)
    minutes, hours, days, months, weekdays = (
        _values(text, index, piece, column) for index, (column, piece) in enumerate(pieces)
    )
    star = [piece.startswith("*") for _, piece in pieces]
    cron = Cron(
        expression=text,
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=tuple(sorted({weekday % 7 for weekday in weekdays})),
        day_star=star[2],
        weekday_star=star[4],
        wild=star[0] or star[1],
    )
    if cron.day_and and days[0] > max(MONTH_LENGTHS[month] for month in months):
        _refuse(text, "day of month", pieces[2][0], f"no such date in any year: day {days[0]} of these months")
    return cron


def is_number(word: str) -> bool:
    """Tell whether `word` is ASCII digits, few enough that reading them is cheap."""
    return word.isascii() and word.isdigit() and len(word) <= 9


def cut(text: str) -> str:
    """Return a text or a piece of it as a message repeats it."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _split(text: str) -> list[tuple[int, str]]:
    """Return (1-based column, field) of each field; only spaces and tabs part fields."""
    pieces = []
    column = 1
    for piece in text.replace("\t", " ").split(" "):
        if piece:
            pieces.append((column, piece))
        column += len(piece) + 1
    return pieces


def _values(text: str, index: int, piece: str, column: int) -> tuple[int, ...]:
    """Return the values of a whole field: a list of items."""
    values: set[int] = set()
    for item in piece.split(","):
        values.update(_item(text, index, item, column))
        column += len(item) + 1
    return tuple(sorted(values))


def _item(text: str, index: int, item: str, column: int) -> range:
    """Return the values of `*`, `n`, `a-b`, `*/step` or `a-b/step`."""
    name, lowest, highest, _ = _FIELDS[index]
    span, slash, step_text = item.partition("/")
    low_text, dash, high_text = span.partition("-")
    if span == "*":
        low, high = lowest, highest
    else:
        low = high = _number(text, index, low_text, column)
        if dash:
            high = _number(text, index, high_text, column + len(low_text) + 1)
            if index == 4 and low > high and high_text.lower() == "sun":
                high = 7  # `fri-sun`: cronie reads it so; Debian accepts it and never fires
            if low > high:
                _refuse(text, name, column, f"reversed range {cut(span)!r}")
    if not slash:
        return range(low, high + 1)
    if span != "*" and not dash:
        _refuse(text, name, column, f"step without a range {cut(item)!r}: write '{low}-{highest}/{cut(step_text)}'")
    if not is_number(step_text) or int(step_text) == 0:
        _refuse(text, name, column, f"bad step {cut(item)!r}")
    return range(low, high + 1, int(step_text))


def _number(text: str, index: int, word: str, column: int) -> int:
    name, lowest, highest, names = _FIELDS[index]
    if word.lower() in names:
        return names.index(word.lower()) + lowest
    if not is_number(word):
        _refuse(text, name, column, f"bad value {cut(word)!r}")
    if not lowest <= int(word) <= highest:
        _refuse(text, name, column, f"{cut(word)} outside {lowest}-{highest}")
    return int(word)


def _refuse_macro(text: str, name: str, column: int) -> NoReturn:
    if name.lower() == "@reboot":
        _refuse(text, "", column, "need 5 fields, got 1: '@reboot' is no time of day, so it has no window")
    _refuse(text, "", column, f"need 5 fields, got 1: {cut(name)!r} is not known", True)


def _refuse(text: str, field: str, column: int, why: str, say_accepted: bool = False) -> NoReturn:
    raise ScheduleError(cut(text), f"{why}; {_ACCEPTED}" if say_accepted else why, field=field, position=column)
