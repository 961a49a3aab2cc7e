"""Pings that got lost: what the next run tells of them, when, and what it does not."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from receivers import Healthchecks, Misbehaving, answer
from runguard.heartbeat import spool
from runguard.heartbeat.body import Body
from runguard.heartbeat.slot import Slot
from runguard.heartbeat.styles import Event
from shell import Shell

CHECK = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
OTHER = "7d0f3c59-2f7e-4c3c-9c53-0a3c0b1d8f11"
DOWN = answer(503, Retry_After="3600")  # it is of no use to try again, so one try is all
UP = answer(200, b"OK")
FAIL = ("sh", "-c", "echo no paper; exit 3")


def run(shell: Shell, url: str, *command: str, job: str = "x") -> subprocess.CompletedProcess[str]:
    return shell("run", "-j", job, "--ping", url, "--", *command)


def slots(shell: Shell) -> list[Slot]:
    return spool.slots(str(shell.state / "spool"))


def pings(shell: Shell, number: int) -> list[tuple[Any, ...]]:
    return [(row["event"], row["verdict"], row["error"]) for row in shell.json("show", str(number))[0]["pings"]]


def put(shell: Shell, url: str, kind: str, *, at_us: int, until_us: int | None = None, job: str = "x") -> str:
    """Put an outcome into the spool as a run of long ago did, and return the run's id."""
    directory = str(shell.state / "spool")
    run_id = "00000001-0000-4000-8000-000000000000"
    told = Event(kind, run_id, 0 if kind == "success" else 3, None, False, Body(f"{kind} of long ago"))
    where = spool.address(directory, url)
    slot = Slot(job, at_us, at_us, until_us, 1, "HTTP 503", "healthchecks", "http://…", "--ping", where, told)
    spool.keep(directory, slot, at_us)
    return run_id


def test_a_failure_that_got_lost_is_told_before_the_next_runs_own_success(shell: Shell) -> None:
    with Misbehaving([DOWN, UP]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        lost = run(shell, url, *FAIL)
        assert (lost.returncode, lost.stderr.count("\n")) == (3, 1)
        assert lost.stderr.endswith("HTTP 503; kept: the next run, or runguard ping, sends it\n")
        [kept] = slots(shell)
        assert (kept.job, kept.event, kept.until_us, kept.tries) == ("x", "failure", None, 1)
        assert run(shell, url, "true").stderr == ""
        assert monitor.paths[1:] == [f"/ping/{CHECK}/3", f"/ping/{CHECK}"]
        late = monitor.requests[1].body.decode()
    ended = shell.json("history")[1]["finished_at"]
    assert re.match(rf"delivered late by \d+s \(it ended {ended[:15]}[^)]*Z\): failed, exit 3, ", late)
    assert late.endswith("\nno paper")
    assert slots(shell) == []
    assert pings(shell, 1) == [("failure", "undelivered", "HTTP 503"), ("failure", "accepted", None)]
    assert pings(shell, 2) == [("success", "accepted", None)]


def test_the_monitor_sees_the_failure_and_then_the_recovery(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        shell("run", "-j", "x", "--", "true")  # makes the state directory
        put(shell, url, "failure", at_us=1_000_000)
        run(shell, url, "true")
        assert monitor.checks[CHECK].flips == ["down", "up"]


def test_a_lost_success_is_only_a_line_of_the_log_once_a_newer_outcome_is_told(shell: Shell) -> None:
    with Misbehaving([DOWN, UP]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        run(shell, url, "true")
        run(shell, url, *FAIL)
        assert monitor.paths[1:] == [f"/ping/{CHECK}/log", f"/ping/{CHECK}/3"]
    assert pings(shell, 1)[1:] == [("log", "accepted", None)]


def test_a_style_without_a_log_is_told_nothing_of_it(shell: Shell) -> None:
    with Misbehaving([DOWN, UP]) as monitor:
        url = monitor.url("/hooks/backup")
        run(shell, url, "true")
        run(shell, url, "false")  # of which a plain address is told nothing either
        assert len(monitor.requests) == 1
    assert slots(shell) == []
    assert [ping[:2] for ping in pings(shell, 1)] == [("success", "undelivered"), ("success", "dropped")]


def test_beside_a_long_command_it_is_told_before_the_start(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        shell("run", "-j", "x", "--", "true")
        put(shell, url, "failure", at_us=1_000_000)
        command = [sys.executable, "-m", "runguard", "run", "-j", "x", "--ping", url, "--", "sh", "-c", "read line"]
        with subprocess.Popen(command, env=shell.environ, stdin=subprocess.PIPE) as guard:
            monitor.wait_for(2)  # while the command runs
            guard.communicate(b"go on\n")
        assert monitor.paths == [f"/ping/{CHECK}/3", f"/ping/{CHECK}/start", f"/ping/{CHECK}"]
        assert (monitor.checks[CHECK].started, monitor.checks[CHECK].status) == (False, "up")


def test_the_newest_of_several_lost_outcomes_is_the_one_that_is_told(shell: Shell) -> None:
    with Misbehaving([DOWN, DOWN, DOWN, DOWN, UP]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        run(shell, url, *FAIL)  # 1 request
        run(shell, url, "sh", "-c", "exit 4")  # tells of the first one, then of itself
        [kept] = slots(shell)
        assert kept.told.exit_status == 4
        run(shell, url, "true")
        assert monitor.paths[3:] == [f"/ping/{CHECK}/4", f"/ping/{CHECK}"]


def test_a_monitor_that_stays_down_delays_nothing_but_the_end_and_changes_no_status(shell: Shell) -> None:
    with Misbehaving([DOWN]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        run(shell, url, *FAIL)
        again = run(shell, url, *FAIL)
    assert (again.returncode, again.stdout) == (3, "no paper\n")
    assert again.stderr.count("\n") == 2
    [kept] = slots(shell)
    assert kept.run_id == shell.json("history")[0]["run_id"]


def test_what_a_monitor_refuses_for_good_is_not_kept(shell: Shell) -> None:
    for refusal in (answer(404, b"not found"), answer(409), answer(200, b"OK (not found)")):
        with Misbehaving([refusal]) as monitor:
            assert "kept" not in run(shell, monitor.url(f"/ping/{CHECK}"), *FAIL).stderr
        assert slots(shell) == []


def test_an_address_that_was_changed_is_told_of_its_own_runs_alone_and_the_loss_is_said(shell: Shell) -> None:
    with Misbehaving([DOWN]) as before, Healthchecks() as after:
        run(shell, before.url(f"/ping/{CHECK}"), *FAIL)
        said = run(shell, after.add(OTHER), "true").stderr
        assert after.paths == [f"/ping/{OTHER}"]
        assert len(before.requests) == 1
    first = shell.json("history")[1]["run_id"]
    assert f"failure of run {first} to {before.url('/…d21a5')} was never delivered" in said
    assert slots(shell) == []
    assert pings(shell, 1)[1][:2] == ("failure", "dropped")


def test_a_run_without_an_address_leaves_what_waits(shell: Shell) -> None:
    with Misbehaving([DOWN]) as monitor:
        run(shell, monitor.url(f"/ping/{CHECK}"), *FAIL)
    assert shell("run", "-j", "x", "--", "true").stderr == ""
    assert len(slots(shell)) == 1


def test_a_damaged_slot_is_kept_aside_and_the_run_tells_its_own_outcome(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK)
        shell("run", "-j", "x", "--", "true")
        put(shell, url, "failure", at_us=1_000_000)
        [path] = spool.waiting(str(shell.state / "spool"))
        Path(path).write_bytes(b"torn")
        done = run(shell, url, "true")
        assert monitor.paths == [f"/ping/{CHECK}"]
    assert done.returncode == 0
    assert done.stderr == f"runguard: x: {path}: it is damaged; kept as {path}.damaged, and not sent\n"


def test_a_spool_that_cannot_be_written_is_said_and_changes_no_status(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    (shell.state / "spool").write_text("in the way")
    with Misbehaving([DOWN]) as monitor:
        done = run(shell, monitor.url(f"/ping/{CHECK}"), *FAIL)
    assert done.returncode == 3
    assert done.stderr.endswith(f"it cannot be kept for later: {shell.state}/spool: it is not a directory\n")


def test_the_address_is_nowhere_in_the_state_directory(shell: Shell) -> None:
    with Misbehaving([DOWN]) as monitor:
        run(shell, monitor.url(f"/ping/{CHECK}"), "sh", "-c", 'echo "$0"; exit 3', monitor.url(f"/ping/{CHECK}"))
    assert len(slots(shell)) == 1
    for path in shell.state.rglob("*"):
        assert CHECK not in path.name
        assert not path.is_file() or CHECK.encode() not in path.read_bytes()


def test_on_a_full_disk_it_is_said_that_a_ping_is_not_kept_and_nothing_else_changes(
    shell: Shell, small_state: Path
) -> None:
    with Misbehaving([DOWN]) as monitor:
        url = monitor.url(f"/ping/{CHECK}")
        shell("run", "-j", "x", "--", "true")  # makes the store
        with open(small_state / "ballast", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        done = run(shell, url, *FAIL)
    assert (done.returncode, done.stdout) == (3, "no paper\n")
    assert f"it cannot be kept for later: {shell.state}/spool: No space left on device" in done.stderr
    assert [path.name for path in (small_state / "spool").iterdir() if path.name != "key"] == []  # no half of a slot
