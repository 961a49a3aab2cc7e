"""What real cron daemons fired over changes of offset (data/fired-by-real-crons.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runguard.instant import from_rfc3339

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "fired-by-real-crons.json").read_text())[
    "runs"
]


def firings(row: dict[str, Any]) -> Iterator[int]:
    """Yield the instants of `MM-DD HH:MM:SS+zzzz` in µs; no row crosses a new year but by its offset."""
    for fired in row["fired_local"]:
        date, clock = fired.split(" ")
        year = int(row["from"][:4]) + (row["from"][5:7] == "12" and date.startswith("01"))
        yield from_rfc3339(f"{year}-{date}T{clock[:8]}{clock[8:11]}:{clock[11:]}")
