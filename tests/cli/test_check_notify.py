"""`check --notify` as processes: what people hear of a job's life, and that nothing of it changes the status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from receivers import Healthchecks, Misbehaving, answer
from shell import Shell


class Post:
    """A command that keeps what it is told, and how often."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "told"
        self.events_file = directory / "events"
        self.command = (
            f'cat >> {self.file}; echo "$RUNGUARD_CHECK_EVENT $RUNGUARD_CHECK_STATE $RUNGUARD_CHECK_JOBS" '
            f">> {self.events_file}"
        )

    @property
    def events(self) -> list[str]:
        return self.events_file.read_text().splitlines() if self.events_file.exists() else []


@pytest.fixture
def post(shell: Shell) -> Post:
    """The command."""
    return Post(shell.directory)


def test_three_failures_a_success_and_a_failure_are_three_messages(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "true")
    statuses = [shell("check", "--notify", post.command).returncode]
    for command in ("false", "false", "false", "true", "false"):  # F F F S F
        shell("run", "-j", "a", "--", command)
        done = shell("check", "--notify", post.command)
        assert done.stderr == ""
        statuses.append(done.returncode)
    assert statuses == [0, 2, 2, 2, 0, 2]
    assert post.events == ["problem critical a", "recovery ok ", "problem critical a"]


def test_the_text_is_the_line_without_numbers_and_every_reason(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "sh", "-c", "exit 3")
    shell("run", "-j", "b", "--", "true")
    line = shell("check", "--notify", post.command).stdout
    assert post.file.read_text() == (f"{line.partition(' | ')[0]}\na is critical:\n  run 1 failed (exit status 3)\n")


def test_only_the_jobs_that_are_asked_for_are_told_of(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "false")
    shell("run", "-j", "b", "--", "true")
    assert shell("check", "--job", "b", "--notify", post.command).returncode == 0
    assert post.events == []
    assert shell("check", "--job", "a", "--json", "--notify", post.command).returncode == 2
    assert post.events == ["problem critical a"]


def test_what_cannot_be_read_is_told_too_and_its_end(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "true")
    store = shell.state / "db" / "runguard.sqlite"
    sound = store.read_bytes()
    store.write_bytes(b"no database")
    assert [shell("check", "--notify", post.command).returncode for _ in range(2)] == [3, 3]
    store.write_bytes(sound)
    shell.config.write_text("[jobs.a]\nschedul = 1\n")
    assert shell("check", "--notify", post.command).returncode == 3
    shell.config.write_text("")
    assert shell("check", "--notify", post.command).returncode == 0
    assert post.events == ["problem unknown ", "recovery ok "]
    assert "RUNGUARD UNKNOWN - store" in post.file.read_text()


def test_a_job_that_has_vanished_from_the_records_is_told(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "true")
    assert shell("check", "--job", "b", "--notify", post.command).returncode == 3
    assert post.events == ["problem unknown "]


def test_a_command_that_fails_changes_no_status_and_is_said(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "false")
    before = shell("check")
    done = shell("check", "--notify", "echo no mail today; exit 7")
    assert (done.returncode, done.stdout) == (before.returncode, before.stdout)
    assert done.stderr == (
        "no mail today\n"
        "runguard: check: --notify: the command was not told: the command ended with 7; the next check tries again\n"
    )


def test_a_url_gets_the_text_and_is_never_shown(shell: Shell) -> None:
    shell("run", "-j", "a", "--", "false")
    with Misbehaving([answer(404), answer(200)]) as monitor:
        url = monitor.url("/hooks/T0123456789abcdefXYZ")
        done = shell("check", "--notify", url)
        assert (done.returncode, shell("check", "--notify", url).stderr) == (2, "")
        shell("check", "--notify", url)
        assert [request.method for request in monitor.requests] == ["POST", "POST"]
    assert monitor.requests[1].body.startswith(b"RUNGUARD CRITICAL - a: run 1 failed")
    assert done.stderr.endswith("efXYZ was not told: HTTP 404; the next check tries again\n")
    assert "T0123456789" not in done.stderr


def test_a_target_can_be_kept_in_a_file(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "false")
    target = shell.directory / "target"
    missing = shell("check", "--notify", f"file:{target}")
    assert (missing.returncode, missing.stderr) == (
        2,
        f"runguard: check: --notify: file:{target}: No such file or directory; nobody was told\n",
    )
    with Healthchecks() as monitor:
        target.write_text(monitor.url("/hooks/alarm") + "\n")
        shell("check", "--notify", f"file:{target}", "--notify", post.command)
        assert monitor.paths == ["/hooks/alarm"]
    assert post.events == ["problem critical a"]


def test_of_two_checks_at_once_one_tells(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "false")
    command = [sys.executable, "-m", "runguard", "check", "--notify", f"{post.command}; sleep 0.5"]
    checks = [subprocess.Popen(command, env=shell.environ, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [check.wait(timeout=30) for check in checks] == [2] * 4
    assert post.events == ["problem critical a"]


def test_a_reader_of_the_line_that_has_gone_keeps_nobody_from_being_told(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "false")
    with open("/dev/full", "w") as full:
        shell("check", "--notify", post.command, stdout=full)
    assert post.events == ["problem critical a"]


def test_an_empty_target_is_a_mistake(shell: Shell) -> None:
    done = shell("check", "--notify", "")
    assert (done.returncode, done.stderr) == (3, "runguard: check: --notify: is empty\n")


def test_where_nothing_was_ever_recorded_that_is_told(shell: Shell, post: Post) -> None:
    assert shell("check", "--notify", post.command).returncode == 3
    assert post.events == ["problem unknown "]
    assert post.file.read_text() == f"RUNGUARD UNKNOWN - {shell.nothing_recorded.removeprefix('runguard: ')}"


def test_where_nothing_can_be_remembered_an_alarm_is_told_at_each_check(shell: Shell, post: Post) -> None:
    shell("run", "-j", "a", "--", "false")
    (shell.state / "notified").symlink_to("/tmp")
    done = shell("check", "--notify", post.command)
    assert (done.returncode, post.events) == (2, ["problem critical a"])
    assert done.stderr == (
        "runguard: check: --notify: what was told cannot be remembered, so it may be told again: "
        f"{shell.state}/notified: it is a symbolic link\n"
    )
