"""Zones against zoneinfo on the same bytes, and files that are none."""

from __future__ import annotations

import io
import random
import zoneinfo
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import pytest

from runguard.errors import ZoneError
from runguard.instant import SECOND_US, from_rfc3339
from runguard.schedule.posix import parse_posix
from runguard.schedule.zone import Zone, fixed, parse_tzif

_FIRST_S = from_rfc3339("1900-01-01T00:00:00Z") // SECOND_US
_LAST_S = from_rfc3339("2100-12-31T00:00:00Z") // SECOND_US
_MONTH_S = 30 * 86_400


def _packaged() -> dict[bytes, str]:
    root = files("tzdata").joinpath("zoneinfo")
    names = sorted((files("tzdata").joinpath("zones")).read_text().split())
    return {root.joinpath(*name.split("/")).read_bytes(): name for name in reversed(names)}


def _installed() -> dict[bytes, str]:
    """Return the host's zone files, the ones with leap seconds among them."""
    found: dict[bytes, str] = {}
    for root in map(Path, zoneinfo.TZPATH):
        for path in sorted(root.rglob("*")) if root.is_dir() else ():
            if path.is_file() and path.open("rb").read(4) == b"TZif":
                found.setdefault(path.read_bytes(), str(path.relative_to(root)))
    return found


def _differences(data: bytes, name: str, every_s: int, chance: random.Random) -> list[str]:
    zone = parse_tzif(data, name)
    reference = zoneinfo.ZoneInfo.from_file(io.BytesIO(data), name)
    changes = zone.changes(_FIRST_S, _LAST_S)
    instants = [at_s + by_s for at_s, _, _ in changes for by_s in (-1, 0, 1)]
    instants += range(_FIRST_S, _LAST_S, every_s)
    instants += [chance.randint(_FIRST_S, _LAST_S) for _ in range(100)]
    wrong = []
    for at_s in instants:
        expected = datetime.fromtimestamp(at_s, reference).utcoffset()
        if expected is None or zone.offset_at(at_s) != expected.total_seconds():
            wrong.append(f"{name} at {at_s}: {zone.offset_at(at_s)} instead of {expected}")
    for at_s, before_s, after_s in changes:
        if (zone.offset_at(at_s - 1), zone.offset_at(at_s)) != (before_s, after_s):
            wrong.append(f"{name} changes at {at_s} otherwise than its offsets")
    return wrong


def test_every_packaged_zone_agrees_with_zoneinfo_from_1900_to_2100():
    zones = _packaged()
    assert len(zones) > 300
    chance = random.Random(1)
    assert [wrong for data, name in zones.items() for wrong in _differences(data, name, _MONTH_S, chance)] == []


def test_every_zone_of_this_host_agrees_with_zoneinfo_from_1900_to_2100():
    zones = _installed()
    if not zones:
        pytest.skip("this host has no zone files")
    chance = random.Random(2)
    assert [wrong for data, name in zones.items() for wrong in _differences(data, name, 11 * _MONTH_S, chance)] == []


def test_spans_tile_the_time_asked_for(schedules):
    first_s = from_rfc3339("2024-01-01T00:00:00Z") // SECOND_US
    last_s = from_rfc3339("2025-01-01T00:00:00Z") // SECOND_US

    spans = list(schedules.zone("Europe/London").spans(first_s, last_s))

    spring_s = from_rfc3339("2024-03-31T01:00:00Z") // SECOND_US
    autumn_s = from_rfc3339("2024-10-27T01:00:00Z") // SECOND_US
    assert spans == [(first_s, spring_s, 0), (spring_s, autumn_s, 3600), (autumn_s, last_s, 0)]


def test_a_year_far_beyond_the_table_follows_the_footer(schedules):
    at_s = from_rfc3339("9998-07-01T00:00:00Z") // SECOND_US
    assert schedules.zone("Europe/London").offset_at(at_s) == 3600


def test_before_the_first_transition_local_mean_time_holds(schedules):
    at_s = from_rfc3339("1700-01-01T00:00:00Z") // SECOND_US
    assert schedules.zone("Europe/Amsterdam").offset_at(at_s) == 1050  # Brussels, 0:17:30
    assert schedules.zone("Europe/London").offset_at(at_s) == -75


@pytest.mark.parametrize(
    ("text", "at", "offset_s"),
    [
        ("UTC0", "2024-07-01T00:00:00Z", 0),
        ("<+0330>-3:30", "2024-07-01T00:00:00Z", 12_600),
        ("<-03>3", "2024-07-01T00:00:00Z", -10_800),
        ("ABC-1:02:03", "2024-07-01T00:00:00Z", 3723),
        # Tehran before 2022: Julian days never count 29 February, 21 March is J80 in each year.
        ("<+0330>-3:30<+0430>,J80/0,J264/0", "2024-03-20T20:29:59Z", 12_600),
        ("<+0330>-3:30<+0430>,J80/0,J264/0", "2024-03-20T20:30:00Z", 16_200),
        ("<+0330>-3:30<+0430>,J80/0,J264/0", "2023-03-20T20:30:00Z", 16_200),
        # Day 79 from 0 is 20 March in a common year, 19 March would be 78; in a leap year it is 20 March too.
        ("AAA0BBB,79/0,200/0", "2023-03-20T23:59:59Z", 0),
        ("AAA0BBB,79/0,200/0", "2023-03-21T00:00:00Z", 3600),
        ("AAA0BBB,79/0,200/0", "2024-03-20T00:00:00Z", 3600),
        # Israel's 26:00 on a Thursday is Friday 02:00; Nuuk's -1:00 is 23:00 the day before.
        ("IST-2IDT,M3.4.4/26,M10.5.0", "2024-03-28T23:59:59Z", 7200),
        ("IST-2IDT,M3.4.4/26,M10.5.0", "2024-03-29T00:00:00Z", 10_800),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2024-03-31T00:59:59Z", -7200),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2024-03-31T01:00:00Z", -3600),
        # Dublin: the standard time is the summer's.
        ("IST-1GMT0,M10.5.0,M3.5.0/1", "2024-01-01T00:00:00Z", 0),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", "2024-07-01T00:00:00Z", 3600),
        # Daylight saving time all year, as RFC 8536 writes it.
        ("EST5EDT,0/0,J365/25", "2024-01-01T04:59:59Z", -14_400),
        ("EST5EDT,0/0,J365/25", "2024-01-01T05:00:00Z", -14_400),
        ("EST5EDT", "2024-07-01T00:00:00Z", -14_400),
    ],
)
def test_a_posix_rule_gives(text, at, offset_s):
    zone = Zone("test", 0, [], parse_posix(text))
    assert zone.offset_at(from_rfc3339(at) // SECOND_US) == offset_s


def test_daylight_saving_time_all_year_never_changes():
    zone = Zone("test", 0, [], parse_posix("EST5EDT,0/0,J365/25"))
    assert zone.changes(from_rfc3339("2020-01-01T00:00:00Z") // SECOND_US, _LAST_S) == []


@pytest.mark.parametrize(
    "text",
    [
        "AB0",
        "ABC",
        "ABC25",
        "ABC1:60",
        "<ABC",
        "<>0",
        "ABC0DEF,M3.2.0",
        "ABC0DEF,M13.1.0,M1.1.0",
        "ABC0DEF,M3.6.0,M1.1.0",
        "ABC0DEF,M3.2.7,M1.1.0",
        "ABC0DEF,J0,J366",
        "ABC0DEF,366,1",
        "ABC0DEF,1/168,2",
        "ABC0DEF,1/2x,2",
        "ABC٣",
        "ABC0DEF,1,2,3",
    ],
)
def test_a_posix_rule_is_refused(text):
    with pytest.raises(ValueError):
        parse_posix(text)


@pytest.mark.parametrize(
    ("text", "offset_s"), [("+05:30", 19_800), ("-03:30", -12_600), ("+00:00", 0), ("-23:59", -86_340)]
)
def test_a_fixed_offset_never_changes(text, offset_s):
    zone = fixed(text)
    assert (zone.name, zone.offset_at(0), zone.lowest_s, zone.highest_s) == (text, offset_s, offset_s, offset_s)
    assert zone.changes(_FIRST_S, _LAST_S) == []


@pytest.mark.parametrize(
    "text", ["", "+", "05:30", "+5:30", "+05:3", "+0530", "+24:00", "+05:60", "+٠٥:٣٠", "+05:30:00"]
)
def test_text_that_is_no_offset_is_a_zone_error(text):
    with pytest.raises(ZoneError):
        fixed(text)


def test_a_file_cut_anywhere_is_a_zone_error(schedules):
    data = schedules.zone_bytes("Europe/London")
    for length in range(len(data)):
        with pytest.raises(ZoneError):
            parse_tzif(data[:length], "cut")


@pytest.mark.parametrize("name", ["Europe/London", "Asia/Tehran", "America/Vancouver@2025b"])
def test_a_file_with_flipped_bytes_never_raises_anything_else(name, schedules):
    data = schedules.zone_bytes(name)
    chance = random.Random(3)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 4))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            zone = parse_tzif(bytes(damaged), "damaged")
        except ZoneError:
            refused += 1
            continue
        list(zone.spans(_FIRST_S, _LAST_S))
        assert zone.lowest_s <= zone.offset_at(0) <= zone.highest_s
    assert refused > 50


@pytest.mark.parametrize(
    "data", [b"", b"TZif", b"TZif2", b"\0" * 4096, b"TZif2" + b"\0" * 15 + b"\xff" * 24, b"#" * 99]
)
def test_bytes_that_are_no_zone_file_are_a_zone_error(data):
    with pytest.raises(ZoneError) as caught:
        parse_tzif(data, "Mars/Olympus")
    assert caught.value.zone == "Mars/Olympus"
    assert "\n" not in str(caught.value)


def test_a_version_1_file_is_read_to_its_end(schedules):
    data = schedules.zone_bytes("America/Vancouver@2025b")  # a fat file: its 32-bit block is whole
    second = data.index(b"TZif", 4)
    old = b"TZif\0" + data[5:second]

    zone = parse_tzif(old, "old")

    assert zone.offset_at(from_rfc3339("2024-07-01T00:00:00Z") // SECOND_US) == -25_200
    assert zone.offset_at(from_rfc3339("2037-12-01T00:00:00Z") // SECOND_US) == -28_800


def test_a_footer_that_contradicts_the_table_counts_after_it():
    zone = Zone("test", 0, [(1_000_000, 3600)], parse_posix("ABC-2"))
    assert [zone.offset_at(at_s) for at_s in (999_999, 1_000_000, 1_000_001)] == [0, 3600, 7200]
    assert zone.changes(0, 2_000_000) == [(1_000_000, 0, 3600), (1_000_001, 3600, 7200)]
