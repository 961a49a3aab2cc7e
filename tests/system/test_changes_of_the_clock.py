"""Debian's cron over the two nights on which London's clocks change, under a shifted clock and in real minutes.

Europe/London 2026-03-29: 00:59:59+00:00 → 02:00:00+01:00. 2026-10-25: 01:59:59+01:00 → 01:00:00+00:00. Both at 01:00Z.
"""

from __future__ import annotations

import glob
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runguard.instant import from_rfc3339
from shell import Shell, private_cron, wait_until

LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists("/usr/sbin/cron") or not shutil.which("unshare") or not LIBRARY,
    reason="needs root, Debian's cron, unshare and libfaketime",
)

JOBS = {"fixed": "30 1 * * *", "late": "59 1 * * *", "wild": "* * * * *", "hourly": "0 * * * *"}


def start_cron(shell: Shell, night: str) -> subprocess.Popen[bytes]:
    """Run cron with our jobs, its clock and theirs shifted so that it is `night` now."""
    offset_s = from_rfc3339(night) / 1_000_000 - time.time()
    clock = {
        "LD_PRELOAD": LIBRARY,
        "FAKETIME": f"{offset_s:+.3f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    run = f"{sys.executable} -m runguard run"
    variables = {**{name: value for name, value in shell.environ.items() if name != "TZ"}, **clock}
    lines = [f"{name}={value}" for name, value in variables.items()]
    lines += [f"{text} root {run} -j {job} -s '{text}' -z Europe/London -- true" for job, text in JOBS.items()]
    shell.environ |= clock
    return private_cron(shell.directory / "cron", "\n".join(lines) + "\n", {**clock, "TZ": "Europe/London"})


def runs(shell: Shell, job: str) -> list[dict[str, Any]]:
    """Return the runs of a job, oldest first."""
    return [run for run in reversed(shell.runs_so_far()) if run["job"] == job]


def keys(shell: Shell, job: str, outcome: str = "succeeded") -> list[str]:
    return [run["window"]["key"] for run in runs(shell, job) if run["outcome"] == outcome]


def test_every_window_is_answered_once_in_the_spring_and_in_the_autumn_night(tmp_path: Path) -> None:
    spring, autumn = Shell(tmp_path / "spring"), Shell(tmp_path / "autumn")
    daemons = [start_cron(spring, "2026-03-29T00:59:50Z"), start_cron(autumn, "2026-10-25T00:58:50Z")]
    try:
        # Spring: cron makes up for the hour that was left out, one minute after the other.
        wait_until(lambda: len(keys(spring, "fixed")) + len(keys(spring, "late")) == 2, limit_s=150)
        # Autumn: two minutes before and two after the clock went back.
        wait_until(lambda: len(keys(autumn, "wild")) >= 3, limit_s=240)
    finally:
        for daemon in daemons:
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()

    # A fixed job in the gap is due at its end; cron's further firings are duplicates.
    assert keys(spring, "fixed") == ["L2026-03-29T01:30"]
    assert keys(spring, "late") == ["L2026-03-29T01:59"]
    assert runs(spring, "fixed")[0]["window"]["due"] == "2026-03-29T01:00:00Z"
    assert keys(spring, "wild")[0] == "U2026-03-29T01:00Z"
    # The repeated hour: a wild job is due in both, a fixed one in the first.
    assert keys(autumn, "wild")[:3] == ["U2026-10-25T00:59Z", "U2026-10-25T01:00Z", "U2026-10-25T01:01Z"]
    assert keys(autumn, "late") == ["L2026-10-25T01:59"]
    assert runs(autumn, "late")[0]["window"]["due"] == "2026-10-25T00:59:00Z"
    assert keys(autumn, "hourly") == ["U2026-10-25T01:00Z"]
    assert keys(autumn, "fixed") == []
    for night in (spring, autumn):
        for job in JOBS:
            answered = keys(night, job)
            assert len(answered) == len(set(answered))
            assert keys(night, job, "failed") == []
        assert night("missing").returncode == 0
