"""`next`: coming windows, with what daylight saving does to them in words."""

from __future__ import annotations

import csv
from typing import Any

import pytest

LONDON = {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None}


def changed(job: str = "letters", **schedule: Any) -> tuple[str, str, Any]:
    entry = {"job": job, "change": "registered", "revision": 1, "schedule": {**LONDON, **schedule}}
    return "job.changed", "2026-03-26T03:00:00Z", {**entry, "after": "2026-03-26T02:30:00Z"}


def of(schedule: str, zone: str, start: str, until: str, *more: str) -> tuple[str, ...]:
    return ("next", "--schedule", schedule, "--timezone", zone, "--from", start, "--until", until, *more)


def told(shell: Any, *arguments: str) -> list[tuple[str, str | None]]:
    """Return label and oddity of the windows."""
    return [(window["label"], window["oddity"]) for window in shell.json(*arguments)]


# London: clocks go forward at 01:00 UTC on 29 March 2026, back at 01:00 UTC on 25 October.
@pytest.mark.parametrize(
    ("schedule", "more", "windows"),
    [
        (
            "30 1 * * *",
            (),
            [
                ("2026-03-28T01:30+00:00", None),
                ("2026-03-29T02:00+01:00", "01:30 does not exist on 29 March: due 02:00 BST"),
                ("2026-03-30T01:30+01:00", None),
            ],
        ),
        (
            "30 1 * * *",
            ("--policy", "shift"),
            [
                ("2026-03-28T01:30+00:00", None),
                ("2026-03-29T02:30+01:00", "01:30 does not exist on 29 March: due 02:30 BST"),
                ("2026-03-30T01:30+01:00", None),
            ],
        ),
        (
            "30 1 * * *",
            ("--gap", "skip"),
            [
                ("2026-03-28T01:30+00:00", None),
                ("2026-03-30T01:30+01:00", "01:30 does not exist on 29 March: no window"),
            ],
        ),
        (
            "0 1,2 * * *",
            (),
            [
                ("2026-03-28T01:00+00:00", None),
                ("2026-03-28T02:00+00:00", None),
                ("2026-03-29T02:00+01:00", "01:00 does not exist on 29 March: 02:00 stands for it too"),
                ("2026-03-30T01:00+01:00", None),
                ("2026-03-30T02:00+01:00", None),
            ],
        ),
    ],
)
def test_a_gap_is_told_in_words(shell: Any, schedule: str, more: tuple[str, ...], windows: list[Any]) -> None:
    assert told(shell, *of(schedule, "Europe/London", "2026-03-28", "2026-03-30T02:00", *more)) == windows


@pytest.mark.parametrize(
    ("more", "windows"),
    [
        ((), [("2026-10-25T01:30+01:00", "01:30 comes twice on 25 October: the first counts")]),
        (("--fold", "second"), [("2026-10-25T01:30+00:00", "01:30 comes twice on 25 October: the second counts")]),
        (
            ("--policy", "walk"),
            [
                ("2026-10-25T01:30+01:00", "01:30 comes twice on 25 October: both count, this is the first"),
                ("2026-10-25T01:30+00:00", "01:30 comes twice on 25 October: both count, this is the second"),
            ],
        ),
    ],
)
def test_a_fold_is_told_in_words(shell: Any, more: tuple[str, ...], windows: list[Any]) -> None:
    assert told(shell, *of("30 1 * * *", "Europe/London", "2026-10-25", "2026-10-26", *more)) == windows


def test_minutes_left_out_behind_the_last_window_are_told_too(shell: Any) -> None:
    done = shell(*of("30 1 * * *", "Europe/London", "2026-03-29", "2026-03-30", "--policy", "walk"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "runguard: next: 01:30 does not exist on 29 March: no window\nrunguard: next: no window comes\n"
    )


def test_a_window_by_the_json_contract(shell: Any) -> None:
    arguments = of("30 1 * * *", "Europe/London", "2026-03-29", "2026-03-29T02:00")
    assert shell.json(*arguments) == [
        {
            "job": None,
            "key": "L2026-03-29T01:30",
            "start": "2026-03-28T01:30:00Z",
            "due": "2026-03-29T01:00:00Z",
            "label": "2026-03-29T02:00+01:00",
            "nominal": "2026-03-29T01:30",
            "how": "gap",
            "fold": 0,
            "collapsed": [],
            "oddity": "01:30 does not exist on 29 March: due 02:00 BST",
            "waived": None,
        }
    ]


def test_a_recurrence_is_a_schedule(shell: Any) -> None:
    # The last working day of a month: 2026-05-31 and 2026-02-28 are no such days.
    rule = "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=18;BYMINUTE=0"
    windows = told(shell, *of(rule, "UTC", "2026-02-01", "2026-06-01"))
    assert [label[:16] for label, _ in windows] == [
        "2026-02-27T18:00",
        "2026-03-31T18:00",
        "2026-04-30T18:00",
        "2026-05-29T18:00",
    ]


def test_the_span_is_from_exclusive_until_inclusive(shell: Any) -> None:
    windows = told(shell, *of("0 * * * *", "UTC", "2026-03-01T01:00", "2026-03-01T03:00"))
    assert [label for label, _ in windows] == ["2026-03-01T02:00+00:00", "2026-03-01T03:00+00:00"]


def test_dates_are_those_of_the_schedules_zone(shell: Any) -> None:
    windows = told(shell, *of("0 0 * * *", "Pacific/Auckland", "2026-07-01", "2026-07-02"))
    assert windows == [("2026-07-02T00:00+12:00", None)]


def test_the_next_ten_are_shown(shell: Any) -> None:
    assert len(shell.json("next", "--schedule", "@daily")) == 10
    assert len(shell.json("next", "--schedule", "@daily", "-n", "3")) == 3
    assert len(shell.json("next", "--schedule", "* * * * *", "-n", "500")) == 500


def test_without_from_they_are_those_to_come(shell: Any) -> None:
    shell.write(changed(zone="UTC"))
    (window,) = shell.json("next", "letters", "-n", "1")
    (again,) = shell.json("next", "letters", "--from", "now", "--until", "in 25 hours", "-n", "1")
    assert window == again


def test_a_long_span_is_cut_and_that_is_said(shell: Any) -> None:
    done = shell(*of("* * * * *", "UTC", "1970-01-01", "2970-01-01"))
    assert len(done.stdout.splitlines()) == 10_001
    assert done.stderr == "runguard: next: only the first 10000 windows are shown; -n shows more\n"


def test_the_next_ten_of_each_job_are_shown(shell: Any) -> None:
    shell.write(changed(zone="UTC"), changed("often", expression="* * * * *", zone="UTC"))
    for options, count in ((("-n", "2"), 2), ((), 10)):
        jobs = [window["job"] for window in shell.json("next", *options)]
        assert (jobs.count("often"), jobs.count("letters")) == (count, count)


def waived(*, withdraw: bool = False, **ends: str) -> tuple[str, str, Any]:
    entry = {"job": "letters", "key": None, "since": None, "until": None, "reason": "disk swap", **ends}
    return "window.waived", "2026-03-27T12:00:00Z", {**entry, "withdraw": withdraw}


def test_a_waiver_of_windows_to_come_is_told(shell: Any) -> None:
    shell.write(changed(expression="30 1 * * *"), waived(since="2026-03-28T12:00:00Z", until="2026-03-30T12:00:00Z"))
    shell.write(waived(key="L2026-03-30T01:30", withdraw=True))
    span = ("--from", "2026-03-28", "--until", "2026-03-31")
    windows = shell.json("next", "letters", *span)
    assert [window["waived"] for window in windows] == [None, "waived by ann: disk swap", None]
    done = shell("next", "letters", *span)
    both = "01:30 does not exist on 29 March: due 02:00 BST; waived by ann: disk swap"
    assert done.stdout.splitlines()[2] == f"letters  2026-03-29T02:00+01:00  L2026-03-29T01:30  {both}"


def test_a_narrow_terminal_does_without_keys_and_breaks_oddities(shell: Any) -> None:
    shell.write(changed(expression="30 1 * * *"), waived(since="2026-03-28T12:00:00Z", until="2026-03-30T12:00:00Z"))
    span = ("--from", "2026-03-29", "--until", "2026-03-29T12:00")
    _, *lines = shell.on_terminal("next", "letters", *span, NO_COLOR="1").splitlines()
    assert [line.rstrip() for line in lines] == [
        "letters 2026-03-29T02:00 01:30 does not exist on 29 March: due 02:00 BST; waived",
        "                         by ann: disk swap",
    ]


def test_a_schedule_that_comes_once_in_40_years_is_found(shell: Any) -> None:
    # 29 February is a Sunday in 2088, and then not before 2128.
    rule = "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU"
    windows = told(shell, *of(rule, "UTC", "2088-03-01", "2130-01-01"))
    assert [label for label, _ in windows] == ["2128-02-29T00:00+00:00"]


def test_a_schedule_that_ends_has_no_next(shell: Any) -> None:
    done = shell("next", "--schedule", "RRULE:FREQ=DAILY;COUNT=3", "-z", "UTC")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "runguard: next: no window comes\n")


def test_without_a_job_nothing_is_written(shell: Any) -> None:
    shell("next", "--schedule", "@daily")
    assert not shell.state.exists()


def test_a_piped_table_is_plain(shell: Any) -> None:
    done = shell(*of("30 1 * * *", "Europe/London", "2026-03-28", "2026-03-29T02:00"))
    assert done.stdout.splitlines() == [
        "DUE                     KEY                ODDITY",
        "2026-03-28T01:30+00:00  L2026-03-28T01:30",
        "2026-03-29T02:00+01:00  L2026-03-29T01:30  01:30 does not exist on 29 March: due 02:00 BST",
    ]


def test_csv_has_a_column_for_every_fact(shell: Any) -> None:
    done = shell(*of("30 1 * * *", "Europe/London", "2026-03-29", "2026-03-30", "--format", "csv"))
    (row,) = csv.DictReader(done.stdout.splitlines())
    assert (row["job"], row["how"], row["oddity"]) == ("", "gap", "01:30 does not exist on 29 March: due 02:00 BST")


def test_the_windows_of_a_job_are_those_of_its_revisions(shell: Any) -> None:
    schedule = {**LONDON, "expression": "0 12 * * *"}
    entry = {"job": "letters", "change": "schedule", "revision": 2, "schedule": schedule}
    shell.write(changed(), ("job.changed", "2026-03-28T12:00:00Z", {**entry, "after": "2026-03-28T12:00:00Z"}))
    windows = shell.json("next", "letters", "--from", "2026-03-27", "--until", "2026-03-30")
    assert [(window["job"], window["key"], window["start"]) for window in windows] == [
        ("letters", "L2026-03-27T02:30", "2026-03-26T02:30:00Z"),
        ("letters", "L2026-03-28T02:30", "2026-03-27T02:30:00Z"),
        ("letters", "L2026-03-29T12:00", "2026-03-28T02:30:00Z"),
    ]


def test_nothing_comes_before_the_registration(shell: Any) -> None:
    shell.write(changed(zone="UTC"))
    windows = shell.json("next", "letters", "--from", "2026-03-01", "--until", "2026-03-28 12:00")
    assert [window["key"] for window in windows] == ["L2026-03-27T02:30", "L2026-03-28T02:30"]


def test_all_jobs_are_told_in_the_order_of_their_dues(shell: Any, started: Any) -> None:
    shell.write(changed(zone="UTC"), changed("backup", expression="0 1 * * *", zone="UTC"))
    shell.write(started(9, job="adhoc", window=None))
    windows = shell.json("next", "--from", "2026-03-27", "--until", "2026-03-28 01:00")
    assert [(window["job"], window["nominal"]) for window in windows] == [
        ("backup", "2026-03-27T01:00"),
        ("letters", "2026-03-27T02:30"),
        ("backup", "2026-03-28T01:00"),
    ]


def test_a_job_of_the_configuration_is_known(shell: Any) -> None:
    shell.config.write_text('[jobs.letters]\nschedule = "30 2 * * *"\ntimezone = "Europe/London"\n')
    windows = shell.json("next", "letters", "-n", "1")
    assert windows[0]["nominal"].endswith("T02:30")


def test_a_job_of_the_configuration_is_known_where_nothing_can_be_written(shell: Any) -> None:
    shell.config.write_text('[jobs.letters]\nschedule = "30 2 * * *"\ntimezone = "Europe/London"\n')
    shell.state.mkdir()
    shell.state.chmod(0o777)  # nothing of ours is put there
    done = shell("next", "letters", "--from", "2026-03-28", "--until", "2026-03-29")
    assert (done.returncode, done.stderr) == (0, "")
    assert "letters  2026-03-28T02:30+00:00  L2026-03-28T02:30" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lettres"], "next: no job 'lettres' on record; did you mean letters?"),
        (["adhoc"], "next: adhoc has no schedule, so no windows are expected of it"),
        (["gone"], "next: gone is retired: no windows are expected of it"),
        (["letters", "--schedule", "@daily"], "next: JOB or --schedule, not both"),
        (["letters", "--policy", "walk"], "next: --policy goes with --schedule"),
        (["--timezone", "UTC"], "next: --timezone goes with --schedule"),
        (["--schedule", "61 * * * *"], "schedule '61 * * * *', minute, column 1: 61 outside 0-59"),
        (
            ["--schedule", "@daily", "-z", "Europe/Lodnon"],
            "time zone 'Europe/Lodnon': not known on this host; did you mean Europe/London?",
        ),
        (
            ["letters", "--from", "2026-03-28", "--until", "2026-03-27"],
            "next: --from (2026-03-28T00:00:00Z) is not before --until (2026-03-27T00:00:00Z)",
        ),
    ],
)
def test_what_is_refused(shell: Any, started: Any, arguments: list[str], said: str) -> None:
    retired = {"job": "gone", "change": "retired", "revision": 2, "schedule": None, "after": "2026-03-28T02:30:00Z"}
    shell.write(changed(), changed("gone"), ("job.changed", "2026-03-28T12:00:00Z", {**retired, "reason": "x"}))
    shell.write(started(9, job="adhoc", window=None))
    done = shell("next", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runguard: {said}\n")
