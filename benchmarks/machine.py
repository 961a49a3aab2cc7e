"""What there is to know about the machine that figures depend on; nothing that names it."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import sys
import time
from pathlib import Path

PYTHON = sys.executable  # the interpreter that the guard runs on, in the same environment
RUNGUARD = str(Path(sys.executable).with_name("runguard"))
PATH = "/usr/local/bin:/usr/bin:/bin"


def facts() -> str:
    """Return one line of facts."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (
        f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, Linux {platform.release().partition('-')[0]} "
        f"{platform.machine()}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"load {os.getloadavg()[0]:.1f}"
    )


def busy_s() -> float:
    """Return the seconds that all processors together have worked since the start of the machine."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def sync_ms(directory: Path) -> float:
    """Return the median of what one fdatasync after a small write takes there."""
    path = directory / "sync"
    taken = []
    with path.open("wb", buffering=0) as file:
        for _ in range(40):
            file.write(bytes(4096))
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began_s)
    path.unlink()
    return statistics.median(taken) * 1000


def environ(state: Path, config: Path | None = None) -> dict[str, str]:
    """Return the environment of a guard with its records in `state`."""
    named = str(config) if config else os.devnull
    return {"PATH": PATH, "HOME": str(state), "RUNGUARD_STATE_DIR": str(state), "RUNGUARD_CONFIG": named}
