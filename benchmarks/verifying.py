"""What `verify` takes on a year of case entries, as a whole command, and how much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Verified(NamedTuple):
    """One look at everything."""

    entries: int  # of the ledger and of cases
    took_s: float
    peak_mib: float


def whole(state: Path) -> Verified:
    """Verify everything in the state directory; its record must be sound."""
    environ = {**os.environ, "RUNGUARD_STATE_DIR": str(state), "RUNGUARD_CONFIG": os.devnull}
    command = [sys.executable, "-m", "runguard", "verify", "--full", "--json"]
    began_s = time.perf_counter()
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE)
    assert process.stdout is not None
    integrity = json.loads(process.stdout.read())[0]
    _, _, usage = os.wait4(process.pid, 0)
    took_s = time.perf_counter() - began_s
    assert integrity["ok"], integrity["findings"][:3]
    return Verified(integrity["entries"] + integrity["records"], took_s, usage.ru_maxrss / 1024)


def rows(verified: Verified) -> list[tuple[str, str, str]]:
    """Return what it took as rows of a table."""
    return [
        ("verified in full, entries a second, whole command", f"{verified.entries / verified.took_s:,.0f}", "400,000"),
        ("memory of that, MiB", f"{verified.peak_mib:.0f}", ""),
    ]
