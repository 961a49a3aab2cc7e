"""What people type, as values."""

from __future__ import annotations

import pytest

from runguard import values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("15m", 900), ("2h", 7200), ("1h30m", 5400), ("7d", 604_800), ("45", 45), ("0", 0), ("0.5", 0.5),
        ("1.5s", 1.5), ("1w", 604_800), ("1d2h3m4s", 93_784), ("1000d", 86_400_000),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert values.duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "5x", "1h30", "30m1h", "1h1h", "-5", "+5", "1.5h", "1.", ".5", "1..2", "1e3", "٣s", "s", "1 h", "0h5",
     "5S", "nan", "inf", "99999999999999s", "1m30"],
)  # fmt: skip
def test_text_that_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        values.duration(text)
    assert str(caught.value) == f"{text!r} is no duration (90s, 15m, 2h, 1h30m, 7d)"


def test_a_duration_ends_at_a_thousand_days() -> None:
    with pytest.raises(ValueError, match="'1001d' is not a duration from 0 to 1000 days"):
        values.duration("1001d")


@pytest.mark.parametrize(
    ("text", "number"), [("65536", 65536), ("64k", 65536), ("64KiB", 65536), ("1M", 1 << 20), ("1g", 1 << 30), ("0", 0)]
)
def test_sizes(text: str, number: int) -> None:
    assert values.size(text) == number


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5M", "64kb", "1T", "2g"])
def test_text_that_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        values.size(text)


@pytest.mark.parametrize("name", ["a", "A1", "letters-2.x_y", "0", "x" * 100])
def test_names_that_jobs_may_have(name: str) -> None:
    assert values.job_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "-a", "_a", "a/b", "a b", "a\n", "a\x00", "é", "x" * 101, "../x", "a:b", "٣"]
)
def test_names_that_no_job_may_have(name: str) -> None:
    with pytest.raises(ValueError):
        values.job_name(name)


@pytest.mark.parametrize(
    ("command", "name"),
    [("/opt/letters/send", "send"), ("backup.sh", "backup.sh"), ("./send-all", "send-all"), ("true", "true")],
)
def test_a_job_is_named_after_its_command(command: str, name: str) -> None:
    assert values.job_name_of([command, "--all"], shell=False) == name


@pytest.mark.parametrize(
    "command", ["python3", "/usr/bin/python3.11", "sh", "bash", "env", "sudo", "perl5.36", "", "/", "a b"]
)
def test_commands_whose_name_would_not_do(command: str) -> None:
    with pytest.raises(ValueError):
        values.job_name_of([command], shell=False)


def test_a_shell_string_names_no_job() -> None:
    with pytest.raises(ValueError, match="a shell string has no name of its own"):
        values.job_name_of(["send"], shell=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tiemout", "timeout"),
        ("sched", "schedule"),
        ("ti", ""),
        ("shedule", "schedule"),
        ("time_out", "timeout"),
        ("xyzzy", ""),
        ("Timeout", "timeout"),
        ("", ""),
    ],
)
def test_the_nearest_name(text: str, found: str) -> None:
    assert values.nearest(text, ["schedule", "timeout", "timezone"]) == found
