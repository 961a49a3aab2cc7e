"""Real cron daemons and their helpers, asked without touching any table of this host."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shell import wait_until

ROOT = Path(__file__).parents[1]
CRONTAB, CRON = "/usr/bin/crontab", "/usr/sbin/cron"
SPOOL = "/var/spool/cron/crontabs"

needs_debian = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(CRON) or not os.path.exists(CRONTAB) or not shutil.which("unshare"),
    reason="needs root, Debian's cron and unshare",
)


def _busybox() -> str | None:
    """Return a busybox that has crond: the one that tests/run unpacked, or the host's."""
    program = shutil.which("busybox", path=f"{ROOT}/.venv/debian/bin:{os.environ.get('PATH', os.defpath)}")
    if program is None:
        return None
    applets = subprocess.run([program, "--list"], capture_output=True, text=True, check=False).stdout.split()
    return program if "crond" in applets else None


BUSYBOX = _busybox()
needs_busybox = pytest.mark.skipif(
    BUSYBOX is None or os.geteuid() != 0, reason="needs root and a busybox with crond (Debian's busybox-static)"
)


def with_spool(spool: Path, *command: str) -> list[str]:
    """Return a command that runs `command` where `spool` holds the users' tables."""
    spool.mkdir(exist_ok=True)
    script = f'mount --bind "$0" {SPOOL} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(spool), *command]


def with_tables(etc: Path) -> tuple[str, ...]:
    """Return what is put before a command that is to see the crontab, cron.d and spool of a directory as the host's."""
    script = (
        'mount --bind "$0/crontab" /etc/crontab && mount --bind "$0/cron.d" /etc/cron.d &&'
        f' mount --bind "$0/spool" {SPOOL} && exec "$@"'
    )
    return ("unshare", "--mount", "sh", "-c", script, str(etc))


def debian_takes(directory: Path, tables: Sequence[bytes]) -> list[str]:
    """Return for each table what Debian's `crontab -n` complains of, "" where it takes it."""
    for at, table in enumerate(tables):
        (directory / f"{at:04d}").write_bytes(table)
    script = 'for each in "$0"/????; do echo "$each"; crontab -n "$each" 2>&1; done; true'
    command = with_spool(directory / "spool", "sh", "-c", script, str(directory))
    said = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    answers = re.split(rf"^{re.escape(str(directory))}/\d{{4}}\n", said, flags=re.MULTILINE)[1:]
    return ["" if "successfully checked" in answer else answer.splitlines()[0] for answer in answers]


def busybox_crond(directory: Path, *options: str, **streams: Any) -> subprocess.Popen[bytes]:
    """Start BusyBox' crond on the tables in a directory, each called after its user. Kill it to end it."""
    assert BUSYBOX is not None
    script = 'mount -t tmpfs none /run && exec "$@"'
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*alone, BUSYBOX, "crond", "-f", "-c", str(directory), *options], **{**silent, **streams})


def busybox_reads(directory: Path, lines: Sequence[str]) -> list[list[set[int]] | None]:
    """Return for each line the values that BusyBox reads in its fields, None where it complains of one."""
    (directory / "root").write_text("".join(f"{line} x\n" for line in lines))
    log = directory / "log"
    with log.open("wb") as output:
        daemon = busybox_crond(directory, "-l", "5", "-L", "/dev/stderr", stdout=output, stderr=output)
    try:
        wait_until(lambda: len(_told(log)) == 5 * len(lines))
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    told = _told(log)
    found: list[list[set[int]] | None] = []
    for at in range(0, len(told), 5):
        of_line = told[at : at + 5]
        values = [{value for value, bit in enumerate(bits) if bit == "1"} for bits in of_line]
        found.append(None if any("parse error" in each for each in of_line) else values)
    return found


def _told(log: Path) -> list[str]:
    """Return what is said of each field: a bit for each value, or a complaint."""
    return re.findall(r"^[01]+$|^.*parse error.*$", log.read_text(), re.MULTILINE)
