"""Instants as text and back."""

import pytest

from runguard.instant import civil_from_days, days_from_civil, from_rfc3339, rfc3339, span


@pytest.mark.parametrize(
    ("at_us", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_710_054_000_000_000, "2024-03-10T07:00:00Z"),
        (1_710_054_000_500_000, "2024-03-10T07:00:00.5Z"),
        (253_402_300_799_000_000, "9999-12-31T23:59:59Z"),
    ],
)
def test_an_instant_is_written_and_read_back(at_us: int, text: str) -> None:
    assert rfc3339(at_us) == text
    assert from_rfc3339(text) == at_us


@pytest.mark.parametrize("text", ["2024-03-10T03:00-04:00", "2024-03-10T07:00:00Z", "2024-03-10T12:30:00+05:30"])
def test_an_offset_is_read(text: str) -> None:
    assert from_rfc3339(text) == 1_710_054_000_000_000


@pytest.mark.parametrize(
    "text",
    ["", "2024-03-10", "2024-03-10T07:00:00", "2024-02-30T00:00:00Z", "2024-13-01T00:00Z", "٢٠٢٤-03-10T07:00Z",
     "2024-03-10T24:00Z", "2024-03-10T07:00:00:00Z", "2024-03-10T07:00.5Z", "2024-03-10T7Z"],
)  # fmt: skip
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        from_rfc3339(text)


def test_days_count_across_a_leap_century() -> None:
    assert days_from_civil(2000, 3, 1) - days_from_civil(2000, 2, 28) == 2
    assert days_from_civil(1900, 3, 1) - days_from_civil(1900, 2, 28) == 1
    assert civil_from_days(days_from_civil(2000, 2, 29)) == (2000, 2, 29)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (45, "45s"),
        (60, "1m"),
        (754, "12m34s"),
        (15_014, "4h10m"),
        (86_400, "1d"),
        (266_400, "3d2h"),
        (-5, "0s"),
    ],
)
def test_a_span_is_told_in_two_units(seconds: int, text: str) -> None:
    assert span(seconds * 1_000_000) == text
