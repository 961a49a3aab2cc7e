"""What a Healthchecks server is asked, and which schedules it cannot be asked to expect."""

from __future__ import annotations

import pytest

from runguard import zones
from runguard.heartbeat.management import (
    Check,
    Wish,
    body_of,
    check_of,
    endpoint,
    server_of,
    wish,
    wish_without_schedule,
    words,
)
from runguard.instant import from_rfc3339
from runguard.model import Schedule

UUID = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
KEY = "fqOOd6-F4MMNuCEnzTU01w"
NOW = from_rfc3339("2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("url", "server", "check"),
    [
        (f"https://hc-ping.com/{UUID}", "https://healthchecks.io", Check(uuid=UUID)),
        (f"https://hc-ping.com/{KEY}/letters", "https://healthchecks.io", Check(slug="letters")),
        (f"https://hc.example.org/ping/{UUID}", "https://hc.example.org", Check(uuid=UUID)),
        (f"http://127.0.0.1:8000/ping/{KEY}/letters?create=1", "http://127.0.0.1:8000", Check(slug="letters")),
        (f"https://bob:pw@example.org/hc/ping/{UUID}", "https://example.org/hc", Check(uuid=UUID)),
    ],
)
def test_an_address_tells_its_server_and_its_check(url: str, server: str, check: Check) -> None:
    assert (server_of(url), check_of(url)) == (server, check)


def test_an_address_without_the_path_of_pings_tells_no_server() -> None:
    assert server_of(f"https://pings.example.org/{UUID}") is None


@pytest.mark.parametrize(
    "given", ["https://hc.example.org", "https://hc.example.org/", "https://hc.example.org/api/v3/"]
)
def test_the_endpoint_is_that_of_version_3_however_the_server_is_spelled(given: str) -> None:
    assert endpoint(given, Check(slug="letters")) == "https://hc.example.org/api/v3/checks/"
    assert endpoint(given, Check(uuid=UUID)) == f"https://hc.example.org/api/v3/checks/{UUID}"


def asked(expression: str, zone: str = "Europe/London", grace_s: float = 300, **rules: str) -> Wish | str:
    return wish(Schedule(expression, zone, **rules), zones.load(zone).zone, NOW, grace_s=grace_s)


@pytest.mark.parametrize(
    ("expression", "sent"),
    [
        ("30 2 * * *", "30 2 * * *"),
        ("*/5  8-18 * * mon-fri", "*/5  8-18 * * mon-fri"),  # as it is
        ("@daily", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@yearly", "0 0 1 1 *"),
    ],
)
def test_cron_fields_are_sent_as_they_are_and_a_macro_as_the_fields_it_stands_for(expression: str, sent: str) -> None:
    assert asked(expression) == Wish({"schedule": sent, "tz": "Europe/London", "grace": 300})


@pytest.mark.parametrize(
    ("rules", "zone"),
    [
        ({"policy": "systemd"}, "UTC"),  # no clock changes
        ({"policy": "walk"}, "Asia/Tokyo"),
        ({"gap": "after", "fold": "first"}, "Europe/London"),  # what Debian's cron does with a fixed schedule
    ],
)
def test_a_policy_that_makes_no_difference_is_none(rules: dict[str, str], zone: str) -> None:
    assert asked("30 1 * * *", zone, **rules) == Wish({"schedule": "30 1 * * *", "tz": zone, "grace": 300})


def test_nor_does_it_make_one_at_a_time_that_no_change_touches() -> None:
    assert isinstance(asked("0 5 * * *", policy="shift"), Wish)


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        # 01:30 does not exist on 29 March 2026, and comes twice on 25 October
        ({"policy": "systemd"}, "policy systemd"),
        ({"policy": "quartz"}, "policy quartz"),
        ({"gap": "shift"}, "policy vixie, gap shift"),
        ({"fold": "both"}, "policy vixie, fold both"),
    ],
)
def test_a_policy_that_makes_one_is_named_and_nothing_is_sent(rules: dict[str, str], named: str) -> None:
    told = f"with {named} it has other windows than a server expects, which goes by Debian's cron"
    assert asked("30 1 * * *", **rules) == told


@pytest.mark.parametrize(
    ("expression", "zone", "why"),
    [
        ("RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-1", "UTC", "it is a recurrence, and the server knows cron expressions"),
        ("DTSTART:20260101T000000\nRRULE:FREQ=DAILY", "UTC", "it is a recurrence, and"),
        (",".join(map(str, range(60))) + " * * * *", "UTC", "it has more than 100 characters"),
        ("5-5/2 * * * *", "UTC", "a server takes '5-5/2' for '5/2': write '5'"),
        ("30 2 * * *", "Australia/Lord_Howe", "changes by a part of an hour, which a server cannot follow"),
        ("7 * * * *", "Africa/Cairo", "skips a midnight, at which a server expects it all the same"),
        ("@reboot", "UTC", "'@reboot' is no time of day"),
    ],
)
def test_what_a_server_would_read_otherwise_is_named(expression: str, zone: str, why: str) -> None:
    found = asked(expression, zone)
    assert isinstance(found, str)
    assert why in found


def test_a_schedule_that_is_due_right_after_the_midnight_that_is_skipped_is_read_alike() -> None:
    assert isinstance(asked("*/5 * * * *", "Africa/Cairo"), Wish)


def test_a_zone_without_a_name_is_named() -> None:
    told = wish(Schedule("@daily", "localtime"), zones.load("UTC").zone, NOW, grace_s=300)
    assert told == "the zone of this host has no name; name one (key timezone)"


def test_a_job_without_a_schedule_whose_success_must_not_be_too_old_is_a_period() -> None:
    assert wish_without_schedule(86_400, grace_s=600) == Wish({"timeout": 86_400, "grace": 600})
    told = "its max_age is 30 s, and the server takes 60 to 31536000"
    assert wish_without_schedule(30, grace_s=600) == told


def test_a_grace_that_the_server_does_not_take_is_the_nearest_with_a_remark_or_refused() -> None:
    assert asked("@daily", grace_s=10) == Wish(
        {"schedule": "0 0 * * *", "tz": "Europe/London", "grace": 60},
        "a grace of 10 s is asked for; the least that the server takes is 60",
    )
    assert asked("@daily", grace_s=400 * 86_400) == (
        "its grace and timeout are 34560000 s together, and the server takes at most 31536000"
    )


def test_a_check_is_found_by_its_address_its_slug_or_the_jobs_name() -> None:
    fields = {"schedule": "0 0 * * *", "tz": "UTC", "grace": 300}
    assert body_of("letters", Check(uuid=UUID), fields) == fields
    assert body_of("letters", Check(slug="l"), fields) == {"slug": "l", **fields, "unique": ["slug"]}
    assert body_of("letters", Check(), fields) == {"name": "letters", **fields, "unique": ["name"]}


@pytest.mark.parametrize(
    ("status", "check", "said"),
    [
        (None, Check(), "no answer: timed out"),
        (400, Check(), "the server does not take this check (timed out)"),
        (401, Check(), "the server does not take the key of ping_api_key (timed out)"),
        (403, Check(uuid=UUID), "the check belongs to another project than the key of ping_api_key (timed out)"),
        (503, Check(), "the server fails: HTTP 503 (timed out)"),
        (418, Check(), "HTTP 418 (timed out)"),
    ],
)
def test_an_answer_is_put_into_words(status: int | None, check: Check, said: str) -> None:
    assert words(status, "timed out", check) == said
