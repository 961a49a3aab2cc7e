"""Time zone files: the system's first (what the cron daemon uses), the tzdata package's where there are none."""

from __future__ import annotations

import os

from runguard.errors import ZoneError
from runguard.record import NamedTuple
from runguard.schedule.zone import Zone, parse_tzif

SYSTEM_DIRECTORIES = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")
LOCALTIME = "localtime"


class ZoneData(NamedTuple):
    """A zone and where its rules come from."""

    zone: Zone
    tzdata: str  # version such as "2026a", or "unknown"


def host_zone_name(etc: str = "/etc") -> str:
    """Return the IANA name of the daemon's zone: `/etc/localtime`, never `$TZ`.

    "localtime" stands for a zone file without a name, "UTC" for a host that has none (as the C library reads it).
    """
    try:
        target = os.path.realpath(os.path.join(etc, LOCALTIME), strict=True)
    except OSError:
        return "UTC"
    _, found, name = target.partition("/zoneinfo/")
    if found:
        return name.removeprefix("posix/").removeprefix("right/")
    return LOCALTIME


def load(name: str, *, directories: tuple[str, ...] = SYSTEM_DIRECTORIES, etc: str = "/etc") -> ZoneData:
    """Read the zone `name`. Raise ZoneError where this host does not know it, naming the nearest that it knows."""
    if name == LOCALTIME:
        path = os.path.join(etc, LOCALTIME)
        return ZoneData(parse_tzif(_read(path, name), name), _system_version(directories))
    _refuse_odd_name(name)
    for directory in directories:
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            return ZoneData(parse_tzif(_read(path, name), name), _system_version((directory,)))
    return _from_package(name, directories)


def known(directories: tuple[str, ...] = SYSTEM_DIRECTORIES) -> list[str]:
    """Return the names of all zones of the system or, where it has none, of the tzdata package."""
    for directory in (*directories, _package_directory()):
        if os.path.isdir(directory):
            return sorted(_names_below(directory))
    return []


def _refuse_odd_name(name: str) -> None:
    plain = name.replace("/", "").replace("_", "").replace("-", "").replace("+", "")
    parts = name.split("/")
    if not (plain.isascii() and plain.isalnum()) or "" in parts or len(name) > 100:
        raise ZoneError(name[:100], "a name such as Europe/London is wanted")


def _read(path: str, name: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(1 << 20) or b""
    except OSError as error:
        raise ZoneError(name, f"{path}: {error.strerror}") from error


def _system_version(directories: tuple[str, ...]) -> str:
    for directory in directories:
        try:
            with open(os.path.join(directory, "tzdata.zi"), "rb", buffering=0) as file:
                first = (file.read(100) or b"").partition(b"\n")[0].decode("ascii", "replace").split()
        except OSError:
            continue
        if first[:2] == ["#", "version"] and len(first) == 3:
            return first[2]
    return "unknown"


def _package_directory() -> str:
    try:
        import tzdata
    except ImportError:
        return ""
    return os.path.join(os.path.dirname(tzdata.__file__), "zoneinfo")


def _from_package(name: str, directories: tuple[str, ...]) -> ZoneData:
    directory = _package_directory()
    path = os.path.join(directory, name)
    if not directory or not os.path.isfile(path):
        raise ZoneError(name, "not known on this host" + _suggestion(name, directories))
    import tzdata

    return ZoneData(parse_tzif(_read(path, name), name), tzdata.IANA_VERSION)


def _suggestion(name: str, directories: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # only where something is wrong already

    by_lower = {zone.lower(): zone for zone in known(directories)}
    nearest = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[nearest[0]]}?" if nearest else ""


def _names_below(directory: str) -> list[str]:
    names = []
    for folder, folders, files in os.walk(directory):
        folders[:] = [each for each in folders if each not in ("posix", "right", "__pycache__")]
        for file in files:
            path = os.path.join(folder, file)
            with open(path, "rb") as opened:
                if opened.read(4) == b"TZif":
                    names.append(os.path.relpath(path, directory))
    return names
