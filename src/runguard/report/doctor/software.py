"""What runguard runs on: SQLite, Python and its compiled files."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.util import cache_from_source
from shlex import quote

import runguard
from runguard.report.doctor.findings import Finding, fault, ok, warning
from runguard.report.doctor.world import World
from runguard.store import examining

_OLDEST_SQLITE = (3, 31, 0)  # generated columns
# https://www.sqlite.org/wal.html#walresetbug: corrected in these and in all later than the last of them.
_CORRECTED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))


def sqlite_version(_world: World) -> Iterator[Finding]:
    """It is new enough; its known fault of write-ahead logs concerns no store of ours."""
    version = examining.sqlite_version()
    text = f"SQLite {'.'.join(map(str, version))}"
    if version < _OLDEST_SQLITE:
        yield fault(f"{text}: at least {'.'.join(map(str, _OLDEST_SQLITE))} is needed")
    elif any(version[:2] == each[:2] and version >= each for each in _CORRECTED) or version >= _CORRECTED[-1]:
        yield ok(text)
    else:
        yield ok(f"{text}; its WAL-reset fault concerns no store of runguard, which keeps no write-ahead log")


def python(_world: World) -> Iterator[Finding]:
    """It is new enough."""
    text = f"Python {platform.python_version()} ({sys.executable}), runguard {runguard.__version__}"
    yield ok(text) if sys.version_info >= (3, 11) else fault(f"{text}: at least 3.11 is needed")


def compiled(_world: World, cached: Callable[[str], str] = cache_from_source) -> Iterator[Finding]:
    """The modules are compiled: without that each start takes about four times as long."""
    package = os.path.dirname(runguard.__file__)
    sources = [
        os.path.join(folder, name) for folder, _, names in os.walk(package) for name in names if name.endswith(".py")
    ]
    missing = [path for path in sources if not os.path.exists(cached(path))]
    if not missing:
        yield ok(f"{package}: all {len(sources)} modules are compiled")
    elif os.access(os.path.dirname(missing[0]), os.W_OK) and not sys.dont_write_bytecode:
        yield ok(f"{package}: {len(missing)} modules are not compiled yet; the first use of each does that")
    else:
        text = f"{package}: {len(missing)} of {len(sources)} modules are not compiled"
        yield warning(
            f"{text}; starts take about four times as long", f"{quote(sys.executable)} -m compileall {quote(package)}"
        )
