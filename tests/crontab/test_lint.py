"""Every hazard by a line that has it, and beside it one that has not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runguard import zones
from runguard.crontab import parse
from runguard.crontab.daemons import BUSYBOX, CRONIE, DAEMONS, DEBIAN, Daemon
from runguard.crontab.hazards import HAZARDS, Finding, Host, Place, Table
from runguard.crontab.lint import judge
from runguard.crontab.wrap import BadMark
from runguard.errors import ZoneError
from runguard.instant import from_rfc3339
from runguard.model import Schedule
from runguard.schedule.zone import Zone
from tables import tables

# Europe/London: gaps on 2027-03-28 and 2028-03-26 at 01:00, folds on 2027-10-31 and 2028-10-29 (rule GB-Eire).
NOW = from_rfc3339("2026-11-29T12:00:00Z")
THERE = {"/usr/bin:/bin": {"x", "y", "tee", "sh", "bash", "mail", "date", "runguard"}}


def zone_of(name: str) -> Zone | None:
    try:
        return zones.load(name).zone
    except ZoneError:
        return None


def host(daemon: Daemon = DEBIAN, zone: str = "Europe/London", **facts: Any) -> Host:
    def why_not_found(program: str, path: str, user: str) -> str:
        there = program.startswith("/opt/") or program in THERE.get(path, {"x"})
        return "" if there else f"{program} is not in cron's PATH ({path})"

    given = {
        "why_not_found": why_not_found, "is_account": lambda name: name == "root", "configured": lambda job: None,
        "took_s": lambda job, user: (),
    }  # fmt: skip
    return Host(daemon=daemon, zone=zones.load(zone).zone, now_us=NOW, zone_of=zone_of, **{**given, **facts})


def found(table: bytes, facts: Host | None = None, **place: Any) -> list[Finding]:
    facts = facts or host()
    lines = parse.parse(table, system=place.get("system", False), percent=facts.daemon.percent)
    return judge(Table("t", lines, place.get("system", False), place.get("place")), facts)


def hazards(table: bytes, facts: Host | None = None, **place: Any) -> list[str]:
    return [each.hazard for each in found(table, facts, **place)]


QUIET = b"0 12 * * * x\n"  # no clock changes at noon


def test_a_table_without_hazards() -> None:
    assert found(b"MAILTO=ops\nPATH=/usr/bin:/bin\n\n# note\n" + QUIET + b"* * * * * y --all 'a b'\n@reboot x\n") == []


@pytest.mark.parametrize(
    ("line", "hazard"),
    [
        (b"30 1 * * * x", ["gap", "fold"]),
        (b"*/15 1 * * * x", ["gap", "fold"]),
        (b"@daily x", []),
        (b"0 0-23 * * * x", ["not-every-hour"]),
        (b"0 * * * * x", []),
        (b"*/5 * * * * x", []),
        (b"0 12 * * fri-sun x", ["never-fires"]),
        (b"0 22-2 * * * x", ["never-fires"]),
        (b"0 12 30 2 * x", ["never-fires"]),
        (b"*5 * * * * x", ["reads-otherwise"]),
        (b"5.5 * * * * x", ["reads-otherwise"]),
        (b"5/10 * * * * x", ["unreadable"]),
        (b"60 * * * * x", ["unreadable"]),
        (b"@Daily x", ["unreadable"]),
        (b"* * * * *", ["unreadable"]),
        (b"7- * * * * x", ["unreadable"]),
        (b"-0 12 * * * x", ["unreadable"]),
        (b"*/2x * * * * x", ["unreadable"]),
        (b"MAILTO=", ["unreadable"]),
        (b"0 12 13 * 5 x", ["day-fields"]),
        (b"0 12 */2 * 1 x", ["day-fields"]),
        (b"0 12 1-31 * 5 x", []),
        (b"CRON_TZ = Europe/London", ["cron-tz"]),
        (b"TZ=UTC", ["cron-tz"]),
        (b"0 12 * * * x +%F", ["percent"]),
        (b"0 12 * * * x +\\%F", []),
        (b"0 12 * * * x 'a\\\\b'", ["backslash"]),
        (b"0 12 * * * nowhere", ["path"]),
        (b"0 12 * * * [ -x nowhere ] && nowhere", []),
        (b"0 12 * * * cd /srv && ./nowhere", []),
        (b"0 12 * * * if true; then nowhere; fi", ["path"]),
        (b"0 12 * * * test -x /usr/bin/nowhere -a \\! -d /run/x && x && nowhere -q", []),
        (b"0 12 * * * hash nowhere && nowhere", []),
        (b"0 12 * * * nice -n 19 ionice -c3 nowhere x", ["path", "path", "path"]),
        (b"0 12 * * * flock -n l -c 'x y'", ["path"]),
        (b"0 12 * * * sh x -c nowhere", []),
        (b"0 12 * * * timeout -k", ["path"]),
        (b"0 12 * * * \x0c", ["path"]),
        (b"0 12 * * * PATH=/opt:$PATH nowhere", []),
        (b"0 12 * * * export PATH=/opt; nowhere", []),
        (b"0 12 * * * . /etc/profile; nowhere", []),
        (b"0 12 * * * . /etc/profile; ./nowhere", ["path"]),
        (b"0 12 * * * f() { x; }; f", []),
        (b"0 12 * * * case a in b|c) x;; (d) y;; *) x;; esac", []),
        (b"0 12 * * * case a in b) nowhere;; esac | tee", ["path", "pipeline"]),
        (b"0,5,10,15,20,25,30,35,40,45,50,55 0,1,4,6,8,10,12,14,16,18,20,22 * * * x", ["gap", "fold"]),
        (b"0 12 * * * source /opt/env; x", ["not-sh"]),
        (b"0 12 * * * [[ a = b ]] && x", ["not-sh"]),
        (b"0 12 * * * x &> /dev/null", ["not-sh", "output-lost"]),
        (b"0 12 * * * x 'source a; &> [['", []),
        (b"0 12 * * * x 'unclosed", ["not-sh"]),
        (b"* * * * * * x", ["unreadable"]),
        (b"0 12 * * * x | tee log", ["pipeline"]),
        (b"0 12 * * * sh -c 'x | tee log'", ["pipeline"]),
        (b"0 12 * * * bash -o pipefail -c 'x | tee log'", []),
        (b"0 12 * * * x || y", []),
        (b"0 12 * * * echo a | mail", []),
        (b"0 12 * * * (x; y) | tee", ["pipeline"]),
        (b"0 12 * * * x | (y; x)", ["pipeline"]),
        (b"0 12 * * * |&<f", ["pipeline"]),
        (b"0 12 * * * [ -x x ] && { x | tee; }", ["pipeline"]),
        (b"0 12 * * * if x | grep -q y; then y; fi", ["path"]),
        (b"0 12 * * * x | grep -q y || y", ["path"]),
        (b"0 12 * * * x | grep y", ["path", "pipeline"]),
        (b"0 12 * * * set -o pipefail; x | tee", ["not-sh"]),
        (b"0 12 * * * bash -c 'set -o pipefail; x | tee'", []),
        (b"0 12 * * * x '|' y", []),
        (b"0 12 * * * x &", ["background"]),
        (b"0 12 * * * x && y", []),
        (b"0 12 * * * x > /dev/null 2>&1", ["output-lost"]),
        (b"0 12 * * * x >/dev/null 2>/dev/null", ["output-lost"]),
        (b"0 12 * * * x >/dev/null 2>&1 && y", ["output-lost"]),
        (b"0 12 * * * pidof x >/dev/null 2>&1 || x", ["path"]),
        (b"0 12 * * * if ! test a >/dev/null 2>&1; then x; fi", []),
        (b"0 12 * * * x > /dev/null", []),
        (b"0 12 * * * x 2>/dev/null", []),
        (b"PATH=$PATH:/opt", ["variable"]),
        (b"MAILTO=ops # me", ["variable"]),
        (b"0 12 * * * x" + b"y" * 998, ["path", "too-long"]),
    ],
)
def test_what_debians_cron_makes_of_a_line(line: bytes, hazard: Sequence[str]) -> None:
    assert hazards(line + b"\n") == hazard


@pytest.mark.parametrize(
    ("line", "hazard"),
    [
        (b"0 12 * * 7 x", ["unreadable"]),
        (b"0 12 * * 5-7 x", ["unreadable"]),
        (b"0 12 * * fri-sun x", []),
        (b"0 22-23 * * * x", []),
        (b"5/10 * * * * x", ["reads-otherwise"]),
        (b"0 12 */2 * * x", ["reads-otherwise"]),
        (b"@daily x", ["never-fires"]),
        (b"0 12 * * * x +%F", []),
        (b"0 12 * * * x a#b", ["hash"]),
        (b"PATH=/opt", ["variable"]),
        (b"CRON_TZ=Europe/London", ["cron-tz"]),
        (b"0 0-23 * * * x", []),
        (b"30 1 * * * x", ["gap", "fold"]),
    ],
)
def test_what_busybox_makes_of_a_line(line: bytes, hazard: Sequence[str]) -> None:
    facts = host(BUSYBOX, why_not_found=lambda program, path, user: "")
    assert hazards(line + b"\n", facts) == hazard


@pytest.mark.parametrize(
    ("table", "hazard"),
    [
        (b"CRON_TZ=Europe/London\n30 1 * * * x\n", ["gap", "fold"]),
        (b"CRON_TZ=Asia/Tokyo\n30 1 * * * x\n", []),
        (b"CRON_TZ=Mars/Olympus\n30 1 * * * x\n", ["cron-tz"]),
        (b"0 12 * * * x 'a\\\\b'\n", []),
        (b"-0 12 * * * x\n", []),
        (b"0~59 12 * * * x\n", ["reads-otherwise"]),
        (b"0 22-2 * * * x\n", ["unreadable"]),
    ],
)
def test_what_cronie_makes_of_a_table(table: bytes, hazard: Sequence[str]) -> None:
    assert hazards(table, host(CRONIE)) == hazard


def test_a_gap_is_told_with_its_dates_and_what_cron_does() -> None:
    gap, fold = found(b"30 1 * * * x\n")
    assert gap.reason == "times of '30 1 * * *' do not exist in Europe/London"
    assert gap.happens == (
        "2027: 01:30 does not exist on 28 March: it runs at 02:00 BST;"
        " 2028: 01:30 does not exist on 26 March: it runs at 02:00 BST"
    )
    assert gap.dates == ("2027-03-28T02:00+01:00", "2028-03-26T02:00+01:00")
    assert fold.happens == (
        "2027: 01:30 comes twice on 31 October: it runs at the first;"
        " 2028: 01:30 comes twice on 29 October: it runs at the first"
    )


def test_a_zone_without_changes_has_no_gaps() -> None:
    assert hazards(b"30 1 * * * x\n0 0-23 * * * x y\n*/15 2 * * * x z\n", host(zone="UTC")) == []


def test_a_wild_schedule_in_a_gap_is_told_how_to_be_fixed() -> None:
    gap, _ = found(b"*/15 1 * * * x\n")
    assert gap.happens.startswith(
        "2027: 4 minutes from 01:00 to 01:45 do not exist on 28 March: it does not run; 2028: "
    )
    assert gap.fix.endswith("or write the values without * ('0,15,30,45 1 * * *')")


@pytest.mark.parametrize(
    ("line", "happens", "fix"),
    [
        (b"0 12 * * fri-sun x", "Debian's cron accepts it, and the day of week matches nothing: it never fires",
         "write '0 12 * * 0,5,6'"),
        (b"0 22-2 * * * x", "Debian's cron accepts it, and the hour matches nothing: it never fires",
         "write '0 0-2,22,23 * * *'"),
        (b"0 12 1 * fri-sun x", "Debian's cron accepts it, and no day of the week matches: it fires by the day of month"
         " alone", "write '0 12 1 * 0,5,6'"),
        (b"*5 * * * * x", "Debian's cron fires it every minute", "write '* * * * *' if that is meant"),
        (b"nonsense", "Debian's cron then runs no line of this table at all", "put # in front of it, or complete it"),
        (b"MAILTO=", "Debian's cron then runs no line of this table at all", 'write MAILTO=""'),
    ],
)  # fmt: skip
def test_what_really_happens_and_a_fix(line: bytes, happens: str, fix: str) -> None:
    [finding] = found(line + b"\n")
    assert (finding.happens, finding.fix) == (happens, fix)


def test_a_line_without_a_command_is_fired_only_where_its_schedule_is_read() -> None:
    [empty], [bad] = found(b"* * * * *\n"), found(b"60 * * * *\n")
    assert empty.happens == "cron fires it, and an empty command runs"
    assert bad.happens == "Debian's cron then runs no line of this table at all"


def test_a_minus_is_seen_behind_a_line_of_the_same_schedule() -> None:
    assert hazards(b"0 12 * * * x\n-0 12 * * * y\n") == ["unreadable"]


def test_where_sh_is_bash_its_words_are_sh_too() -> None:
    assert hazards(b"0 12 * * * [[ a = b ]] && x <<< y\n", host(sh_is_plain=False)) == []


def test_a_last_line_without_a_newline() -> None:
    assert hazards(b"0 12 * * * x") == ["no-newline"]
    assert hazards(b"0 12 * * * x", host(BUSYBOX)) == []


def test_carriage_returns_are_told_once() -> None:
    [finding] = [each for each in found(b"A=b\r\n" + b"0 12 * * * x\r\n" * 3) if each.hazard == "carriage-return"]
    assert (finding.number, finding.reason) == (1, "the line ends in a carriage return (CR LF), and 3 more")


def test_more_lines_than_debians_cron_reads() -> None:
    assert hazards(b"# x\n" * 10_001) == ["too-long"]
    assert hazards(b"# x\n" * 10_000) == []


@pytest.mark.parametrize(
    ("place", "hazard"),
    [
        (Place("letters", True, 0o100644, 0, 1), []),
        (Place("letters.cron", True, 0o100644, 0, 1), ["file-name"]),
        (Place("crontab", False, 0o100644, 0, 1), []),
        (Place("letters", True, 0o100664, 0, 1), ["file-mode"]),
        (Place("letters", True, 0o100646, 0, 1), ["file-mode"]),
        (Place("letters", True, 0o100600, 1000, 1), ["file-owner"]),
        (Place("letters", True, 0o100644, 0, 2), ["file-owner"]),
    ],
)
def test_a_file_that_debians_cron_ignores(place: Place, hazard: Sequence[str]) -> None:
    assert hazards(b"0 12 * * * root x\n", system=True, place=place) == hazard


def test_the_words_of_a_shell_that_is_no_bourne_shell_are_not_judged() -> None:
    assert hazards(b"SHELL=/usr/bin/fish\n0 12 * * * nowhere (date); and 'x\n") == []


def test_cronie_reads_a_file_with_a_dot_in_its_name() -> None:
    assert (
        hazards(QUIET.replace(b"x", b"root x"), host(CRONIE), system=True, place=Place("a.b", True, 0o644, 0, 1)) == []
    )


def test_a_user_that_does_not_exist_costs_debians_cron_the_whole_table() -> None:
    [finding] = found(b"0 12 * * * nobdy x\n", system=True)
    assert finding.hazard == "user"
    assert finding.reason == "the sixth field, 'nobdy', is no account of this host"
    assert finding.happens == "Debian's cron then runs no line of this table at all"


@pytest.mark.parametrize(
    ("second", "hazard"),
    [
        (b"0 12 * * * x", ["duplicate"]),
        (b"*/30 12 * * 1 x", ["duplicate"]),
        (b"0 12 * * * /opt/rg/runguard run -s '0 12 * * *' -- x", ["duplicate"]),
        (b"0 13 * * * x", []),
        (b"30 12 * * * x", []),
        (b"0 12 * * * x y", []),
    ],
)
def test_the_same_job_twice(second: bytes, hazard: Sequence[str]) -> None:
    assert hazards(QUIET + second + b"\n") == hazard


def test_weekdays_and_weekends_are_no_duplicates() -> None:
    assert hazards(b"0 12 * * 1-5 x\n0 12 * * 0,6 x\n") == []


# Guarded lines

RG = b"0 12 * * * /opt/rg/runguard run -j x -s '%s' "


@pytest.mark.parametrize(
    ("line", "hazard"),
    [
        (RG % b"0 12 * * *" + b"-- x", []),
        (RG % b"0  12 * * 0-7" + b"-- x", []),
        (RG % b"0 13 * * *" + b"-- x", ["schedule-differs"]),
        (RG % b"RRULE:FREQ=MONTHLY" + b"-- x", []),
        (RG % b"0 12 * * *" + b"-z Europe/London -- x", []),
        (RG % b"0 12 * * *" + b"-z Asia/Tokyo -- x", ["zone-differs"]),
        (RG % b"0 12 * * *" + b"-z Europe/Lodnon -- x", ["zone-differs"]),
        (RG % b"0 12 * * *" + b"-c 'x | tee log'", ["pipeline"]),
        (RG % b"0 12 * * *" + b"-- bash -o pipefail -c 'x | tee log'", []),
        (RG % b"0 12 * * *" + b"-- nowhere", ["path"]),
        (b"0 12 * * * nowhere/runguard run -j x -s '0 12 * * *' -- x", ["path"]),
        (b"0 12 * * * /opt/rg/runguard run -j x -- x", ["no-window"]),
        (b"@reboot /opt/rg/runguard run -j x -- x", []),
        (b"@reboot /opt/rg/runguard run -j x -s @daily -- x", ["schedule-differs"]),
    ],
)
def test_a_guarded_line(line: bytes, hazard: Sequence[str]) -> None:
    assert hazards(line + b"\n") == hazard


def test_runguard_takes_the_hosts_zone_where_cronie_obeys_another() -> None:
    table = b"CRON_TZ=Asia/Tokyo\n" + RG % b"0 12 * * *" + b"-- x\n"
    assert hazards(table, host(CRONIE)) == ["zone-differs"]
    assert hazards(table.replace(b"-- x", b"-z Asia/Tokyo -- x"), host(CRONIE)) == []


@pytest.mark.parametrize("options", [b"", b"-s '0 12 * * *' "])
def test_a_guarded_line_is_compared_with_the_configuration(options: bytes) -> None:
    facts = host(configured=lambda job: Schedule("0 13 * * *", "Europe/London"))
    [finding] = found(b"0 12 * * * /opt/rg/runguard run -j x " + options + b"-- x\n", facts)
    assert finding.reason == "cron fires at '0 12 * * *', and the schedule in runguard.toml is '0 13 * * *'"


@pytest.mark.parametrize("before", [b"cd / && ", b"A=b ", b"sh x "])
def test_a_guard_behind_something_is_compared_too(before: bytes) -> None:
    line = b"0 12 * * * " + before + b"/opt/rg/runguard run -j x -s '0 13 * * *' -- x\n"
    assert hazards(line) == ["schedule-differs"]


def test_two_lines_with_one_job() -> None:
    line = b"/opt/rg/runguard run -j x -s '%s' -- "
    table = b"0 12 * * * " + line % b"0 12 * * *" + b"x\n0 13 * * * " + line % b"0 13 * * *" + b"x y\n"
    assert hazards(table) == ["name-twice"]


@pytest.mark.parametrize(
    ("took_s", "hazard"), [((700.0, 60.0, 800.0, 601.0), ["overruns"]), ((700.0, 60.0, 800.0), []), ((), [])]
)
def test_a_job_that_takes_longer_than_the_time_between_two_starts(took_s: tuple[float, ...], hazard: list[str]) -> None:
    line = b"*/10 * * * * /opt/rg/runguard run -j x -s '*/10 * * * *' -- x\n"
    assert hazards(line, host(took_s=lambda job, user: took_s)) == hazard


# Comments above a line


def test_a_comment_above_a_line_silences_all_or_some_of_it() -> None:
    line = b"0 12 * * * x +%F | tee log\n"
    assert hazards(line) == ["percent"]
    assert hazards(b"# runguard: allow=percent\n" + line) == []
    assert hazards(b"# runguard: ignore\n" + line) == []
    assert hazards(b"# runguard: allow=pipeline\n" + line) == ["percent"]


def test_a_user_in_front_of_a_command_is_no_program() -> None:
    (finding,) = found(b"0 12 * * * root x\n")
    assert (finding.hazard, finding.fix) == (
        "path",
        "a user's table names no user: take 'root' off; lint --system reads a table that does",
    )


def test_a_comment_that_allows_what_is_no_hazard_is_an_error() -> None:
    with pytest.raises(BadMark, match=r"allow=prcent: no such hazard; did you mean percent\?"):
        found(b"# runguard: allow=prcent\n0 12 * * * x\n")


@settings(max_examples=300, deadline=None)
@given(st.one_of(tables(system=False), tables(system=True), st.binary(max_size=99)), st.sampled_from([*DAEMONS]))
def test_any_table_is_judged(table: bytes, daemon: str) -> None:
    with suppress(BadMark):  # two lines were given one name
        for finding in found(table, host(DAEMONS[daemon]), system=b"root" in table):
            assert finding.hazard in HAZARDS
            assert all((finding.reason, finding.happens, finding.fix))


def test_every_hazard_is_shown_by_a_test_of_this_file() -> None:
    text = open(__file__, encoding="utf-8").read()  # noqa: SIM115
    assert [hazard for hazard in HAZARDS if f'"{hazard}"' not in text] == []
