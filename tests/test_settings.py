"""The table of settings and what its values mean."""

from __future__ import annotations

import pytest

from runguard import settings
from runguard.errors import UsageError
from runguard.settings import BY_NAME, TABLE, Request, Settings


def test_every_setting_is_a_field_and_every_field_a_setting() -> None:
    assert {setting.into for setting in TABLE} == set(Settings._fields)


def test_no_two_settings_share_an_option_letter() -> None:
    letters = [setting.short for setting in TABLE if setting.short]
    assert sorted(letters) == ["c", "j", "s", "t", "z"]


def test_a_key_is_the_long_option_with_underscores() -> None:
    assert BY_NAME["kill_after"].option == "--kill-after"


def test_the_store_stands_at_the_top_level_only() -> None:
    assert BY_NAME["store"].is_key(top=True)
    assert not BY_NAME["store"].is_key(top=False)


def test_what_only_a_command_line_says_is_no_key() -> None:
    assert [each.name for each in TABLE if not each.is_key(top=True)] == [
        "job", "shell", "like_cron", "scheduled_at", "reason", "dry_run",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "meaning"),
    [
        ("timeout", 90, 90.0), ("timeout", "1h30m", 5400.0), ("timeout", 0.5, 0.5), ("ping_start", False, False),
        ("conflict_exit", 99, 99), ("output_head", "64k", 65536), ("output_head", 1000, 1000),
        ("mask", ["a+"], ("a+",)), ("policy", "walk", "walk"), ("schedule", "@daily", "@daily"),
        ("ping", "https://hc.example/ping/x", "https://hc.example/ping/x"),
    ],
)  # fmt: skip
def test_values_of_keys(name: str, value: object, meaning: object) -> None:
    assert settings.parse_key(BY_NAME[name], value) == meaning


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("timeout", True, 'a duration ("90s", "15m", 90) is wanted'),
        ("timeout", -1, "-1 is not a duration from 0 to 1000 days"),
        ("timeout", float("nan"), "nan is not a duration from 0 to 1000 days"),
        ("timeout", [], 'a duration ("90s", "15m", 90) is wanted'),
        ("ping_start", "yes", "true or false is wanted"),
        ("conflict_exit", "75", "a number is wanted"),
        ("conflict_exit", 256, "256 is not a number from 0 to 255"),
        ("conflict_exit", True, "a number is wanted"),
        ("policy", "vixi", "'vixi' is not one of vixie, walk, systemd, quartz, shift; did you mean vixie?"),
        ("policy", 1, "a text in quotes is wanted"),
        ("schedule", 5, "a text in quotes is wanted"),
        ("schedule", " ", "is empty"),
        ("mask", "a+", "a list of regular expressions is wanted"),
        ("mask", ["("], "'(' is no regular expression: missing ), unterminated subpattern at position 0"),
        ("mask", ["a{99999999999}"], "'a{99999999999}' is no regular expression: the repetition number is too large"),
        ("mask", [1], "a list of regular expressions is wanted"),
        ("output_tail", "2g", "2147483648 is not a number from 0 to 1073741824"),
        ("output_tail", "x", "'x' is no size (65536, 64k, 1M)"),
        ("store", "postgresql://u:secret@h/d", "records are kept in an SQLite file; 'postgresql://' is not known"),
        ("store", "", "is empty"),
        ("store", "/a/", "'/a/' is not the path of a file"),
    ],
)
def test_values_that_a_key_does_not_take(name: str, value: object, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        settings.parse_key(BY_NAME[name], value)
    assert str(caught.value) == why


def test_a_pattern_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match="is no regular expression: maximum recursion depth exceeded"):
        settings.parse_key(BY_NAME["mask"], ["(" * 10_000])


@pytest.mark.parametrize(
    "address", ["", " ", "hc.example/ping/token", "ftp://h/token", "https://", "https:///token", "https://h/to ken", "https://h/é",
                "https://h/a\nb", "://h/token", "https://:/token", "https://h:x/token", "https://[::1]:0/token",
                "https://hc-ping.com/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278/fail?token",
                "https://u.example/api/v1/heartbeat/token/1"],
)  # fmt: skip
def test_a_bad_address_is_refused_without_being_quoted(address: str) -> None:
    with pytest.raises(ValueError) as caught:
        settings.parse(BY_NAME["ping"], address)
    assert "token" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["https://h:8000/x", "http://[::1]:80", "https://h/hooks/1", "https://u:p@h/fail", "https://h?x=a:b"],
)  # fmt: skip
def test_a_good_address_is_taken_as_it_is(address: str) -> None:
    assert settings.parse(BY_NAME["ping"], address) == address


def test_an_address_for_one_event_alone_is_good_for_that_event() -> None:
    address = "https://hc-ping.com/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278/fail"
    assert settings.parse_key(BY_NAME["ping_fail_url"], address) == address


def test_an_option_that_decides_windows_or_pings_is_judged_later() -> None:
    assert settings.option_value(BY_NAME["policy"], "nonsense") == "nonsense"
    assert settings.option_value(BY_NAME["ping"], "") == ""
    with pytest.raises(ValueError):
        settings.option_value(BY_NAME["timeout"], "nonsense")


def test_a_request_takes_the_name_of_its_command() -> None:
    found = settings.request({"output": "never"}, ["/opt/send", "-x"])
    assert found == Request({"output": "never"}, ("/opt/send", "-x"), "send")


def test_a_given_name_wins() -> None:
    assert settings.request({"job": "letters", "shell": True}, ["exit 3"]).job == "letters"


@pytest.mark.parametrize(
    ("given", "command", "message"),
    [
        ({}, [], "run: no COMMAND is given (runguard run [OPTIONS] [--] COMMAND [ARGUMENT]...)"),
        ({"shell": True, "job": "a"}, ["a", "b"],
         "run: --shell takes one string, and 2 arguments are given: quote the command"),
        ({"shell": True}, ["a"], "run: --job NAME is needed: a shell string has no name of its own"),
        ({}, ["python3"], "run: --job NAME is needed: 'python3' runs many jobs and names none"),
        ({}, ["a b"], "run: --job NAME is needed: 'a b' is no job name (letters, digits, '.', '_', '-'; a letter or"
                      " digit first)"),
    ],
)  # fmt: skip
def test_requests_that_are_usage_errors(given: dict[str, object], command: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings.request(given, command)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "at_us"),
    [
        ("2026-03-29T01:30:00Z", 1_774_747_800_000_000),
        ("2026-03-29 02:30:00+01:00", 1_774_747_800_000_000),
        ("2026-03-29t02:30+01:00", 1_774_747_800_000_000),
        ("1774747800000000", 1_774_747_800_000_000),
    ],
)
def test_moments(text: str, at_us: int) -> None:
    assert settings.parse(BY_NAME["scheduled_at"], text) == at_us


@pytest.mark.parametrize("text", ["", "now", "2026-03-29T02:30:00", "2026-02-30T02:30:00Z", "1774747800", "2026-03-29"])
def test_text_that_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="is no instant with an offset"):
        settings.parse(BY_NAME["scheduled_at"], text)
