"""Other accounts of this host: each has its own records, and its own doctor."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from shlex import quote

from runguard.paths import ROOT_STATE
from runguard.report.doctor.findings import Finding, ok
from runguard.report.doctor.world import World

_MOST = 10


def others(world: World) -> Iterator[Finding]:
    """Who else has records here, as far as this account can see."""
    found = [(user, path) for user, path in _places() if path != world.places.state and os.path.isdir(path)]
    for user, path in found[:_MOST]:
        yield ok(f"{user} has records of its own in {path}: sudo -u {quote(user)} -i runguard doctor")
    if len(found) > _MOST:
        yield ok(f"and {len(found) - _MOST} more accounts have")
    if not found:
        yield ok("no other account's records are to be seen here; each account has its own")


def _places() -> Iterator[tuple[str, str]]:
    """Yield where accounts keep their records unless they say otherwise."""
    yield "root", ROOT_STATE
    for account in pwd.getpwall():
        if account.pw_uid != 0 and account.pw_dir.startswith("/") and account.pw_dir != "/":
            yield account.pw_name, os.path.join(account.pw_dir, ".local/state/runguard")
