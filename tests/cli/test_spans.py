"""Instants that people type: what each text means, and what is refused because it would have to be guessed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runguard import zones
from runguard.cli.spans import when
from runguard.errors import UsageError
from runguard.instant import from_rfc3339, rfc3339
from shell import SOURCE

LONDON = zones.load("Europe/London").zone
# London 2026: clocks go forward at 01:00 UTC on 29 March, back at 01:00 UTC on 25 October.
# Now is a Sunday, 11:15:30 in London.
NOW = "2026-03-29T10:15:30Z"


def meant(text: str, now: str = NOW) -> str:
    return rfc3339(when("--since", text).at_us(from_rfc3339(now), LONDON))


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", "2026-03-29T10:15:30Z"),
        ("today", "2026-03-29T00:00:00Z"),
        ("Yesterday", "2026-03-28T00:00:00Z"),
        ("tomorrow", "2026-03-29T23:00:00Z"),
        ("14:30", "2026-03-29T13:30:00Z"),
        ("06:05:04", "2026-03-29T05:05:04Z"),
        ("2:30 pm", "2026-03-29T13:30:00Z"),
        ("yesterday 14:30", "2026-03-28T14:30:00Z"),
        ("yesterday at 2pm", "2026-03-28T14:00:00Z"),
        ("yesterday 12am", "2026-03-28T00:00:00Z"),
        ("today 06:05:04", "2026-03-29T05:05:04Z"),
        ("last monday", "2026-03-23T00:00:00Z"),
        ("last sunday", "2026-03-22T00:00:00Z"),
        ("last sat 18:00", "2026-03-28T18:00:00Z"),
        ("next sunday 02:00", "2026-04-05T01:00:00Z"),
        # 3 days ago by the wall clock, 2 hours ago by any clock
        ("3 days ago", "2026-03-26T11:15:30Z"),
        ("a day ago", "2026-03-28T11:15:30Z"),
        ("2 hours ago", "2026-03-29T08:15:30Z"),
        ("an hour ago", "2026-03-29T09:15:30Z"),
        ("90 seconds ago", "2026-03-29T10:14:00Z"),
        ("1 month ago", "2026-02-28T11:15:30Z"),
        ("2 years ago", "2024-03-29T11:15:30Z"),
        ("in 2 hours", "2026-03-29T12:15:30Z"),
        ("in 3 weeks", "2026-04-19T10:15:30Z"),
        ("7d", "2026-03-22T10:15:30Z"),
        ("7d ago", "2026-03-22T10:15:30Z"),
        ("1h30m", "2026-03-29T08:45:30Z"),
        ("2026-03-29", "2026-03-29T00:00:00Z"),
        ("2026-03-30", "2026-03-29T23:00:00Z"),
        ("20260330", "2026-03-29T23:00:00Z"),
        ("2026-07-01T12:00", "2026-07-01T11:00:00Z"),
        ("2026-07-01 12:00:30", "2026-07-01T11:00:30Z"),
        ("2026-07-01T12:00Z", "2026-07-01T12:00:00Z"),
        ("2026-07-01t12:00-05:00", "2026-07-01T17:00:00Z"),
        ("29 March 2026", "2026-03-29T00:00:00Z"),
        ("March 30, 2026", "2026-03-29T23:00:00Z"),
        ("30th of march 2026 at 14:00", "2026-03-30T13:00:00Z"),
        ("1-may-2026", "2026-04-30T23:00:00Z"),
        ("29 mar 2026 2pm", "2026-03-29T13:00:00Z"),
        ("29 mar 2026 14:30 -0500", "2026-03-29T19:30:00Z"),
        ("29 mar 2026 14:30 UTC", "2026-03-29T14:30:00Z"),
        ("Sun, 29 Mar 2026 02:30:00 +0100", "2026-03-29T01:30:00Z"),
    ],
)
def test_a_text_means_an_instant(text: str, instant: str) -> None:
    assert meant(text) == instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-29T01:30", "2026-03-29T01:00:00Z"),  # does not exist: the first instant after
        ("2026-03-29T02:00", "2026-03-29T01:00:00Z"),
        ("2026-10-25T01:30", "2026-10-25T00:30:00Z"),  # comes twice: the first
        ("2026-10-25T02:00", "2026-10-25T02:00:00Z"),
    ],
)
def test_a_local_time_near_a_change_of_clocks_is_read_by_a_rule(text: str, instant: str) -> None:
    assert meant(text) == instant


@pytest.mark.parametrize("text", ["now", "7d", "in 2 hours", "3 days ago"])
def test_what_is_reckoned_from_now_is_a_whole_second(text: str) -> None:
    assert meant(text, "2026-03-29T10:15:30.756956Z") == meant(text)


def test_yesterday_is_a_day_of_the_jobs_zone() -> None:
    auckland = zones.load("Pacific/Auckland").zone
    at_us = when("--since", "yesterday").at_us(from_rfc3339("2026-07-01T13:00:00Z"), auckland)
    assert rfc3339(at_us) == "2026-06-30T12:00:00Z"  # 1 July in Auckland, where it is the 2nd


def test_without_a_zone_it_is_ours() -> None:
    code = "from runguard.cli.spans import when; print(when('--since', 'yesterday').at_us(1774779330000000))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"TZ": "Asia/Tokyo", "PYTHONPATH": SOURCE}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert rfc3339(int(done.stdout)) == "2026-03-27T15:00:00Z"


NONSENSE = (
    "", " ", "yesterdayish", "monday", "last", "next", "last week", "last funday", "ten days ago", "3 days", "days ago",
    "today today", "7", "10", "2026", "1430", "24:00", "14:60", "13:00pm",
    "march", "march 2026", "29 march", "29 march 26", "29 30 march 2026",
    "5 march 2026 3", "5 march 2026 14", "29 march 2026 0230", "29 march 2026 march", "30 feb 2026",
    "29 mar 2026 25:00", "Mon, 29 Mar 2026", "29 mar 2026 14:30 EST", "29 mar 2026 t", "2026-13-01", "2026-02-30",
    "2026-03-29x01:30",
    "2026/03/29", "1e3", "-7d", "1001d", "30m1h", "yesterday 14", "yesterday 13pm", "yesterday 25:00", "２０２６-03-29",
    "2026-03-29\x00", "29 mär 2026", "now now", "tuesday 2026-03-29",
)  # fmt: skip


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_not_guessed_at(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--since: .* is no instant \(2026-03-29, "):
        meant(text)


@pytest.mark.parametrize("text", ["03/04/2026", "3.4.2026", "13/04/2026", "29/03/26", "03-04-2026 12:00"])
def test_a_date_that_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"can be read in more than one way \(write 2026-03-29\)$"):
        meant(text)


@pytest.mark.parametrize("text", ["999999 years ago", "999999 days ago", "in 9000 years"])
def test_what_lies_beyond_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r": no calendar goes there$"):
        meant(text)
