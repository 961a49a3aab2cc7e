"""`--overlap wait|kill|allow`: what a start does while an earlier run of its job lives."""

from __future__ import annotations

import signal

import pytest

from guarded import command_of, lives, queued, running
from shell import Shell, wait_until

# wait


WAIT_FOR_GO = "while [ ! -e go ]; do sleep 0.02; done; echo first >> order"
SECOND = ("--", "sh", "-c", "echo second >> order")


def test_a_start_that_waits_begins_after_the_earlier_run_has_ended(shell: Shell) -> None:
    with running(shell, command=WAIT_FOR_GO) as guard:
        waiting = queued(shell, "--overlap", "wait", *SECOND)
        (shell.directory / "go").touch()
        assert (guard.wait(timeout=30), waiting.wait(timeout=30)) == (0, 0)
    assert (shell.directory / "order").read_text() == "first\nsecond\n"
    second, first = shell.json("history")
    assert second["started_at"] >= first["finished_at"]
    (shown,) = shell.json("show", str(second["number"]))
    assert shown["waited_s"] > 0


def test_a_start_that_waited_long_enough_is_refused(shell: Shell) -> None:
    with running(shell):
        done = shell("run", "-j", "x", "--wait", "0.2", "--", "touch", "ran")
        assert done.returncode == 75
        assert done.stderr.rstrip().endswith("holds the lock; waited 0.2s")
    assert not (shell.directory / "ran").exists()


def test_a_start_that_is_told_to_stop_while_it_waits_is_refused_with_that_signal(shell: Shell) -> None:
    with running(shell):
        waiting = queued(shell, "--overlap", "wait", "--", "true")
        waiting.send_signal(signal.SIGTERM)
        _, said = waiting.communicate(timeout=30)
        assert waiting.returncode == 143
        assert "not run (overlap): told to stop by signal 15 while waiting for run 1 (pid" in said
        assert shell.json("history")[0]["why"] == "overlap"


def test_a_start_waits_for_a_command_whose_guard_has_been_killed(shell: Shell) -> None:
    with running(shell, command=WAIT_FOR_GO) as guard:
        guard.kill()
        guard.wait(timeout=30)
        waiting = queued(shell, "--overlap", "wait", *SECOND)
        (shell.directory / "go").touch()
        assert waiting.wait(timeout=30) == 0
    assert (shell.directory / "order").read_text() == "first\nsecond\n"


def test_a_waiting_start_that_finds_its_window_done_runs_nothing(shell: Shell) -> None:
    window = ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z")
    with running(shell, *window, command=WAIT_FOR_GO):
        waiting = queued(shell, *window, "--overlap", "wait", *SECOND)
        (shell.directory / "go").touch()
        assert waiting.wait(timeout=30) == 0
    assert shell.json("history", "--since", "2026-01-01")[0]["why"] == "duplicate"
    assert (shell.directory / "order").read_text() == "first\n"


# kill


def test_a_start_that_kills_stops_the_earlier_run_and_both_records_name_the_other(shell: Shell) -> None:
    with running(shell) as guard:
        victim = command_of(shell)
        done = shell("run", "-j", "x", "--overlap", "kill", "--", "echo", "mine")
        assert (done.returncode, done.stdout, done.stderr) == (0, "mine\n", "")
        assert guard.wait(timeout=30) == 143
        second, first = shell.json("history")
        assert f"stopped to make way for run {second['run_id']} (--overlap kill)" in guard.stderr.read()  # type: ignore[union-attr]
    assert (first["outcome"], first["why"], first["signal"]) == ("killed", "overlap", 15)
    (shown,) = shell.json("show", str(first["number"]))
    assert shown["killed_by"] == second["run_id"]
    (shown,) = shell.json("show", str(second["number"]))
    (ended,) = shown["ended"]
    assert (ended["run_id"], ended["command_pid"]) == (first["run_id"], victim)
    assert not lives(victim)


def test_a_command_that_ignores_term_is_killed(shell: Shell) -> None:
    with running(shell, "--kill-after", "0.2", command='trap "" TERM; sleep 60 & wait; sleep 60'):
        victim = command_of(shell)
        assert shell("run", "-j", "x", "--overlap", "kill", "--kill-after", "0.2", "--", "true").returncode == 0
        assert not lives(victim)
    assert shell.json("history")[1]["signal"] == 9


def test_a_run_whose_guard_was_killed_is_stopped_and_closed_as_killed(shell: Shell) -> None:
    with running(shell) as guard:
        victim = command_of(shell)
        guard.kill()
        guard.wait(timeout=30)
        assert lives(victim)
        done = shell("run", "-j", "x", "--overlap", "kill", "--", "true")
        assert (done.returncode, done.stderr) == (0, "")
        assert not lives(victim)
    second, first = shell.json("history")
    assert (first["outcome"], first["why"]) == ("killed", "overlap")
    (shown,) = shell.json("show", str(first["number"]))
    assert shown["killed_by"] == second["run_id"]


def test_a_guard_that_is_stopped_ends_its_run_all_the_same(shell: Shell) -> None:
    with running(shell) as guard:
        guard.send_signal(signal.SIGSTOP)
        assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
    assert shell.json("history")[1]["why"] == "overlap"


def test_what_escaped_into_a_session_of_its_own_is_stopped_with_a_run_whose_guard_is_gone(shell: Shell) -> None:
    with running(shell, command="setsid sh -c 'echo $$ > escaped; exec sleep 60' & wait") as guard:
        wait_until(lambda: (shell.directory / "escaped").exists() and bool((shell.directory / "escaped").read_text()))
        escaped = command_of(shell, "escaped")
        guard.kill()
        guard.wait(timeout=30)
        assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
        assert not lives(escaped)


def test_a_start_that_waits_is_not_stopped_by_one_that_kills(shell: Shell) -> None:
    with running(shell):
        waiting = queued(shell, "--overlap", "wait", *SECOND)
        assert shell("run", "-j", "x", "--overlap", "kill", "--", "true").returncode == 0
        assert waiting.wait(timeout=30) == 0
    assert (shell.directory / "order").read_text() == "second\n"


def test_nothing_living_means_that_a_start_that_kills_just_runs(shell: Shell) -> None:
    assert shell("run", "-j", "x", "--overlap", "kill", "--", "echo", "mine").stdout == "mine\n"


# allow


def test_runs_beside_each_other_have_identities_of_their_own(shell: Shell) -> None:
    with running(shell, "--overlap", "allow"):
        done = shell("run", "-j", "x", "--overlap", "allow", "--", "sh", "-c", "echo $RUNGUARD_RUN_ID")
        second, first = shell.json("history")
        assert (first["outcome"], second["outcome"]) == ("running", "succeeded")
        assert done.stdout == second["run_id"] + "\n" != first["run_id"] + "\n"


def test_runs_beside_each_other_in_one_window_are_attempts_that_replace_nothing(shell: Shell) -> None:
    window = ("-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z", "--overlap", "allow")
    with running(shell, *window):
        assert shell("run", "-j", "x", *window, "--", "true").returncode == 0
        second, first = shell.json("history", "--since", "2026-01-01")
        assert (second["attempt"], second["supersedes"], first["superseded_by"]) == (2, None, None)


@pytest.mark.parametrize("earlier", ["allow", "skip"])
def test_a_start_that_does_not_allow_it_is_refused_beside_any_run(shell: Shell, earlier: str) -> None:
    with running(shell, "--overlap", earlier):
        assert shell("run", "-j", "x", "--", "true").returncode == 75


def test_a_start_that_allows_it_runs_beside_one_that_does_not(shell: Shell) -> None:
    with running(shell):
        assert shell("run", "-j", "x", "--overlap", "allow", "--", "true").returncode == 0


# refusals, counted


def test_repeated_refusals_are_counted_with_the_holder(shell: Shell) -> None:
    with running(shell):
        pid = command_of(shell)
        first = shell("run", "-j", "x", "--", "true").stderr
        assert f"not run (overlap): run 1 (pid {pid}, for " in first
        assert "sh -c 'echo" in first or "sh -c echo" in first
        assert "in a row" not in first
        shell("run", "-j", "x", "--", "true")
        third = shell("run", "-j", "x", "--", "true").stderr
        since = shell.json("history")[2]["started_at"]
        assert third.rstrip().endswith(f"refused 3 times in a row, since {since}")


@pytest.mark.parametrize(
    ("policy", "would"),
    [
        ("skip", "refuse (overlap), exit status 75"),
        ("wait", "wait for its end, then refuse (overlap)"),
        ("kill", "stop it, then run the command"),
        ("allow", "run the command as attempt 1"),
    ],
)
def test_a_dry_run_says_what_the_policy_would_do(shell: Shell, policy: str, would: str) -> None:
    with running(shell):
        assert f"would    {would}\n" in shell("run", "-j", "x", "--overlap", policy, "--dry-run", "--", "true").stdout
