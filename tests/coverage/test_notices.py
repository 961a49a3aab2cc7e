"""When people are told: by the clock alone, from what they were told last."""

from __future__ import annotations

from collections.abc import Mapping

from runguard.coverage.notices import Said, notice
from runguard.instant import from_rfc3339

BAD = {"letters": "critical"}


class Telling:
    """Checks one after the other, each told of and remembered."""

    def __init__(self) -> None:
        self.said: Said | None = None

    def __call__(self, at: str, levels: Mapping[str, str], *, delivered: bool = True) -> str | None:
        found = notice(self.said, levels, from_rfc3339(at))
        if found is None:
            return None
        if delivered:
            self.said = found.said
        return found.event


def test_failures_and_a_success_are_told_once_each() -> None:
    tell = Telling()
    told = [
        tell(f"2026-03-01T0{hour}:00:00Z", levels)
        for hour, levels in enumerate([{}, BAD, BAD, BAD, {}, {}, BAD])  # . F F F S S F
    ]
    assert told == [None, "problem", None, None, "recovery", None, "problem"]


def test_the_first_check_says_nothing_while_all_is_well() -> None:
    assert Telling()("2026-03-01T00:00:00Z", {}) is None


def test_what_stays_wrong_is_repeated_once_a_day() -> None:
    tell = Telling()
    tell("2026-03-01T00:00:00Z", BAD)
    times = [f"2026-03-0{day}T{hour:02}:00:00Z" for day in (1, 2, 3) for hour in range(1, 24)]
    assert [at for at in times if tell(at, BAD)] == ["2026-03-02T01:00:00Z", "2026-03-03T01:00:00Z"]


def test_a_check_that_comes_once_a_day_and_seconds_early_repeats_every_day() -> None:
    tell = Telling()
    told = [tell(at, BAD) for at in ("2026-03-01T08:00:03Z", "2026-03-02T08:00:01Z", "2026-03-03T08:00:02Z")]
    assert told == ["problem", "repeat", "repeat"]


def test_days_without_a_check_are_not_made_up_for() -> None:
    tell = Telling()
    told = [tell(at, BAD) for at in ("2026-03-01T08:00:00Z", "2026-03-06T08:00:00Z", "2026-03-06T09:00:00Z")]
    assert told == ["problem", "repeat", None]


def test_every_change_of_a_level_is_told() -> None:
    tell = Telling()
    levels = ["warning", "critical", "critical", "warning", "unknown"]
    told = [tell(f"2026-03-01T0{hour}:00:00Z", {"letters": level}) for hour, level in enumerate(levels)]
    assert told == ["problem", "problem", None, "problem", "problem"]


def test_a_second_job_that_fails_is_told_though_the_whole_was_critical_already() -> None:
    tell = Telling()
    told = [
        tell("2026-03-01T01:00:00Z", {"letters": "critical"}),
        tell("2026-03-01T02:00:00Z", {"letters": "critical", "backup": "critical"}),
        tell("2026-03-01T03:00:00Z", {"backup": "critical"}),
        tell("2026-03-01T04:00:00Z", {}),
    ]
    assert told == ["problem", "problem", "problem", "recovery"]


def test_what_was_not_delivered_is_told_by_the_next_check() -> None:
    tell = Telling()
    told = [tell(f"2026-03-01T0{hour}:00:00Z", BAD, delivered=hour == 2) for hour in range(4)]
    assert told == ["problem", "problem", "problem", None]


def test_there_is_no_recovery_from_what_nobody_was_told() -> None:
    tell = Telling()
    tell("2026-03-01T01:00:00Z", BAD, delivered=False)
    assert tell("2026-03-01T02:00:00Z", {}) is None


def test_of_two_checks_at_once_the_one_that_saw_less_is_silent() -> None:
    tell = Telling()
    tell("2026-03-01T01:00:03Z", BAD)
    assert tell("2026-03-01T01:00:02Z", {}) is None


def test_a_clock_that_was_set_back_silences_nothing() -> None:
    tell = Telling()
    tell("2036-03-01T01:00:00Z", BAD)
    told = [tell(f"2026-03-01T0{hour}:00:00Z", BAD) for hour in range(2)]
    assert told == ["repeat", None]
