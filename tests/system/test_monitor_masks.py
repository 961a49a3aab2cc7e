"""What hides a failure from Healthchecks, and that guarded runs do none of it: the states of a check, not its requests.

The monitor's clock is the test's, so that graces pass at once.
"""

from __future__ import annotations

import glob
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from receivers import Healthchecks
from runguard.instant import from_rfc3339
from shell import Shell, wait_until

CHECK = "0b1cfa3e-64a7-4c15-a1a6-62ac15ad21a5"
GRACE_S = 600
LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")


@contextmanager
def running(shell: Shell, monitor: Healthchecks, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Give a guard whose command hangs, once the monitor has heard of its start."""
    command = [sys.executable, "-m", "runguard", "run", "-j", "x", "--ping", url, "--", "sh", "-c", "read line"]
    heard = len(monitor.requests)
    with subprocess.Popen(command, env=shell.environ, stdin=subprocess.PIPE) as guard:
        monitor.wait_for(heard + 1)
        assert monitor.paths[-1] == f"/ping/{CHECK}/start"
        yield guard


def test_a_run_that_hangs_is_alarmed_though_its_line_keeps_firing(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK, grace_s=GRACE_S)
        shell("run", "-j", "x", "--ping", url, "--", "true")
        with running(shell, monitor, url) as guard:
            for _ in range(3):
                monitor.pass_time(GRACE_S / 4)
                assert monitor.checks[CHECK].status == "up"
                assert shell("run", "-j", "x", "--ping", url, "--", "true").returncode == 75
            monitor.pass_time(GRACE_S / 4)
            assert monitor.checks[CHECK].status == "down"
            guard.communicate(b"\n")
        assert monitor.checks[CHECK].flips == ["up", "down", "up"]


def test_a_run_whose_start_was_heard_is_within_its_time_when_it_ends(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK, grace_s=GRACE_S)
        with running(shell, monitor, url) as guard:
            guard.communicate(b"\n")
        monitor.pass_time(GRACE_S)
        assert (monitor.checks[CHECK].status, monitor.checks[CHECK].started) == ("up", False)


def test_the_timer_of_a_guard_that_was_killed_is_cleared_by_the_next_run_however_short(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK, grace_s=GRACE_S)
        with running(shell, monitor, url) as guard:
            guard.send_signal(signal.SIGKILL)
            guard.wait()
        wait_until(lambda: shell("run", "-j", "x", "--ping", url, "--", "true").returncode == 0)
        monitor.pass_time(GRACE_S)
        assert (monitor.checks[CHECK].status, monitor.checks[CHECK].started) == ("up", False)


def test_a_start_that_was_not_heard_leaves_no_timer_behind(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK, grace_s=GRACE_S)
        monitor.outages = 1
        with running(shell, monitor, url) as guard:
            guard.communicate(b"\n")
        assert monitor.requests[-1].query == {}  # a rid that no start had would clear nothing
        monitor.pass_time(GRACE_S)
        assert (monitor.checks[CHECK].status, monitor.checks[CHECK].started) == ("up", False)


def test_an_older_success_that_is_delivered_late_turns_no_failed_check_green(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK, grace_s=GRACE_S)
        monitor.outages = 1
        shell("run", "-j", "x", "--ping", url, "--", "true")
        shell("run", "-j", "x", "--ping", url, "--", "false")
        assert (monitor.checks[CHECK].status, monitor.checks[CHECK].flips) == ("down", ["down"])


def test_a_success_that_was_lost_does_not_hide_that_the_next_window_is_missed(shell: Shell) -> None:
    with Healthchecks() as monitor:
        url = monitor.add(CHECK, grace_s=GRACE_S, schedule="0 3 * * *")
        monitor.outages = 1
        daily = ("run", "-j", "x", "-s", "0 3 * * *", "-z", "UTC", "--ping", url)
        shell(*daily, "--scheduled-at", "2026-03-10T03:00Z", "--", "true")
        # The next of its windows has been due since, so that a success now would be taken for that one's.
        shell(*daily, "--scheduled-at", "2026-03-12T03:00Z", "--", "false")
        assert monitor.checks[CHECK].flips == ["down"]


@pytest.mark.skipif(not LIBRARY, reason="needs libfaketime")
def test_a_start_before_its_due_time_is_not_taken_for_the_slot_before(shell: Shell) -> None:
    ahead_s = from_rfc3339("2026-03-10T02:59:58Z") / 1_000_000 - time.time()
    clock = {"LD_PRELOAD": LIBRARY, "FAKETIME": f"{ahead_s:+.3f}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with Healthchecks() as monitor:
        url = monitor.add(CHECK, grace_s=GRACE_S, schedule="0 3 * * *")
        monitor.pass_time(ahead_s)
        started = shell("run", "-j", "x", "-s", "0 3 * * *", "-z", "UTC", "--ping", url, "--", "true", environ=clock)
        assert (started.returncode, started.stderr) == (0, "")
        monitor.pass_time(GRACE_S)  # it is 03:10 by now
        assert monitor.checks[CHECK].status == "up"
