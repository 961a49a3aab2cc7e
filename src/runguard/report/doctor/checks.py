"""All checks, by the names under which they are told, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runguard.errors import RunguardError
from runguard.report.doctor import accounts, configured, jobs, kept, places, software, time
from runguard.report.doctor.findings import Finding, unknown
from runguard.report.doctor.world import Check, World
from runguard.store import faults

CHECKS: dict[str, Check] = {
    "store": kept.store,
    "ledger": kept.ledger,
    "witness": kept.witness,
    "journal": kept.journal,
    "spool": kept.spool,
    "state directory": places.state,
    "locks": places.locks,
    "leftovers": places.leftovers,
    "file system": places.file_system,
    "space": places.space,
    "configuration": configured.mistakes,
    "permissions": configured.permissions,
    "commands": jobs.commands,
    "pings": jobs.pings,
    "cron": time.cron_daemon,
    "zone": time.daemon_zone,
    "tzdata": time.tzdata,
    "clock": time.clock,
    "sqlite": software.sqlite_version,
    "python": software.python,
    "compiled": software.compiled,
    "accounts": accounts.others,
}


def examine(world: World, checks: Mapping[str, Check] = CHECKS) -> Iterator[tuple[str, Finding]]:
    """Make every check and yield its name with each thing that it finds. One that fails itself is told as unknown."""
    for name, check in checks.items():
        try:
            yield from ((name, each) for each in check(world))
        except RunguardError as error:
            yield name, unknown(f"it cannot be looked at: {faults.without_advice(str(error))}")
        except Exception as error:  # noqa: BLE001 - what is broken here must not hide what the other checks find
            yield name, unknown(f"it could not be looked at: {error!r}")
