"""What befalls the host between and during runs stands in the ledger: a clock that steps, a restart."""

from __future__ import annotations

import glob
import json
import sqlite3
from typing import Any

import pytest

from shell import Shell

LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")
FAKED = {"LD_PRELOAD": LIBRARY, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}

faketime = pytest.mark.skipif(not LIBRARY, reason="needs libfaketime")


def of_kind(shell: Shell, kind: str) -> list[dict[str, Any]]:
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    entries = [json.loads(line) for (line,) in database.execute("SELECT line FROM ledger ORDER BY seq")]
    database.close()
    return [entry for entry in entries if entry["kind"] == kind]


@faketime
@pytest.mark.parametrize(("shift", "low_s", "high_s"), [("-3h", -10_810, -10_790), ("-10y", -3.2e8, -3.1e8)])
def test_a_clock_that_was_set_back_is_an_entry_before_the_start(
    shell: Shell, shift: str, low_s: float, high_s: float
) -> None:
    shell("run", "-j", "x", "--", "true")
    done = shell("run", "-j", "x", "--", "true", environ={**FAKED, "FAKETIME": shift})
    assert done.returncode == 0
    (entry,) = of_kind(shell, "clock")
    assert low_s < entry["stepped_s"] < high_s
    assert entry["run_id"] is None
    assert entry["seq"] == of_kind(shell, "run.start")[1]["seq"] - 1


@faketime
def test_a_clock_that_steps_during_a_run_is_an_entry_that_names_it_and_its_duration_is_right(shell: Shell) -> None:
    command = ("--", "env", "-u", "LD_PRELOAD", "sleep", "0.2")
    shell("run", "-j", "x", *command, environ={**FAKED, "FAKETIME": "+0 x200"})
    (entry,), (run,) = of_kind(shell, "clock"), of_kind(shell, "run.finish")
    assert entry["run_id"] == run["run_id"]
    assert entry["stepped_s"] > 30
    assert 0.2 <= run["duration_s"] < 10


def test_an_ordinary_day_has_no_such_entries(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    shell("run", "-j", "x", "--", "true")
    assert of_kind(shell, "clock") == of_kind(shell, "restart") == []


def test_a_restart_of_the_host_is_an_entry_before_the_first_start_after_it(shell: Shell) -> None:
    shell("run", "-j", "x", "--", "true")
    (first,) = of_kind(shell, "run.start")
    before = "5e0c7d3c-0000-4000-8000-000000000001"
    database = sqlite3.connect(shell.state / "db" / "runguard.sqlite")
    database.execute("UPDATE run SET boot_id = ?", (before,))
    database.commit()
    database.close()
    shell("run", "-j", "x", "--", "true")
    (entry,) = of_kind(shell, "restart")
    assert (entry["before"], entry["boot_id"]) == (before, first["boot_id"])
    assert entry["seq"] == of_kind(shell, "run.start")[1]["seq"] - 1
