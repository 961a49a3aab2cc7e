"""Debian's cron fires guarded lines and mails what they print: one real minute for all of it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shell import Shell, private_cron, wait_until

CRON = "/usr/sbin/cron"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(CRON) or not shutil.which("unshare"),
    reason="needs root, Debian's cron and unshare",
)

# Every byte, stdout and stderr in turn, no line end at the end.
NOISY = f"""#!{sys.executable}
import os
os.write(1, bytes(range(256)))
os.write(2, b"to stderr\\n")
os.write(1, b"to stdout again")
raise SystemExit(3)
"""
# Keeps a mail under the name of its recipient, the last argument; one recipient's mailer is broken, another's hangs.
SENDMAIL = """#!/bin/sh
for to; do :; done
case $to in
broken) exit 75 ;;
slow) sleep 300 ;;
esac
cat > {mails}/.$to && mv {mails}/.$to {mails}/$to
"""


class Minute(NamedTuple):
    """What cron has done in its first minute."""

    shell: Shell
    runs: dict[tuple[str, str], dict[str, Any]]  # by job and outcome
    mails: dict[str, bytes]  # the bodies, by recipient


@pytest.fixture(scope="module")
def minute(tmp_path_factory: pytest.TempPathFactory) -> Minute:
    """Cron's first minute on the crontab below."""
    shell = Shell(tmp_path_factory.mktemp("cron"))
    mails = shell.directory / "mails"
    mails.mkdir()
    noisy = shell.directory / "noisy"
    noisy.write_text(NOISY)
    noisy.chmod(0o755)
    run = f"{sys.executable} -m runguard run"
    lines = [f"{name}={value}" for name, value in shell.environ.items() if name != "TZ"] + [
        f"* * * * * root {run} -j good -s '* * * * *' -z UTC -- sh -c 'echo done > {shell.directory}/good'",
        f"* * * * * root {run} -j bad -s '* * * * *' -z UTC -c 'echo to stderr >&2; exit 3' 2> {shell.directory}/bad",
        f"* * * * * root {run} -j twice -- sleep 20",
        f"* * * * * root {run} -j twice -- sleep 20",
        f"MAILTO=bare\n* * * * * root {noisy}",
        f"MAILTO=guarded\n* * * * * root {run} -j noisy -- {noisy}",
        f"MAILTO=quiet\n* * * * * root {run} -q -j quiet -- echo all is well",
        f"MAILTO=broken\n* * * * * root {run} -j broken -- sh -c 'head -c 300000 /dev/zero; exit 4'",
        f"MAILTO=slow\n* * * * * root {run} -j slow -- sh -c 'echo to a mailer that hangs; exit 5'",
        # The last: what the others mail has come before it.
        f"MAILTO=loud\n* * * * * root {run} -q -j loud -- sh -c 'echo why it failed; sleep 1; exit 3'",
    ]
    daemon = private_cron(
        shell.directory / "cron", "\n".join(lines) + "\n", sendmail=SENDMAIL.format(mails=shell.directory / "mails")
    )
    wanted = {("good", "succeeded"), ("bad", "failed"), ("twice", "running"), ("twice", "refused")}
    wanted |= {("quiet", "succeeded"), ("broken", "failed"), ("slow", "failed")}
    try:
        wait_until(lambda: {"bare", "guarded", "loud"} <= {mail.name for mail in mails.iterdir()}, limit_s=75)
        wait_until(lambda: wanted <= runs(shell).keys())
        found = runs(shell)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    return Minute(shell, found, {mail.name: body(mail) for mail in mails.iterdir()})


def runs(shell: Shell) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the runs so far by job and outcome."""
    return {(run["job"], run["outcome"]): run for run in shell.runs_so_far()}


def body(mail: Path) -> bytes:
    return mail.read_bytes().partition(b"\n\n")[2]


def test_a_success_a_failure_and_an_overlap_fired_by_cron(minute: Minute) -> None:
    found = minute.runs
    assert found["good", "succeeded"]["window"]["due"] == found["bad", "failed"]["window"]["due"]
    assert found["good", "succeeded"]["window"]["due"].endswith(":00Z")
    assert found["bad", "failed"]["exit_status"] == 3
    assert found["twice", "running"]["window"] is None
    assert (found["twice", "refused"]["why"], found["twice", "refused"]["returned"]) == ("overlap", 75)
    assert (minute.shell.directory / "good").read_text() == "done\n"
    assert (minute.shell.directory / "bad").read_text() == "to stderr\n"


def test_cron_mails_the_output_of_a_guarded_line_byte_for_byte_as_of_a_bare_one(minute: Minute) -> None:
    assert minute.mails["guarded"] == minute.mails["bare"]
    assert minute.mails["guarded"] == bytes(range(256)) + b"to stderr\nto stdout again"


def test_output_on_failure_mails_a_failure_and_no_success(minute: Minute) -> None:
    assert minute.mails["loud"] == b"why it failed\n"
    assert "quiet" not in minute.mails
    number = str(minute.runs["quiet", "succeeded"]["number"])
    assert minute.shell("show", number, "--output").stdout == "all is well\n"  # and the record has it all the same


def test_a_mailer_that_fails_or_hangs_changes_no_status_and_no_record(minute: Minute) -> None:
    broken, slow = minute.runs["broken", "failed"], minute.runs["slow", "failed"]
    assert (broken["exit_status"], broken["returned"]) == (4, 4)
    assert (slow["exit_status"], slow["returned"]) == (5, 5)
    assert minute.shell.json("show", str(broken["number"]))[0]["output"]["stdout"]["bytes"] == 300_000
