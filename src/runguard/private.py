"""What is ours alone, and its one judge: private is where nobody else can plant, replace or change a file."""

from __future__ import annotations

import os
import stat


def flaw(directory: str, owner: int | None = None) -> str:
    """Return why `directory` is not private, as a clause, or "".

    Private is a real directory, no link to one, that belongs to uid `owner` (by default ours) and in which neither
    group nor others may write. Raises OSError where it cannot be looked at.
    """
    found = os.lstat(directory)
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if found.st_uid != (os.geteuid() if owner is None else owner):
        return f"it belongs to uid {found.st_uid}"
    if found.st_mode & 0o022:
        return f"others may write in it (mode {stat.S_IMODE(found.st_mode):04o}); chmod 700 it"
    return ""


def shared_flaw(directory: str) -> str:
    """Return why others could replace what is ours in `directory`, or "". Raises OSError.

    Less is asked of a directory that is not runguard's own: it belongs to us or to root, and where all may write in it
    the sticky bit keeps them from what is ours.
    """
    found = os.stat(directory)
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to uid {found.st_uid}"
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return f"all may write in it (mode {stat.S_IMODE(found.st_mode):04o}); chmod o-w it"
    return ""


def file_flaw(found: os.stat_result) -> str:
    """Return why the file with this status (of lstat or fstat) is not ours alone, as a clause, or ""."""
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    if found.st_uid != os.geteuid():
        return f"it belongs to uid {found.st_uid}"
    if found.st_mode & 0o022:
        return f"others may write to it (mode {stat.S_IMODE(found.st_mode):04o}); chmod 600 it"
    return ""


def make(directory: str) -> str:
    """Make the directory, 0700 whatever the umask, where it is missing; return its `flaw`.

    Its parent must exist. Raises OSError.
    """
    try:
        return flaw(directory)
    except FileNotFoundError:
        pass
    try:
        os.mkdir(directory, 0o700)
        os.chmod(directory, 0o700)
    except FileExistsError:
        pass  # another start was faster
    return flaw(directory)


def sync(directory: str) -> None:
    """Make the names in a directory durable. Raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
