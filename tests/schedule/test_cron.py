"""Reading cron text: what is named, and what is refused, where and why."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from runguard.errors import ScheduleError
from runguard.instant import SECOND_US, from_rfc3339
from runguard.schedule.cron import MACROS, parse


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("7", (7,)),
        ("007", (7,)),
        ("5-8", (5, 6, 7, 8)),
        ("5-5", (5,)),
        ("5-5/9", (5,)),
        ("10-50/20", (10, 30, 50)),
        ("*/20", (0, 20, 40)),
        ("*/90", (0,)),
        ("*/999999999", (0,)),
        ("3,1,2,1", (1, 2, 3)),
        ("50-59/5,0", (0, 50, 55)),
    ],
)
def test_a_minute_field_names(text, minutes):
    assert parse(f"{text} 0 * * *").minutes == minutes


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [
        ("0", (0,)),
        ("7", (0,)),
        ("sun", (0,)),
        ("5-7", (0, 5, 6)),
        ("fri-sun", (0, 5, 6)),
        ("Fri-SUN/2", (0, 5)),
        ("5-sun", (0, 5, 6)),
        ("sun-tue", (0, 1, 2)),
        ("sun-sun", (0,)),
        ("0-7", (0, 1, 2, 3, 4, 5, 6)),
        ("*/7", (0,)),
        ("*/5", (0, 5)),
        ("MON,wed", (1, 3)),
    ],
)
def test_a_weekday_field_names(text, weekdays):
    assert parse(f"0 0 * * {text}").weekdays == weekdays


def test_months_have_names_in_any_case():
    assert parse("0 0 1 jan-MAR,Dec *").months == (1, 2, 3, 12)


@pytest.mark.parametrize("text", [" 30\t2  * * *  ", "\t30 2 * * *", "30 \t 2\t*\t*\t*\t"])
def test_spaces_and_tabs_part_fields(text):
    cron = parse(text)
    assert (cron.minutes, cron.hours, cron.expression) == ((30,), (2,), text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
    ],
)
def test_a_macro_stands_for(text, same):
    assert parse(text) == parse(same)._replace(expression=text)


@pytest.mark.parametrize(
    ("text", "wild"),
    [
        ("* 2 * * *", True),
        ("*/15 2 * * *", True),
        ("0 * * * *", True),
        ("0 */2 * * *", True),
        ("*,5 2 * * *", True),
        ("5,* 2 * * *", False),
        ("0 0-23 * * *", False),
        ("0 0 */2 * *", False),
        ("@hourly", True),
        ("@daily", False),
    ],
)
def test_a_schedule_is_wild_where_minute_or_hour_starts_with_a_star(text, wild):
    assert parse(text).wild is wild


@pytest.mark.parametrize(
    ("text", "all_hours"),
    [
        ("0 * * * *", True),
        ("0 0-23 * * *", True),
        ("0 */1 * * *", True),
        ("0 */2 * * *", False),
        ("0 1-23 * * *", False),
    ],
)
def test_an_hour_field_covers_the_day(text, all_hours):
    assert parse(text).all_hours is all_hours


@pytest.mark.parametrize(
    ("text", "day_and"),
    [
        ("0 0 1 * 5", False),
        ("0 0 1-31 * 5", False),
        ("0 0 15,* * 5", False),
        ("0 0 */2 * 5", True),
        ("0 0 *,15 * 5", True),
        ("0 0 13 * */5", True),
        ("0 0 * * *", True),
    ],
)
def test_a_star_first_in_either_day_field_joins_them_by_and(text, day_and):
    assert parse(text).day_and is day_and


def test_two_hundred_day_rules_match_the_dates_that_crontab_5_names(schedules):
    first = datetime(2023, 12, 25)
    from_us, until_us = from_rfc3339("2023-12-24T23:59:00Z"), from_rfc3339("2028-12-31T23:59:00Z")
    for seed in range(200):
        made = schedules.expression(seed)
        days = [first + timedelta(days=n) for n in range(1834)]

        found = {due_us // (86_400 * SECOND_US) for due_us in schedules.table(made.text).dues(from_us, until_us)}

        expected = {(day - datetime(1970, 1, 1)).days for day in days if made.names_day(day)}
        assert found == expected, made.text


@pytest.mark.parametrize(
    "text", ["0 0 30 2 1", "0 0 30 2 0-7", "0 0 31 4 mon", "0 0 29 2 *", "0 0 29 2 */7", "0 0 31 2,3 *"]
)
def test_a_date_that_comes_is_accepted(text):
    assert parse(text).expression == text


@pytest.mark.parametrize(
    ("text", "field", "column", "why"),
    [
        ("60 0 * * *", "minute", 1, "60 outside 0-59"),
        ("0 24 * * *", "hour", 3, "24 outside 0-23"),
        ("0 0 0 * *", "day of month", 5, "0 outside 1-31"),
        ("0 0 1 13 *", "month", 7, "13 outside 1-12"),
        ("0 0 * * 8", "day of week", 9, "8 outside 0-7"),
        ("5/15 * * * *", "minute", 1, "step without a range '5/15': write '5-59/15'"),
        ("0 0 * * sun/2", "day of week", 9, "step without a range 'sun/2': write '0-7/2'"),
        ("1,5-2 * * * *", "minute", 3, "reversed range '5-2'"),
        ("0 6 * * sat-mon", "day of week", 9, "reversed range 'sat-mon'"),
        ("0 6 * * 7-1", "day of week", 9, "reversed range '7-1'"),
        ("0 6 * * 5-0", "day of week", 9, "reversed range '5-0'"),
        ("0 6 * dec-jan *", "month", 7, "reversed range 'dec-jan'"),
        ("*/0 * * * *", "minute", 1, "bad step '*/0'"),
        ("*/ * * * *", "minute", 1, "bad step '*/'"),
        ("*/-1 * * * *", "minute", 1, "bad step '*/-1'"),
        ("*/1/2 * * * *", "minute", 1, "bad step '*/1/2'"),
        ("0-5/1000000000 * * * *", "minute", 1, "bad step '0-5/1000000000'"),
        ("** * * * *", "minute", 1, "bad value '**'"),
        ("*-5 * * * *", "minute", 1, "bad value '*'"),
        ("0 5- * * *", "hour", 5, "bad value ''"),
        ("0 -5 * * *", "hour", 3, "bad value ''"),
        ("0 1-2-3 * * *", "hour", 5, "bad value '2-3'"),
        ("0 1,,2 * * *", "hour", 5, "bad value ''"),
        ("0 +1 * * *", "hour", 3, "bad value '+1'"),
        ("0 ٣ * * *", "hour", 3, "bad value '٣'"),
        ("0 ² * * *", "hour", 3, "bad value '²'"),
        ("0 0 L * *", "day of month", 5, "bad value 'L'"),
        ("0 0 ? * *", "day of month", 5, "bad value '?'"),
        ("0 0 * mon *", "month", 7, "bad value 'mon'"),
        ("0 0 * january *", "month", 7, "bad value 'january'"),
        ("0 0 * * 1#2", "day of week", 9, "bad value '1#2'"),
        ("0\t0  *\t* x", "day of week", 10, "bad value 'x'"),
        ("0 0 * * *\n", "day of week", 9, "bad value '*\\n'"),
        ("0 0 * * \0", "day of week", 9, "bad value '\\x00'"),
        ("0 0 *\r * *", "day of month", 5, "bad value '*\\r'"),
        ("0 0 *\u00a0* * *", "day of month", 5, "bad value '*\\xa0*'"),
        ("0 0 30 2 *", "day of month", 5, "no such date in any year: day 30 of these months"),
        ("0 0 31 feb,apr */2", "day of month", 5, "no such date in any year: day 31 of these months"),
    ],
)
def test_text_is_refused_with_field_column_and_piece(text, field, column, why):
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    assert (caught.value.field, caught.value.position, caught.value.why) == (field, column, why)


@pytest.mark.parametrize(
    ("text", "column", "why"),
    [
        ("", 0, "need 5 fields, got 0"),
        ("  \t ", 0, "need 5 fields, got 0"),
        ("* * * *", 0, "need 5 fields, got 4"),
        ("0 0 0 * * *", 11, "need 5 fields, got 6: '*'"),
        ("30 2 * * * root /bin/true", 12, "need 5 fields, got 7: 'root'"),
        ("@fortnightly", 1, "need 5 fields, got 1: '@fortnightly' is not known"),
        ("@daily x", 0, "need 5 fields, got 2"),
        ("RRULE:FREQ=DAILY;BYHOUR=2", 0, "need 5 fields, got 1"),
        ("每天", 0, "need 5 fields, got 1"),
    ],
)
def test_text_of_another_form_is_told_the_accepted_ones(text, column, why):
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    accepted = "; a schedule is five cron fields such as '30 2 * * *', one of " + " ".join(MACROS)
    accepted += ", or 'RRULE:FREQ=…' with 'DTSTART:…' before it or not"
    assert (caught.value.field, caught.value.position, caught.value.why) == ("", column, why + accepted)


def test_reboot_is_refused_because_it_has_no_window():
    with pytest.raises(ScheduleError) as caught:
        parse("@reboot")
    assert str(caught.value) == (
        "schedule '@reboot', column 1: need 5 fields, got 1: '@reboot' is no time of day, so it has no window"
    )


@pytest.mark.parametrize(
    "text",
    [
        "9" * 100_000,
        "* " * 50_000,
        "*/" + "9" * 900 + " * * * *",
        "1," * 400 + "x * * * *",
        "\n" * 100_000,
        "\0" * 900,
        "\ud800 * * * *",
        "\x1b[31m * * * *",
        "0 0 * * " + "x" * 900,
        "@" + "x" * 900,
        "\u202e * * * *",
    ],
)
def test_hostile_text_gets_one_short_printable_line(text):
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 500
