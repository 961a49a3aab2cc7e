"""Debian's cron fires guarded lines: one real minute, one firing each of success, failure and overlap."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from typing import Any

import pytest

from shell import Shell, private_cron, wait_until

CRON = "/usr/sbin/cron"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(CRON) or not shutil.which("unshare"),
    reason="needs root, Debian's cron and unshare",
)


def test_a_success_a_failure_and_an_overlap_fired_by_cron(shell: Shell) -> None:
    run = f"{sys.executable} -m runguard run"
    variables = "".join(f"{name}={value}\n" for name, value in shell.environ.items() if name != "TZ")
    crontab = (
        f"{variables}"
        f"* * * * * root {run} -j good -s '* * * * *' -z UTC -- sh -c 'echo done > {shell.directory}/good'\n"
        f"* * * * * root {run} -j bad -s '* * * * *' -z UTC -c 'echo to stderr >&2; exit 3' 2> {shell.directory}/bad\n"
        f"* * * * * root {run} -j twice -- sleep 20\n"
        f"* * * * * root {run} -j twice -- sleep 20\n"
    )
    daemon = private_cron(shell.directory / "cron", crontab)
    try:
        wanted = {("good", "succeeded"), ("bad", "failed"), ("twice", "running"), ("twice", "refused")}
        wait_until(lambda: wanted <= runs(shell).keys(), limit_s=75)
        found = runs(shell)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    assert found["good", "succeeded"]["window"]["due"] == found["bad", "failed"]["window"]["due"]
    assert found["good", "succeeded"]["window"]["due"].endswith(":00Z")
    assert found["bad", "failed"]["exit_status"] == 3
    assert found["twice", "running"]["window"] is None
    assert (found["twice", "refused"]["why"], found["twice", "refused"]["returned"]) == ("overlap", 75)
    assert (shell.directory / "good").read_text() == "done\n"
    assert (shell.directory / "bad").read_text() == "to stderr\n"


def runs(shell: Shell) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the runs so far by job and outcome."""
    return {(run["job"], run["outcome"]): run for run in shell.runs_so_far()}
