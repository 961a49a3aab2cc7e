"""The offsets of a time zone, read from the bytes of its TZif file (RFC 8536).

Not `zoneinfo`: it costs more than the rest of the schedule before the command is spawned. It is the reference in tests.
"""

from __future__ import annotations

from _bisect import bisect_left, bisect_right
from _struct import error as StructError  # type: ignore[attr-defined]
from _struct import unpack_from
from itertools import pairwise

from runguard.errors import ZoneError
from runguard.instant import DAY_S, civil_from_days
from runguard.schedule.posix import PosixRule, parse_posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER_BYTES = 44
_FURTHEST_OFFSET_S = 26 * 3600  # RFC 8536: offsets lie between -25 and +26 hours


class Zone:
    """Offsets from UTC over all time.

    `name` is what the zone was asked for by. `lowest_s` and `highest_s` bound every offset it ever has. `data` are the
    bytes it was read from, for what is only needed in words.
    """

    __slots__ = ("_after", "_first_s", "_instants", "_last_s", "_rule", "data", "highest_s", "lowest_s", "name")

    def __init__(self, name: str, first_s: int, table: list[tuple[int, int]], rule: PosixRule | None) -> None:
        """Take the offset before the table, the table's (instant, offset from then on), ascending, and what follows."""
        self.name = name
        self.data = b""
        self._first_s = first_s
        self._rule = rule
        self._last_s = table[-1][0] if table else None
        self._instants: list[int] = []
        self._after: list[int] = []
        offset_s = first_s
        for instant_s, after_s in table:
            if after_s != offset_s:
                self._instants.append(instant_s)
                self._after.append(after_s)
                offset_s = after_s
        offsets = {first_s, *self._after}
        if rule is not None:
            offsets |= {rule.standard_s, rule.daylight_s}
            self._join_rule(rule, offset_s)
        self.lowest_s = min(offsets)
        self.highest_s = max(offsets)

    def offset_at(self, instant_s: int) -> int:
        """Return the seconds that local time is ahead of UTC at an instant."""
        if self._rule is not None and (self._last_s is None or instant_s > self._last_s):
            return _by_rule(self._rule, instant_s)
        index = bisect_right(self._instants, instant_s)
        return self._after[index - 1] if index else self._first_s

    def changes(self, from_s: int, until_s: int) -> list[tuple[int, int, int]]:
        """Return (instant, offset before, offset after) of every change in `from_s <= instant < until_s`, ascending."""
        found = []
        before_s = self.offset_at(from_s - 1)
        # A dict: of two changes at one instant, an end and a start, only the last counts.
        for instant_s, after_s in dict(self._candidates(from_s, until_s)).items():
            if after_s != before_s:
                found.append((instant_s, before_s, after_s))
                before_s = after_s
        return found

    def spans(self, from_s: int, until_s: int) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, offset) of constant offset that tile `[from_s, until_s)`."""
        offset_s = self.offset_at(from_s)
        for instant_s, _, after_s in self.changes(from_s + 1, until_s):
            yield from_s, instant_s, offset_s
            from_s, offset_s = instant_s, after_s
        yield from_s, until_s, offset_s

    def _candidates(self, from_s: int, until_s: int) -> Iterator[tuple[int, int]]:
        low, high = bisect_left(self._instants, from_s), bisect_left(self._instants, until_s)
        yield from zip(self._instants[low:high], self._after[low:high], strict=True)
        if self._rule is None or (self._last_s is not None and until_s <= self._last_s):
            return
        from_s = from_s if self._last_s is None else max(from_s, self._last_s + 1)
        for instant_s, after_s in self._rule.changes(_year(from_s) - 1, _year(until_s) + 1):
            if from_s <= instant_s < until_s:
                yield instant_s, after_s

    def _join_rule(self, rule: PosixRule, offset_s: int) -> None:
        """Add the change that a file makes whose table ends in another offset than its rule goes on with."""
        if self._last_s is None:
            return
        joined_s = _by_rule(rule, self._last_s + 1)
        if joined_s != offset_s:
            self._last_s += 1
            self._instants.append(self._last_s)
            self._after.append(joined_s)


def fixed(text: str, name: str | None = None) -> Zone:
    """Return the zone of one offset: `+05:30`, `-03:30`.

    Raises ZoneError where the text is none.
    """
    hours, colon, minutes = text[1:].partition(":")
    digits = hours + minutes
    if text[:1] not in ("+", "-") or not colon or len(hours) != 2 or len(minutes) != 2:
        raise ZoneError(text[:60], "an offset looks like +05:30")
    if not (digits.isascii() and digits.isdigit()) or int(hours) > 23 or int(minutes) > 59:
        raise ZoneError(text[:60], "an offset lies between -23:59 and +23:59")
    offset_s = int(hours) * 3600 + int(minutes) * 60
    return Zone(text if name is None else name, -offset_s if text[0] == "-" else offset_s, [], None)


def parse_tzif(data: bytes, name: str) -> Zone:
    """Read a zone file, version 1 or later; leap seconds in it are not applied, as `zoneinfo` does not.

    Raises ZoneError where the bytes are no such file.
    """
    try:
        zone = _read(data, name)
        zone.data = data
        return zone
    except (ValueError, StructError, IndexError) as error:
        raise ZoneError(name, f"its file is damaged: {error}") from error


def _read(data: bytes, name: str) -> Zone:
    version, counts = _header(data, 0)
    position, width = _HEADER_BYTES, 4
    if version >= b"2":  # the 64-bit block follows the 32-bit one
        position += _block_bytes(counts, 4)
        _, counts = _header(data, position)
        position, width = position + _HEADER_BYTES, 8
    if position + _block_bytes(counts, width) > len(data):
        raise ValueError("it ends too early")
    _, _, _, instant_count, type_count, _ = counts
    if not type_count:
        raise ValueError("it has no local time type")
    instants = unpack_from(f">{instant_count}{'q' if width == 8 else 'l'}", data, position)
    indexes = data[position + instant_count * width : position + instant_count * (width + 1)]
    types = [unpack_from(">lB", data, position + instant_count * (width + 1) + 6 * n) for n in range(type_count)]
    if any(earlier >= later for earlier, later in pairwise(instants)):
        raise ValueError("its transitions do not ascend")
    if any(abs(offset_s) > _FURTHEST_OFFSET_S for offset_s, _ in types):
        raise ValueError("an offset from UTC of more than 26 hours")
    table = [(instant_s, types[index][0]) for instant_s, index in zip(instants, indexes, strict=True)]
    # As zoneinfo: the first type that is no daylight saving time.
    first_s = next((offset_s for offset_s, daylight in types if not daylight), table[0][1] if table else types[0][0])
    footer = _footer(data[position + _block_bytes(counts, width) :]) if width == 8 else ""
    if not table and not footer:
        first_s = types[0][0]
    return Zone(name, first_s, table, parse_posix(footer) if footer else None)


def _header(data: bytes, position: int) -> tuple[bytes, tuple[int, ...]]:
    """Return (version, the six counts in the order of the file: isut, isstd, leap, time, type, char)."""
    if data[position : position + 4] != b"TZif":
        raise ValueError("it does not start with TZif")
    return data[position + 4 : position + 5], unpack_from(">6L", data, position + 20)


def _block_bytes(counts: tuple[int, ...], width: int) -> int:
    isut, isstd, leap, instants, types, chars = counts
    return instants * (width + 1) + types * 6 + chars + leap * (width + 4) + isstd + isut


def _footer(rest: bytes) -> str:
    """Return the TZ string between two newlines, "" where there is none."""
    if not rest.startswith(b"\n") or b"\n" not in rest[1:]:
        raise ValueError("its footer is not closed")
    return rest[1 : rest.index(b"\n", 1)].decode("ascii")


def _by_rule(rule: PosixRule, instant_s: int) -> int:
    offset_s = rule.standard_s
    year = _year(instant_s)
    for change_s, after_s in rule.changes(year - 2, year + 1):
        if change_s > instant_s:
            break
        offset_s = after_s
    return offset_s


def _year(instant_s: int) -> int:
    return civil_from_days(instant_s // DAY_S)[0]
