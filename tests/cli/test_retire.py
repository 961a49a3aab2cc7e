"""`retire`: nothing is expected of a job any more."""

from __future__ import annotations

from typing import Any

import pytest

from runguard.instant import from_rfc3339

RUN = ("run", "-j", "letters", "-s", "30 2 * * *", "-z", "UTC")


@pytest.fixture
def letters(shell: Any) -> Any:
    """A job whose schedule ended on 10 January 2020."""
    schedule = {
        "expression": "DTSTART:20200101T000000 RRULE:FREQ=DAILY;COUNT=10", "zone": "UTC", "policy": "vixie",
        "gap": None, "fold": None,
    }  # fmt: skip
    entry = {"job": "letters", "change": "registered", "revision": 1, "schedule": schedule}
    shell.write(("job.changed", "2020-01-01T12:00:00Z", {**entry, "after": "2020-01-01T00:00:00Z"}))
    return shell


def test_a_job_is_retired_by_an_entry_of_the_ledger(letters: Any) -> None:
    done = letters("retire", "letters", "--reason", "moved to another host")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "retired letters: nothing due after 2020-01-10T00:00:00Z is expected (entry 2)\n"
    with letters.open() as store:
        assert store.retired("letters")
        (line,) = store.rows("line_at", seq=2)[0]
    assert b'"change":"retired","revision":2,"schedule":null,"after":"2020-01-10T00:00:00Z"' in line
    assert b'"reason":"moved to another host"' in line


def test_it_is_retired_once(letters: Any) -> None:
    letters("retire", "letters", "--reason", "gone")
    done = letters("retire", "letters", "--reason", "gone")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "runguard: retire: letters is retired already, since 2020-01-10T00:00:00Z\n"


def test_a_later_start_registers_it_again(letters: Any) -> None:
    letters("retire", "letters", "--reason", "gone")
    assert letters(*RUN, "true").returncode == 0
    with letters.open() as store:
        assert not store.retired("letters")
        known = store.revisions("letters")
    assert [revision.number for revision in known] == [1, 2, 3]
    assert known[2].schedule.expression == "30 2 * * *"


def test_a_window_answered_before_its_time_stays_expected(shell: Any) -> None:
    shell(*RUN, "--scheduled-at", "2999-01-01T02:30Z", "true")
    shell("retire", "letters", "--reason", "gone")
    with shell.open() as store:
        assert store.revisions("letters")[1].after_us == from_rfc3339("2999-01-01T02:30:00Z")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["letters"], "retire: --reason TEXT is needed: why is the job gone?"),
        (["letters", "--reason", " "], "retire: --reason TEXT is empty: why is the job gone?"),
        (["lettres", "--reason", "x"], "retire: no job 'lettres' on record; did you mean letters?"),
    ],
)
def test_what_is_refused(letters: Any, arguments: list[str], said: str) -> None:
    done = letters("retire", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runguard: {said}\n")
    with letters.open() as store:
        assert not store.retired("letters")
