#!/usr/bin/env python3
"""A job that works on its window and not on "today": run again months later, it does the same.

30 2 * * *  runguard run -j totals -s '30 2 * * *' -z Europe/London -- /opt/totals/window.py
"""

import os
import sys
from datetime import datetime


def main() -> None:
    """Process what lies in [start, end)."""
    try:
        start = datetime.fromisoformat(os.environ["RUNGUARD_WINDOW_START"])
        end = datetime.fromisoformat(os.environ["RUNGUARD_WINDOW_END"])
    except KeyError as missing:
        sys.exit(f"{missing.args[0]} is not set: start me through runguard run with a schedule")
    hours = (end - start).total_seconds() / 3600  # both are UTC: a day of 23 or 25 hours comes out right
    attempt = os.environ["RUNGUARD_ATTEMPT"]
    print(f"adding up {hours:g} hours, from {start:%F %T} up to {end:%F %T} UTC, attempt {attempt}")


main()
