"""What people were told is remembered: across processes, failures and mistakes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from runguard.instant import DAY_S, SECOND_US, from_rfc3339
from runguard.report.notifying import Memory, Report, notify

START_US = from_rfc3339("2026-03-01T08:00:00Z")
ENVIRON = {"PATH": "/usr/bin:/bin"}


class Desk:
    """Where messages arrive, and checks an hour apart."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.state = place / "state"
        self.now_us = START_US
        self.command = f'cat >> {place}/told; echo "$RUNGUARD_CHECK_EVENT:$RUNGUARD_CHECK_STATE" >> {place}/events'

    def check(
        self, hours: float = 1, command: str | None = None, asked: tuple[str, ...] = (), **levels: str
    ) -> list[str]:
        """Check, some hours after the last time; return what went wrong."""
        self.now_us += round(hours * 3600 * SECOND_US)
        command = self.command if command is None else command
        state = max(levels.values(), default="ok", key=("ok", "warning", "critical").index)
        report = Report(state, levels, (f"RUNGUARD {state.upper()} - so it is",), self.now_us, "alpha")
        return notify(command, report, Memory(str(self.state), command, asked), ENVIRON)

    @property
    def events(self) -> list[str]:
        path = self.place / "events"
        return path.read_text().split() if path.exists() else []

    @property
    def told(self) -> str:
        return (self.place / "told").read_text()

    def memories(self) -> list[Path]:
        return sorted((self.state / "notified").glob("*.json"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    os.chmod(tmp_path, 0o700)
    return Desk(tmp_path)


def test_failures_a_recovery_and_a_failure_again_are_told_once_each(desk: Desk) -> None:
    for levels in ({}, {"a": "critical"}, {"a": "critical"}, {"a": "critical"}, {}, {}, {"a": "critical"}):
        assert desk.check(**levels) == []
    assert desk.events == ["problem:critical", "recovery:ok", "problem:critical"]


def test_what_stays_wrong_is_repeated_daily_with_the_time_of_the_first(desk: Desk) -> None:
    for _ in range(50):
        desk.check(a="critical")
    assert desk.events == ["problem:critical", "repeat:critical", "repeat:critical"]
    assert desk.told.splitlines()[:3] == [
        "RUNGUARD CRITICAL - so it is",
        "RUNGUARD CRITICAL - so it is",
        "As told first at 2026-03-01T09:00:00Z; repeated once a day.",
    ]


def test_what_has_recovered_is_named(desk: Desk) -> None:
    desk.check(a="critical", b="warning")
    desk.check(b="warning")
    desk.check()
    assert desk.events == ["problem:critical", "problem:warning", "recovery:ok"]
    assert desk.told.splitlines()[1:] == [
        "RUNGUARD WARNING - so it is", "Recovered: a.", "RUNGUARD OK - so it is", "Recovered: b.",
    ]  # fmt: skip


def test_where_nothing_is_known_nothing_has_recovered(desk: Desk) -> None:
    desk.check(a="critical")
    unknown = Report("unknown", {"": "unknown"}, ("RUNGUARD UNKNOWN - no disk",), desk.now_us + 1, "alpha")
    notify(desk.command, unknown, Memory(str(desk.state), desk.command, ()), ENVIRON)
    assert desk.events == ["problem:critical", "problem:unknown"]
    assert "Recovered" not in desk.told


def test_the_command_is_told_who_and_where(desk: Desk) -> None:
    command = f"env | grep ^RUNGUARD | sort > {desk.place}/env"
    desk.check(command=command, a="critical", c="critical")
    desk.check(command=command, b="warning", a="critical")
    assert (desk.place / "env").read_text().splitlines() == [
        "RUNGUARD_CHECK_EVENT=problem",
        "RUNGUARD_CHECK_HOST=alpha",
        "RUNGUARD_CHECK_JOBS=a b",
        "RUNGUARD_CHECK_RECOVERED=c",
        "RUNGUARD_CHECK_STATE=critical",
    ]


def test_what_was_not_delivered_is_said_and_tried_again(desk: Desk) -> None:
    gate = desk.place / "gate"
    command = f"test -e {gate} || exit 1; {desk.command}"
    said = "the command was not told: the command ended with 1; the next check tries again"
    assert [desk.check(command=command, a="critical") for _ in range(2)] == [[said], [said]]
    assert desk.memories() == []
    gate.touch()
    assert [desk.check(command=command, a="critical") for _ in range(2)] == [[], []]
    gate.unlink()
    assert desk.check(command=command) == [said]  # of the recovery too
    gate.touch()
    assert [desk.check(command=command) for _ in range(2)] == [[], []]
    assert desk.events == ["problem:critical", "recovery:ok"]


def test_what_nobody_was_told_needs_no_recovery(desk: Desk) -> None:
    gate = desk.place / "gate"
    command = f"test -e {gate} || exit 1; {desk.command}"
    desk.check(command=command, a="critical")
    gate.touch()
    assert desk.check(command=command) == []
    assert desk.events == []


def test_each_target_and_each_question_is_told_for_itself(desk: Desk) -> None:
    desk.check(a="critical")
    desk.check(a="critical", asked=("a",))
    desk.check(a="critical", command=f"{desk.command} # another")
    desk.check(a="critical")
    assert desk.events == ["problem:critical"] * 3
    assert len(desk.memories()) == 3


def test_of_checks_at_once_one_tells(desk: Desk) -> None:
    slow = f"{desk.command}; sleep 0.3"
    threads = [threading.Thread(target=desk.check, args=(0, slow), kwargs={"a": "critical"}) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert desk.events == ["problem:critical"]


def test_what_is_remembered_is_private_and_names_no_target(desk: Desk) -> None:
    desk.check(command="true # s3cret", a="critical")
    [memory] = desk.memories()
    assert (memory.stat().st_mode & 0o777, memory.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert json.loads(memory.read_text()) == {
        "levels": {"a": "critical"},
        "said": "2026-03-01T09:00:00Z",
        "repeats": 0,
    }
    assert "s3cret" not in str(memory) + memory.read_text()


DAMAGED = {
    "empty": "",
    "torn": "{",
    "a list": "[]",
    "other levels": '{"levels": 3}',
    "NUL": "\x00" * 100,
    "no number": '{"levels": {}, "said": "2026-03-01T09:00:00Z", "repeats": 1e400}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_memory_that_is_damaged_is_said_and_told_over(desk: Desk, content: str) -> None:
    desk.check(a="critical")
    [memory] = desk.memories()
    memory.write_text(content)
    [said] = desk.check(a="critical")
    assert said == f"{memory}: it is damaged; what is wrong is told again"
    assert desk.check(a="critical") == []
    assert desk.events == ["problem:critical"] * 2


def test_a_memory_that_is_no_file_is_replaced(desk: Desk) -> None:
    desk.check(a="critical")
    [memory] = desk.memories()
    memory.unlink()
    os.mkfifo(memory, 0o600)
    assert desk.check(a="critical") == [f"{memory}: it is no regular file; what is wrong is told again"]
    assert desk.check(a="critical") == []
    assert desk.events == ["problem:critical"] * 2


def test_where_nothing_can_be_remembered_an_alarm_is_told_all_the_same(desk: Desk) -> None:
    desk.state.mkdir(mode=0o700)
    (desk.state / "notified").write_text("in the way")
    [said] = desk.check(a="critical")
    assert said.startswith("what was told cannot be remembered, so it may be told again: ")
    desk.check()
    assert desk.events == ["problem:critical"]


def test_an_alarm_of_days_ago_is_repeated_at_its_hour(desk: Desk) -> None:
    desk.check(hours=0, a="critical")
    desk.check(hours=3.2 * 24, a="critical")
    desk.check(hours=0.8 * 24, a="critical")
    assert desk.events == ["problem:critical", "repeat:critical", "repeat:critical"]
    assert (desk.now_us - START_US) == 4 * DAY_S * SECOND_US


def test_lines_of_any_bytes_are_told_as_text(desk: Desk) -> None:
    report: Any = Report("critical", {"a": "critical"}, ("a \x1b[31mred\udcff",), desk.now_us, "alpha")
    notify(desk.command, report, Memory(str(desk.state), desk.command, ()), ENVIRON)
    assert desk.told == "a red\ufffd\n"
