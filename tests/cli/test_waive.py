"""`waive`: a person answers for a window, or for a span, without a run."""

from __future__ import annotations

from typing import Any

import pytest

from runguard.instant import from_rfc3339
from runguard.store.answered import Waiver
from runguard.store.journal import Journal
from shell import AUTHOR

LONDON = {"expression": "30 2 * * *", "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": None}
WHY = ("--reason", "the printer was out of paper")
# 02:30 in London is 02:30 UTC before 29 March 2026, and 01:30 UTC from then on.
MISSED = "letters@L2026-03-27T02:30"


def registered(job: str = "letters", **schedule: Any) -> tuple[str, str, dict[str, Any]]:
    entry = {
        "job": job,
        "change": "registered",
        "revision": 1,
        "schedule": {**LONDON, **schedule},
        "after": "2026-03-26T02:30:00Z",
    }
    return "job.changed", "2026-03-26T03:00:00Z", entry


@pytest.fixture
def letters(shell: Any, started: Any, finished: Any) -> Any:
    """A job with a missed window, a succeeded one (run 1, 29 March) and a failed one (run 2, 30 March)."""
    failed = {
        "key": "L2026-03-30T02:30", "start": "2026-03-29T01:30:00Z", "due": "2026-03-30T01:30:00Z",
        "label": "2026-03-30T02:30+01:00", "nominal": "2026-03-30T02:30", "how": "real", "fold": 0, "collapsed": [],
        "zone": "Europe/London", "tzdata": "2026a", "schedule": LONDON,
    }  # fmt: skip
    shell.write(registered(), started(1), finished(1), started(2, window=failed), finished(2, "failed"))
    return shell


def waivers(shell: Any, job: str = "letters") -> list[Waiver]:
    with shell.open() as store:
        found: list[Waiver] = store.waivers(job)
        return found


def latest(shell: Any, key: str, due: str) -> Any:
    with shell.open() as store:
        return store.latest("letters", key, from_rfc3339(due))


def test_a_window_is_waived_by_an_entry_of_the_ledger(letters: Any) -> None:
    done = letters("waive", MISSED, *WHY)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "waived letters@L2026-03-27T02:30 (due 2026-03-27T02:30+00:00): the printer was out of paper (entry 6)\n"
    )
    (waiver,) = waivers(letters)
    assert waiver[:6] == (6, "L2026-03-27T02:30", None, None, False, "the printer was out of paper")
    assert latest(letters, "L2026-03-27T02:30", "2026-03-27T02:30:00Z").outcome == "waived"


@pytest.mark.parametrize(
    "window",
    [
        "L2026-03-28T02:30",
        "2026-03-28T02:30",
        "2026-03-28T02:30+00:00",
        "2026-03-28T02:30:00Z",
        "2026-03-28T03:30+01:00",
    ],
)
def test_a_window_is_named_by_key_minute_label_or_due_instant(letters: Any, window: str) -> None:
    assert letters("waive", f"letters@{window}", *WHY).returncode == 0
    assert waivers(letters)[0].key == "L2026-03-28T02:30"


def test_a_window_in_a_gap_is_named_by_either_minute(shell: Any) -> None:
    # London 2026-03-29: 01:30 does not exist and is due at 02:00+01:00
    shell.write(registered(expression="30 1 * * *"))
    for window in ("2026-03-29T01:30", "2026-03-29T02:00", "2026-03-29T02:00+01:00", "L2026-03-29T01:30"):
        assert shell("waive", f"letters@{window}", *WHY).returncode == 0
    assert [waiver.key for waiver in waivers(shell)] == ["L2026-03-29T01:30"] * 4


def test_a_minute_that_collapsed_into_another_names_that_window(shell: Any) -> None:
    shell.write(registered(expression="0,30 1 * * *"))
    shell("waive", "letters@L2026-03-29T01:30", *WHY)
    assert [waiver.key for waiver in waivers(shell)] == ["L2026-03-29T01:00"]


def test_a_failed_window_can_be_waived(letters: Any) -> None:
    assert letters("waive", "letters@L2026-03-30T02:30", *WHY).returncode == 0


def test_a_recorded_window_that_is_not_expected_can_be_waived(shell: Any, started: Any) -> None:
    shell.write(registered(expression="40 2 * * *"), started(1))
    assert shell("waive", "letters@L2026-03-29T02:30", *WHY).returncode == 0
    assert waivers(shell)[0].key == "L2026-03-29T02:30"


def refused(shell: Any, *arguments: str) -> str:
    """Return the one line that a refused waiver says; nothing may have been recorded."""
    before = waivers(shell)
    done = shell("waive", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert waivers(shell) == before
    return str(done.stderr).removeprefix("runguard: ").removesuffix("\n")


def test_a_window_that_succeeded_is_not_waived(letters: Any) -> None:
    said = refused(letters, "letters@L2026-03-29T02:30", *WHY)
    assert said == "waive: letters@L2026-03-29T02:30: run 1 succeeded, so nothing is to be waived"


def test_an_unknown_job_is_told_with_the_nearest(letters: Any) -> None:
    said = "waive: no job 'lettres' on record; did you mean letters?"
    assert refused(letters, "lettres@L2026-03-27T02:30", *WHY) == said


def test_an_unknown_window_is_told_with_its_neighbours(letters: Any) -> None:
    assert refused(letters, "letters@2026-03-27T02:31", *WHY) == (
        "waive: no window '2026-03-27T02:31' of letters; the nearest are L2026-03-27T02:30 and L2026-03-28T02:30"
    )


def test_a_window_before_the_registration_is_unknown(letters: Any) -> None:
    assert refused(letters, "letters@2026-03-20T02:30", *WHY) == (
        "waive: no window '2026-03-20T02:30' of letters; the nearest is L2026-03-27T02:30"
    )


def test_a_minute_that_names_two_windows_is_refused(shell: Any) -> None:
    shell.write(registered(expression="30 1 * * *", fold="both"))
    assert refused(shell, "letters@2026-10-25T01:30", *WHY) == (
        "waive: letters@2026-10-25T01:30 is several windows: L2026-10-25T01:30, L2026-10-25T01:30~2"
    )


def test_a_window_to_come_is_refused(letters: Any) -> None:
    assert refused(letters, "letters@2999-07-01T02:30", *WHY) == (
        "waive: letters@L2999-07-01T02:30 is not due before 2999-07-01T01:30:00Z; windows to come: --since and --until"
    )


def test_a_job_without_a_schedule_has_no_windows(letters: Any) -> None:
    letters("run", "-j", "adhoc", "true")
    assert refused(letters, "adhoc@2026-03-27T02:30", *WHY) == (
        "waive: no window '2026-03-27T02:30' of adhoc: it has no schedule, so no windows are expected of it"
    )


SPAN = ("letters", "--since", "2026-03-27T02:30", "--until", "2026-03-30T02:30")


def test_a_span_is_since_exclusive_until_inclusive(letters: Any) -> None:
    done = letters("waive", *SPAN, *WHY)
    assert done.stdout == (
        "waived letters from 2026-03-27T02:30:00Z to 2026-03-30T01:30:00Z, 3 windows: the printer was out of paper"
        " (entry 6)\n"
    )
    (waiver,) = waivers(letters)
    assert waiver.since_us == from_rfc3339("2026-03-27T02:30:00Z")
    assert waiver.until_us == from_rfc3339("2026-03-30T01:30:00Z")  # in the job's zone, not in ours (UTC)


def test_a_span_may_lie_ahead(letters: Any) -> None:
    done = letters("waive", "letters", "--since", "2999-07-01", "--until", "2999-07-02", *WHY)
    assert "1 window:" in done.stdout
    assert latest(letters, "L2999-07-01T02:30", "2999-07-01T01:30:00Z").outcome == "waived"


def test_an_overlapping_span_is_said_and_recorded(letters: Any) -> None:
    letters("waive", *SPAN, *WHY)
    account = waivers(letters)[0].actor
    done = letters("waive", *SPAN, "--reason", "again")
    assert done.returncode == 0
    assert done.stderr == (
        f"runguard: waive: this overlaps what is waived by {account}: the printer was out of paper"
        " (from 2026-03-27T02:30:00Z to 2026-03-30T01:30:00Z)\n"
    )
    assert len(waivers(letters)) == 2


def test_a_span_that_was_withdrawn_overlaps_nothing(letters: Any) -> None:
    letters("waive", *SPAN, *WHY)
    letters("waive", *SPAN, "--withdraw")
    assert letters("waive", *SPAN, *WHY).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--since", "2026-03-30", "--until", "2026-03-27"],
            "waive: --since (2026-03-29T23:00:00Z) is not before --until (2026-03-27T00:00:00Z)",
        ),
        (
            ["--since", "2026-03-27 03:00", "--until", "2026-03-27 04:00"],
            "waive: no window of letters is due in that span; the next is L2026-03-28T02:30",
        ),
    ],
)
def test_a_span_without_windows_is_refused(letters: Any, arguments: list[str], said: str) -> None:
    assert refused(letters, "letters", *arguments, *WHY) == said


def test_a_waiver_is_withdrawn(letters: Any) -> None:
    letters("waive", MISSED, *WHY)
    done = letters("waive", MISSED, "--withdraw", "--reason", "the wrong day")
    assert done.stdout == (
        "no longer waived: letters@L2026-03-27T02:30 (due 2026-03-27T02:30+00:00): the wrong day (entry 7)\n"
    )
    assert latest(letters, "L2026-03-27T02:30", "2026-03-27T02:30:00Z") is None


def test_one_window_of_a_waived_span_is_withdrawn(letters: Any) -> None:
    letters("waive", *SPAN, *WHY)
    assert letters("waive", "letters@L2026-03-28T02:30", "--withdraw").returncode == 0
    assert latest(letters, "L2026-03-28T02:30", "2026-03-28T02:30:00Z") is None
    assert latest(letters, "L2026-03-30T02:30", "2026-03-30T01:30:00Z").outcome == "waived"


def test_only_what_is_waived_is_withdrawn(letters: Any) -> None:
    assert refused(letters, MISSED, "--withdraw") == f"waive: {MISSED} is not waived"
    assert refused(letters, *SPAN, "--withdraw") == "waive: nothing of letters is waived in that span"


def test_a_hostile_reason_does_not_reach_the_terminal(letters: Any) -> None:
    done = letters("waive", MISSED, "--reason", "\x1b[2J\nx")
    assert r": \x1b[2J\nx (entry 6)" in done.stdout


def test_what_waits_in_the_journal_comes_before_a_waiver(letters: Any, started: Any) -> None:
    # The latest start or waiver decides: a start of last night must not follow today's waiver.
    kind, at, fields = started(7, "2026-03-29T01:30:00Z", attempt=2)
    Journal(str(letters.state), AUTHOR).write(kind, from_rfc3339(at), {**fields, "number": None})
    letters("waive", "letters@L2026-03-29T02:30", *WHY)
    assert latest(letters, "L2026-03-29T02:30", "2026-03-29T01:30:00Z").outcome == "waived"
    (waiver,) = waivers(letters)
    assert waiver.seq == 7  # the journal's start is entry 6


def test_a_job_of_the_configuration_is_known(shell: Any) -> None:
    shell.config.write_text('[jobs.backup]\nschedule = "0 0 * * *"\ntimezone = "UTC"\n')
    done = shell("waive", "backup", "--since", "2999-07-01", "--until", "2999-07-02", *WHY)
    assert done.stdout.startswith("waived backup from 2999-07-01T00:00:00Z to 2999-07-02T00:00:00Z, 1 window: ")
