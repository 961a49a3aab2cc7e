"""Who and where we are: host, boot, processes, the person behind a start."""

from __future__ import annotations

import os

from runguard import __version__
from runguard.heartbeat.redact import mask_argv
from runguard.record import NamedTuple
from runguard.store.lines import Author

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

UNSET_LOGINUID = 0xFFFF_FFFF
SHOWN_COMMAND = 200  # characters of a command line, where it only tells who somebody is


class Actor(NamedTuple):
    """The person or account behind a start."""

    uid: int
    user: str
    login: str | None  # who logged in, if the kernel knows it
    sudo_user: str | None  # who called sudo


def name() -> str:
    """Return the host's name."""
    return os.uname().nodename


def boot_id() -> str:
    """Return the kernel's id of this boot, or "" where it gives none."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def actor(environ: Mapping[str, str]) -> Actor:
    """Return who is behind this process."""
    uid = os.getuid()
    login_uid = _read("/proc/self/loginuid").strip()
    login = _user(int(login_uid)) if login_uid.isdigit() and int(login_uid) != UNSET_LOGINUID else None
    return Actor(uid, _user(uid), login, environ.get("SUDO_USER"))


def author(environ: Mapping[str, str]) -> Author:
    """Return who is behind this process, as entries of the ledger name them."""
    return Author(name(), actor(environ)._asdict(), __version__)


def start_ticks(pid: int) -> int | None:
    """Return the kernel's start time of the process in clock ticks since boot, or None where it has gone.

    A zombie has gone: it does no work any more.
    """
    fields = _status(pid)
    return int(fields[19]) if len(fields) > 19 else None


def age_s(ticks: int) -> float:
    """Return how long ago a process started, by the kernel's clock: whoever sets the wall clock does not change it."""
    uptime = _read("/proc/uptime").partition(" ")[0]
    return max(float(uptime or 0) - ticks / os.sysconf("SC_CLK_TCK"), 0.0)


def group_of(pid: int) -> int | None:
    """Return the process group of a process, or None where it has gone."""
    kin = parent_and_group(pid)
    return kin[1] if kin else None


def parent_and_group(pid: int) -> tuple[int, int] | None:
    """Return the parent and the process group of a process, or None where it has gone."""
    fields = _status(pid)
    return (int(fields[1]), int(fields[2])) if len(fields) > 2 else None


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, which may be a zombie, or None where there is none of that number."""
    fields = _fields(pid)
    return int(fields[1]) if len(fields) > 1 else None


def owner_of(pid: int) -> int | None:
    """Return the user id with which a process acts, or None where it has gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def environment(pid: int) -> list[bytes]:
    """Return the environment in which a process was started, as far as we may read it."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return (file.read(1 << 20) or b"").split(b"\0")
    except OSError:
        return []


def lives(pid: int | None, ticks: int | None, boot: str) -> bool:
    """Return whether the process with that pid, start time and boot is alive: a reused pid is another process."""
    return pid is not None and ticks is not None and boot == boot_id() and start_ticks(pid) == ticks


def command_line(pid: int) -> str:
    """Return the command line of a process for display, secrets masked by their shape, or its short name."""
    argv = _read(f"/proc/{pid}/cmdline").rstrip("\0").split("\0")
    line = " ".join(mask_argv(argv, ())[0])
    return line or f"[{_read(f'/proc/{pid}/comm').strip() or pid}]"


def _status(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the name, the process's state first; none where it has gone."""
    fields = _fields(pid)
    if len(fields) < 20 or fields[0] == "X":
        return []
    return [] if fields[0] == "Z" and fields[17] in "01" else fields  # more threads: only the first has ended


def _fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the name, the process's state first."""
    text = _read(f"/proc/{pid}/stat")
    return text[text.rfind(")") + 2 :].split()


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.read(65_536) or b"").decode("utf-8", "surrogateescape")
    except OSError:
        return ""
