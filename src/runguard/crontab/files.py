"""Tables where they lie: files, and users' tables behind the program `crontab`. The one place that writes them.

A table is replaced whole or not at all, after a copy of it was kept, and only if it is still what was read.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping

from runguard import private, programs
from runguard.crontab.hazards import Place
from runguard.errors import CrontabError

SYSTEM_TABLE = "/etc/crontab"
SYSTEM_DIRECTORY = "cron.d"
LARGEST_BYTES = 64 << 20
_CHANGED = 75
_CANNOT_WRITE = 74
_PATIENCE_S = 60  # of the program crontab


def read(path: str) -> bytes:
    """Return the bytes of a table. Raises CrontabError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise CrontabError(f"{path}: it is no regular file")
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise CrontabError(f"{path}: {error.strerror}") from error
    if len(data) > LARGEST_BYTES:
        raise CrontabError(f"{path}: larger than {LARGEST_BYTES >> 20} MiB: it is no crontab")
    return data


def replace(path: str, before: bytes, after: bytes, stamp: str) -> str:
    """Put `after` in the place of `before`, with its mode and owner, and return the path of the copy that was kept.

    The copy ends in `~`, which no daemon reads. Raises CrontabError, and leaves nothing behind, where the table is not
    `before` any more or cannot be written. Where it was written, but the disk may not have it, the error says so.
    """
    real = os.path.realpath(path)
    directory, name = os.path.split(real)
    new, copy = os.path.join(directory, f".{name}.{os.getpid()}.runguard~"), ""
    try:
        found = os.stat(real)
        if found.st_nlink > 1:
            raise CrontabError(f"{path}: the file has {found.st_nlink} names (hard links); nothing was written")
        copy = _create(os.path.join(directory, f"{name}.{stamp}"), before, found, "~")
        _write(new, after, found)
        if read(path) != before or os.path.realpath(path) != real:
            raise _changed(path)
        os.rename(new, real)
    except OSError as error:
        _forget(new, copy)
        why = f"{error.filename or path}: {error.strerror}; nothing was written"
        raise CrontabError(why, _CANNOT_WRITE) from error
    except CrontabError:
        _forget(new, copy)
        raise
    except BaseException:  # Ctrl-C
        if os.path.lexists(new):  # else it may be in its place already
            _forget(new, copy)
        raise
    try:
        private.sync(directory)
    except OSError as error:
        why = f"{path}: written, but perhaps not down to the disk: {error.strerror}; as it was: {copy}"
        raise CrontabError(why, _CANNOT_WRITE) from error
    return copy


def read_user(user: str | None, environ: Mapping[str, str]) -> bytes:
    """Return a user's table, None for our own, as `crontab -l` prints it. Raises CrontabError."""
    return _crontab(user, ["-l"], environ)


def replace_user(
    user: str | None, before: bytes, after: bytes, kept: str, stamp: str, environ: Mapping[str, str]
) -> str:
    """Install a user's table through `crontab`, and return the path of the copy that was kept in directory `kept`.

    Raises CrontabError where the table is not `before` any more, or crontab does not take the new one.
    """
    label = label_of(user)
    if read_user(user, environ) != before:
        raise _changed(label)
    try:
        os.makedirs(kept, mode=0o700, exist_ok=True)
        copy = _create(os.path.join(kept, f"{user or 'own'}.{stamp}"), before, None, "")
    except OSError as error:
        why = f"{error.filename or kept}: {error.strerror}; nothing was written"
        raise CrontabError(why, _CANNOT_WRITE) from error
    try:
        _crontab(user, ["-"], environ, after)
    except CrontabError:
        _forget(copy)
        raise
    if read_user(user, environ) != after:
        raise CrontabError(f"{label}: crontab has not taken it as it was given; before, it was {copy}", _CANNOT_WRITE)
    return copy


def label_of(user: str | None) -> str:
    """Return how messages call a user's table."""
    return f"crontab of {user}" if user is not None else "your crontab"


def place_of(path: str) -> Place | None:
    """Return where a system table lies, or None for a file elsewhere, which no daemon reads.

    A link is where it stands, or where it leads to. It has to be root's as well.
    """
    for whole in (os.path.abspath(path), os.path.realpath(path)):
        directory, name = os.path.split(whole)
        in_directory = os.path.basename(directory) == SYSTEM_DIRECTORY
        if not in_directory and whole != SYSTEM_TABLE:
            continue
        try:
            found, link = os.stat(whole), os.lstat(whole)
        except OSError as error:
            raise CrontabError(f"{path}: {error.strerror}") from error
        return Place(name, in_directory, found.st_mode, found.st_uid or link.st_uid, found.st_nlink)
    return None


def _crontab(user: str | None, arguments: list[str], environ: Mapping[str, str], data: bytes = b"") -> bytes:
    path = environ.get("PATH") or os.defpath
    program = shutil.which("crontab", path=path)
    if program is None:
        raise CrontabError(f"the program crontab is not in PATH ({path})")
    whose = ["-u", user] if user is not None else []
    kept = {name: environ[name] for name in ("HOME", "LOGNAME", "USER") if name in environ}
    argv = [program, *whose, *arguments]
    try:
        done = programs.run(argv, {**kept, "PATH": path, "LC_ALL": "C"}, given=data, patience_s=_PATIENCE_S)
    except (OSError, TimeoutError) as error:
        raise CrontabError(f"{label_of(user)}: {program}: {error}") from error
    if done.status:
        said = " ".join(done.err.decode("utf-8", "surrogateescape").split()) or f"exit status {done.status}"
        raise CrontabError(f"{label_of(user)}: {said}")
    return done.out


def _create(path: str, data: bytes, like: os.stat_result | None, end: str) -> str:
    """Write a new file beside others of that name, and return its path."""
    number = 1
    while True:
        found = f"{path}{end}" if number == 1 else f"{path}.{number}{end}"
        try:
            _write(found, data, like)
            return found
        except FileExistsError:
            number += 1


def _write(path: str, data: bytes, like: os.stat_result | None) -> None:
    """Write a file that must not exist yet, with the mode and owner of another, down to the disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            if like is not None:
                if (like.st_uid, like.st_gid) != (os.fstat(fd).st_uid, os.fstat(fd).st_gid):
                    os.fchown(fd, like.st_uid, like.st_gid)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
            file.write(data)
            file.flush()
            os.fsync(fd)
    except BaseException as error:
        os.unlink(path)
        if isinstance(error, OSError) and not isinstance(error.filename, str):
            error.filename = path
        raise


def _forget(*paths: str) -> None:
    for path in paths:
        if path and os.path.lexists(path):
            os.unlink(path)


def _changed(label: str) -> CrontabError:
    return CrontabError(f"{label}: it was changed meanwhile; nothing was written", _CHANGED)
