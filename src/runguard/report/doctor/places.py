"""Where things are kept: whether others could plant something there, what was left behind, how much room there is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from shlex import quote

from runguard import private
from runguard.errors import reason
from runguard.guard import liveness
from runguard.report.doctor.findings import Finding, against, fault, ok, unknown, warning
from runguard.report.doctor.world import World
from runguard.store import network

_MEMORY = ("tmpfs", "ramfs")
_LITTLE_BYTES, _NONE_BYTES = 64 << 20, 4 << 20
_FEW_INODES, _NO_INODES = 1_000, 16


def state(world: World) -> Iterator[Finding]:
    """The state directory is private, and so is what lies beside a store that was named."""
    for directory in dict.fromkeys((world.places.state, os.path.dirname(os.path.realpath(world.places.store)))):
        try:
            found = os.lstat(directory)
            ours = found.st_uid == os.geteuid()
            flaw = private.flaw(directory) if ours or stat.S_ISLNK(found.st_mode) else ""
        except FileNotFoundError:
            yield ok(f"{directory}: not there yet; the first start makes it")
            continue
        except OSError as error:
            yield unknown(f"{directory}: {reason(error)} (uid {os.geteuid()})")
            continue
        if flaw:
            yield fault(f"{directory}: {flaw}; nothing starts", against(flaw, directory))
        elif not ours:
            yield ok(f"{directory}: it belongs to uid {found.st_uid}, and is only read here")
        else:
            yield ok(f"{directory}: private (mode {stat.S_IMODE(found.st_mode):04o})")


def locks(world: World) -> Iterator[Finding]:
    """The lock directory is private and holds lock files of ours alone: another is refused, and its job with it."""
    directory = world.places.locks
    try:
        flaw = private.flaw(directory) if world.writable else ""
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except FileNotFoundError:
        yield ok(f"{directory}: not there yet")
        return
    except OSError as error:
        yield unknown(f"{directory}: {reason(error)} (uid {os.geteuid()})")
        return
    if flaw:
        yield fault(f"{directory}: {flaw}; nothing starts", against(flaw, directory))
    flawed = False
    for entry in entries:
        why = _flaw_of_lock(entry, os.stat(directory).st_uid)
        flawed = flawed or bool(why)
        if why:
            yield fault(f"{entry.path}: {why}; its job is refused", f"rm {quote(entry.path)}")
    if not flaw and not flawed:
        yield ok(f"{directory}: private, {len(entries)} lock file{'s' * (len(entries) != 1)}")


def _flaw_of_lock(entry: os.DirEntry[str], owner: int) -> str:
    found = entry.stat(follow_symlinks=False)
    if not entry.name.endswith(".lock"):
        return ""
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    if found.st_uid != owner:
        return f"it belongs to uid {found.st_uid}"
    return f"it has {found.st_nlink} hard links" if found.st_nlink > 1 else ""


def leftovers(world: World) -> Iterator[Finding]:
    """Run files and case entries that guards who died have left: the next start of the job takes them over."""
    directory = world.places.runs
    try:
        found = sorted(os.listdir(directory))
    except FileNotFoundError:
        found = []
    except OSError as error:
        yield unknown(f"{directory}: {reason(error)} (uid {os.geteuid()})")
        return
    dead = [name for name in found if "." not in name and not liveness.held(os.path.join(directory, name))]
    orphans = [name for name in found if name.endswith(".items") and name.removesuffix(".items") not in found]
    over = [name for name in found if name.endswith(".over")]
    tidy = "runguard doctor --recover --reason TEXT"
    if dead:
        many = f"{len(dead)} runs have" if len(dead) > 1 else "a run has"
        yield warning(f"{directory}: {many} died without an end on record ({dead[0]}); the next start closes it", tidy)
    if orphans:
        yield warning(f"{directory}: case entries that are not on record yet ({orphans[0]})", tidy)
    for name in over:
        yield warning(f"{directory}/{name}: case entries over the limit, kept; look at it, and remove it")
    if not (dead or orphans or over):
        living = sum("." not in name for name in found)
        yield ok(f"nothing is left behind; {living} run{'s live' if living != 1 else ' lives'} now")


def file_system(world: World, mountinfo: str | None = None) -> Iterator[Finding]:
    """The store lies on a local disk that outlives a restart. `mountinfo` replaces /proc/self/mountinfo."""
    directory = _existing(os.path.dirname(os.path.realpath(world.places.store)))
    kind = network.kind_of(os.stat(directory).st_dev, mountinfo)
    if network.is_network(kind):
        yield fault(f"{directory}: a network file system ({kind}), where SQLite can lose records",
                    "choose a --store on a local disk")  # fmt: skip
    elif kind in _MEMORY:
        yield warning(f"{directory}: {kind}, lost at the next restart", "choose a --store on a disk")
    elif kind == "overlay":
        yield warning(f"{directory}: the layer of a container, lost with it", "choose a --store on a volume")
    elif not kind:
        yield unknown(f"{directory}: its file system is not to be found in /proc/self/mountinfo")
    else:
        yield ok(f"{directory}: {kind}")


def space(world: World, statvfs: Callable[[str], os.statvfs_result] = os.statvfs) -> Iterator[Finding]:
    """There is room for records, in bytes and in files."""
    directories = (_existing(world.places.state), _existing(os.path.dirname(os.path.realpath(world.places.store))))
    for directory in {os.stat(each).st_dev: each for each in directories}.values():
        try:
            found = statvfs(directory)
        except OSError as error:
            yield unknown(f"{directory}: {reason(error)}")
            continue
        free_bytes = found.f_bavail * found.f_frsize
        part = free_bytes / max(found.f_blocks * found.f_frsize, 1)
        text = f"{directory}: {free_bytes >> 20:,} MiB free ({part:.0%})"
        inodes = found.f_favail if found.f_files else _FEW_INODES  # some file systems do not count them
        if inodes < _FEW_INODES:
            text += f", room for {inodes} files"
        if free_bytes < _NONE_BYTES or inodes < _NO_INODES:
            yield fault(text, f"df -h {quote(directory)}; df -i {quote(directory)}")
        elif free_bytes < _LITTLE_BYTES or inodes < _FEW_INODES:
            yield warning(text, f"df -h {quote(directory)}; df -i {quote(directory)}")
        else:
            yield ok(text)


def _existing(directory: str) -> str:
    """Return the directory, or the nearest one above it that is there."""
    while not os.path.isdir(directory) and directory != "/":
        directory = os.path.dirname(directory)
    return directory
