"""What befell the host between two entries of its ledger: its clock was set back, or it was started anew."""

from __future__ import annotations

from runguard import clock
from runguard.instant import SECOND_US, from_rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.guard.start import Start
    from runguard.store.database import Transaction

_SLACK_US = 2 * SECOND_US  # time servers slew what is less


def note(tx: Transaction, start: Start, last_at: bytes, boot: tuple[str | None, str] | None) -> None:
    """Append `clock` where the clock is well before the last entry's `last_at`, `restart` where the boot is another.

    `boot` is the boot id and the host of the last start on record. A store that several hosts write tells nothing of
    a restart.
    """
    host = tx.store.author.host
    if boot is not None and boot[0] and start.boot_id and boot[1] == host and boot[0] != start.boot_id:
        tx.append("restart", start.at_us, {"boot_id": start.boot_id, "before": boot[0]})
    if not last_at:
        return
    stepped_us = clock.look().wall_us - from_rfc3339(last_at.decode("ascii"))
    if stepped_us < -_SLACK_US:
        tx.append("clock", start.at_us, {"run_id": None, "stepped_s": round(stepped_us / SECOND_US, 3)})
