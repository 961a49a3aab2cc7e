"""Jobs that a configuration file describes: registered and revised by commands that look at windows."""

from __future__ import annotations

import os

import pytest

from runguard import paths
from runguard.config import strict
from runguard.errors import ConfigError
from runguard.guard.registering import register
from runguard.guard.start import schedule_fields
from runguard.instant import from_rfc3339
from runguard.model import Revision, Schedule
from shell import Shell

NOW_US = from_rfc3339("2026-03-29T12:00:00Z")
DAILY = Schedule("30 2 * * *", "Europe/London")
# 02:30 in London on 29 March 2026 is 01:30 UTC.
LAST_DUE_US = from_rfc3339("2026-03-29T01:30:00Z")
LETTERS = '[jobs.letters]\nschedule = "30 2 * * *"\ntimezone = "Europe/London"\n'


def look(shell: Shell, text: str | None = None, now_us: int = NOW_US) -> list[Revision]:
    """Do what every command does first, with `text` as the file, and return what is on record for letters."""
    if text is not None:
        shell.config.write_text(text)
    register(shell.environ, strict.load(shell.environ), paths.places(str(shell.state), None), now_us)
    return recorded(shell)


def recorded(shell: Shell, job: str = "letters") -> list[Revision]:
    with shell.open() as store:
        return store.revisions(job)


def changed(shell: Shell, change: str, number: int, schedule: Schedule | None, after: str, at: str) -> None:
    """Record a revision that some start opened at `at`."""
    fields = schedule_fields(schedule) if schedule else None
    entry = {"job": "letters", "change": change, "revision": number, "schedule": fields, "after": after}
    shell.write(("job.changed", at, entry))


def test_a_job_of_the_file_is_expected_from_the_latest_due_on(shell: Shell) -> None:
    assert look(shell, LETTERS) == [Revision(1, DAILY, LAST_DUE_US)]


def test_it_is_registered_once(shell: Shell) -> None:
    look(shell, LETTERS)
    assert look(shell, now_us=from_rfc3339("2026-04-29T12:00:00Z")) == [Revision(1, DAILY, LAST_DUE_US)]


def test_the_ledger_tells_who_registered_it(shell: Shell) -> None:
    look(shell, LETTERS)
    with shell.open() as store:
        (line,) = store.rows("line_at", seq=1)[0]
    assert b'"kind":"job.changed"' in line
    assert b'"change":"registered"' in line
    assert f'"uid":{os.getuid()}'.encode() in line


def test_a_schedule_that_has_no_due_yet_is_expected_from_now_on(shell: Shell) -> None:
    text = '[jobs.letters]\nschedule = "DTSTART:20990101T000000 RRULE:FREQ=DAILY"\ntimezone = "UTC"\n'
    assert [revision.after_us for revision in look(shell, text)] == [NOW_US]


def test_a_job_without_a_schedule_is_left_alone(shell: Shell) -> None:
    shell.config.write_text("[jobs.letters]\ntimeout = '5m'\n")
    register(shell.environ, strict.load(shell.environ), paths.places(str(shell.state), None), NOW_US)
    assert not shell.state.exists()


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        (LETTERS.replace("30 2", "40 2"), DAILY._replace(expression="40 2 * * *")),
        (LETTERS.replace("London", "Paris"), DAILY._replace(zone="Europe/Paris")),
        (LETTERS + 'policy = "walk"\n', DAILY._replace(policy="walk")),
        (LETTERS + 'gap = "skip"\n', DAILY._replace(gap="skip")),
        (LETTERS + 'fold = "second"\n', DAILY._replace(fold="second")),
        ('policy = "walk"\n' + LETTERS, DAILY._replace(policy="walk")),
    ],
)
def test_an_edit_opens_a_revision(shell: Shell, text: str, schedule: Schedule) -> None:
    changed(shell, "registered", 1, DAILY, "2026-03-01T02:30:00Z", "2020-03-01T02:30:00Z")
    assert [revision.schedule for revision in look(shell, text)] == [DAILY, schedule]


@pytest.mark.parametrize(
    "text",
    [
        LETTERS + 'timeout = "5m"\nping = "https://hc.example/x"\ngrace = "10m"\n',
        LETTERS + "[jobs.backup]\ntimeout = 5\n",
        "",
    ],
)
def test_names_timeouts_and_pings_open_none(shell: Shell, text: str) -> None:
    changed(shell, "registered", 1, DAILY, "2026-03-01T02:30:00Z", "2020-03-01T02:30:00Z")
    assert len(look(shell, text)) == 1


def test_a_revision_opens_at_the_latest_due_of_the_new_schedule(shell: Shell) -> None:
    # time.md: 09:00 is changed to 09:10 at 14:00, and nothing is missed or run twice
    nine = Schedule("0 9 * * *", "UTC")
    changed(shell, "registered", 1, nine, "2026-03-01T09:00:00Z", "2020-03-01T09:00:00Z")
    text = '[jobs.letters]\nschedule = "10 9 * * *"\ntimezone = "UTC"\n'
    found = look(shell, text, from_rfc3339("2026-03-29T14:00:00Z"))
    assert found[1] == Revision(2, Schedule("10 9 * * *", "UTC"), from_rfc3339("2026-03-29T09:10:00Z"))


def test_a_revision_opens_no_earlier_than_the_last_answered_due(shell: Shell) -> None:
    done = shell("run", "-j", "letters", "-s", "0 9 * * *", "-z", "UTC", "--scheduled-at", "2020-01-02T09:00Z", "true")
    assert done.returncode == 0
    text = '[jobs.letters]\nschedule = "0 12 * * *"\ntimezone = "UTC"\n'
    found = look(shell, text, from_rfc3339("2020-01-02T09:30:00Z"))
    assert found[1].after_us == from_rfc3339("2020-01-02T09:00:00Z")


def test_a_file_that_is_older_than_the_revision_is_no_edit(shell: Shell) -> None:
    # A crontab line with another --schedule beats the file at every start.
    shell.config.write_text(LETTERS)
    changed(
        shell, "registered", 1, DAILY._replace(expression="0 9 * * *"), "2026-03-01T02:30:00Z", "2999-01-01T00:00:00Z"
    )
    assert len(look(shell)) == 1


def test_a_retired_job_waits_for_its_next_start(shell: Shell) -> None:
    changed(shell, "registered", 1, DAILY, "2026-03-01T02:30:00Z", "2020-03-01T02:30:00Z")
    changed(shell, "retired", 2, None, "2026-03-02T02:30:00Z", "2020-03-02T02:30:00Z")
    assert [revision.schedule for revision in look(shell, LETTERS)] == [DAILY, None]


def test_a_job_that_ran_without_a_schedule_is_registered_when_it_gets_one(shell: Shell) -> None:
    shell("run", "-j", "letters", "true")
    assert look(shell, LETTERS) == [Revision(1, DAILY, LAST_DUE_US)]


def test_a_zone_that_is_none_is_told_with_its_line(shell: Shell) -> None:
    with pytest.raises(ConfigError) as caught:
        look(shell, LETTERS.replace("London", "Lodnon"))
    assert str(caught.value) == (
        f"{shell.config}:3: jobs.letters.timezone: time zone 'Europe/Lodnon': not known on this host; did you mean"
        " Europe/London?"
    )


def test_a_store_that_cannot_be_written_is_left_in_silence(shell: Shell) -> None:
    shell.config.write_text(LETTERS)
    shell.write()
    store = shell.state / "db" / "runguard.sqlite"
    before = store.read_bytes()
    (shell.state / "db" / "write.lock").unlink(missing_ok=True)
    (shell.state / "db" / "write.lock").mkdir()
    register(shell.environ, strict.load(shell.environ), paths.places(str(shell.state), str(store)), NOW_US)
    assert store.read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_account_registers_nothing(shell: Shell) -> None:
    shell.config.write_text(LETTERS)
    os.chown(shell.config, 65534, 65534)
    assert look(shell) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_nothing_is_registered_in_the_store_of_another_account(shell: Shell) -> None:
    shell.write()
    store = shell.state / "db" / "runguard.sqlite"
    os.chown(store, 65534, 65534)
    shell.config.write_text(LETTERS)
    register(shell.environ, strict.load(shell.environ), paths.places(str(shell.state), str(store)), NOW_US)
    os.chown(store, 0, 0)
    assert recorded(shell) == []


def test_history_and_show_register_nothing(shell: Shell) -> None:
    shell.config.write_text(LETTERS)
    shell("history")
    assert not shell.state.exists()
