"""The command's process: found and started as the shell would have done, with its output in pipes of ours."""

from __future__ import annotations

import errno
import os
import stat
import time
from _signal import (  # type: ignore[import-not-found]
    SIG_DFL,
    SIG_IGN,
    SIG_SETMASK,
    SIGCHLD,
    SIGPIPE,
    SIGTSTP,
    SIGXFSZ,
    pthread_sigmask,
    set_wakeup_fd,
    signal,
    valid_signals,
)

from runguard.errors import SpawnError
from runguard.guard import terminal
from runguard.guard.descriptors import high_fd as high_fd
from runguard.guard.descriptors import open_missing_stdio as open_missing_stdio
from runguard.guard.signals import FORWARDED
from runguard.guard.stragglers import Tree, adopt
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runguard.guard.signals import Signals

SHELL = "/bin/sh"
DEFAULT_PATH = "/bin:/usr/bin"  # what execvp takes where PATH is unset
STDOUT, STDERR = 1, 2
_DEFAULTED = (SIGPIPE, SIGXFSZ)  # Python ignores them at its start

_IN_TEXT = b"\a\b\t\v\f\r\x1b"  # control characters that a script's line may have

_NOT_FOUND = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)  # 127, as dash has it
_EXHAUSTED = (errno.E2BIG, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)  # 125: not the program's fault

_LIMITS = {  # said in words that tell what to raise
    errno.EMFILE: "too many open files (the limit is ulimit -n)",
    errno.ENFILE: "too many open files on this machine (the limit is sysctl fs.file-max)",
    errno.EAGAIN: "too many processes (the limit is ulimit -u, or pids.max of the control group)",
    errno.ENOMEM: "no memory (the limit is ulimit -v, or the machine's)",
}


class Plan(NamedTuple):
    """How a command is to be run. `argv` is the one string for `/bin/sh -c` where `shell` is true."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    shell: bool = False
    inherit: tuple[int, ...] = ()  # descriptors that the command inherits under their numbers: lock, run file
    timeout_s: float | None = None
    kill_after_s: float = 10.0  # from TERM (or a stop signal) to KILL
    output: str = "always"  # always | on-failure | never: what reaches our own stdout and stderr
    tries_left: bool = False  # a failure is not the last word: `on-failure` keeps quiet about it
    spool_dir: str = "/tmp"  # where `on-failure` keeps the output until the end
    stragglers: str = "leave"  # leave | wait | kill: what the command leaves behind
    drain_s: float = 1.5  # how long what others still write to the pipes is read after the end
    stall_s: float = 10.0  # how long, after the end, our reader may take nothing before we give it up


class Child(NamedTuple):
    """A command that was started: leader of the process group `pid`."""

    pid: int
    program: str  # the file that was executed
    pipes: tuple[tuple[int, int], ...]  # (stream, read end): stdout is 1, stderr 2; one pipe where merged
    merged: bool  # our stdout and stderr are one file, so the command's are one pipe
    started_s: float  # monotonic
    loan: terminal.Loan | None  # the terminal it has in its foreground, or may come to have
    tree: Tree  # what descends from it


def spawn(plan: Plan, signals: Signals) -> Child:
    """Start the command: argv, environment, directory and stdin untouched, stdout and stderr in pipes.

    It leads a session of its own, or, from the foreground of a terminal, a foreground group of its own, or, from the
    background of the terminal that is its stdin, a background group.

    Raises SpawnError: 127 not found, 126 not executable, 125 where the kernel had no room.
    """
    argv = (SHELL, "-c", *plan.argv) if plan.shell else plan.argv
    merged = _same_file(STDOUT, STDERR)
    reading: list[tuple[int, int]] = []
    writing: list[int] = []
    try:
        for stream in (STDOUT,) if merged else (STDOUT, STDERR):
            read_fd, write_fd = os.pipe()
            reading.append((stream, high_fd(read_fd)))
            writing.append(high_fd(write_fd))
        start = _Start(plan, signals, (writing[0], writing[-1]), *_standing())
        for fd in plan.inherit:
            os.set_inheritable(fd, True)
        signals.at_child = None  # the command's end is told by wait4
        kin = adopt()
        started_s = time.monotonic()
        pid, program = _first_that_starts(start, argv)
    except BaseException as error:
        for _, fd in reading:
            os.close(fd)
        if isinstance(error, OSError | ValueError | MemoryError):
            raise _refused(argv[0], error) from error
        raise
    finally:
        for fd in plan.inherit:
            os.set_inheritable(fd, False)
        for fd in writing:
            os.close(fd)
    loan = terminal.Loan(pid, lent=start.foreground) if start.foreground or start.background else None
    return Child(pid, program, tuple(reading), merged, started_s, loan, Tree(pid, kin, plan.environ))


def find_program(name: str, path: str | None) -> str:
    """Return the file that `name` runs: itself where it has a slash, else the first executable in `path`.

    `path` is the command's PATH, None where it has none; an empty element is the current directory.

    Raises SpawnError: 127 where there is none, 126 where there are only files that may not be executed.
    """
    for candidate in _candidates(name, path):
        return candidate
    raise AssertionError("_candidates yields or raises")


class _Start(NamedTuple):
    """What every attempt to start a file has in common."""

    plan: Plan
    signals: Signals
    output_fds: tuple[int, int]
    foreground: bool  # of our terminal, and the command is to be there
    background: bool  # of our terminal: the command is to be there too, and to stop where it reads


def _standing() -> tuple[bool, bool]:
    foreground = terminal.in_foreground()
    return foreground, not foreground and terminal.in_background()


def _first_that_starts(start: _Start, argv: tuple[str, ...]) -> tuple[int, str]:
    """Return (pid, program). Go on along PATH where a file cannot be executed after all, as execvp does."""
    denied: tuple[str, OSError] | None = None
    try:
        for program in _candidates(argv[0], start.plan.environ.get("PATH")):
            try:
                return _start(start, program, argv), program
            except OSError as error:
                denied = denied or (program, error)
                if error.errno not in (errno.EACCES, errno.ENOENT):
                    break
    except SpawnError:
        if denied is None:
            raise
    assert denied is not None
    raise _refused(*denied) from denied[1]


def _start(start: _Start, program: str, argv: tuple[str, ...]) -> int:
    # posix_spawn cannot set the foreground group, nor ignore a signal for the command alone.
    if start.foreground or start.background or SIGCHLD in start.signals.ignored:
        run = _fork
    else:
        run = _posix_spawn
    try:
        return run(start, program, argv)
    except OSError as error:
        if error.errno != errno.ENOEXEC or not _is_script(program):
            raise
        return run(start, SHELL, (SHELL, program, *argv[1:]))  # no `#!` line: a shell would run it itself


def _posix_spawn(start: _Start, program: str, argv: tuple[str, ...]) -> int:
    return os.posix_spawn(
        program,
        argv,
        start.plan.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, start.output_fds[0], 1), (os.POSIX_SPAWN_DUP2, start.output_fds[1], 2)],
        setsid=True,
        setsigdef=_DEFAULTED,
        setsigmask=start.signals.mask,
    )


def _fork(start: _Start, program: str, argv: tuple[str, ...]) -> int:
    """Do what posix_spawn does, and what it cannot."""
    read_fd, write_fd = os.pipe()
    pid = -1
    # Until the command has its own dispositions, a signal to it must not run our handlers.
    before = pthread_sigmask(SIG_SETMASK, valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _become(start, program, argv, write_fd)
    finally:
        pthread_sigmask(SIG_SETMASK, before)
        os.close(write_fd)
        if pid < 0:
            os.close(read_fd)
    failed = os.read(read_fd, 16)  # at its end when the command runs
    os.close(read_fd)
    if failed:
        os.waitpid(pid, 0)
        if start.foreground:
            loan = terminal.Loan(pid)
            loan.end()
        number = int(failed)
        raise OSError(number, os.strerror(number), program)
    return pid


def _become(start: _Start, program: str, argv: tuple[str, ...], report_fd: int) -> None:
    """Turn this forked child into the command; on failure write the errno to `report_fd`. Never returns."""
    try:
        set_wakeup_fd(-1)
        if start.foreground or start.background:
            os.setpgid(0, 0)
        else:
            os.setsid()
        if start.foreground:
            os.tcsetpgrp(0, os.getpid())  # SIGTTOU is blocked
        for number in (*_DEFAULTED, *FORWARDED, SIGTSTP):
            if number not in start.signals.ignored:
                signal(number, SIG_DFL)
        if SIGCHLD not in start.signals.ignored:
            signal(SIGCHLD, SIG_DFL)
        else:
            signal(SIGCHLD, SIG_IGN)
        os.dup2(start.output_fds[0], 1)
        os.dup2(start.output_fds[1], 2)
        pthread_sigmask(SIG_SETMASK, start.signals.mask)
        os.execve(program, argv, start.plan.environ)
    except (OSError, ValueError) as error:
        os.write(report_fd, str(getattr(error, "errno", errno.EINVAL)).encode())
    finally:
        os._exit(127)


def _candidates(name: str, path: str | None) -> Iterator[str]:
    """Yield the executable files that `name` may mean, in order; raise SpawnError where there is none (left)."""
    if "/" in name:
        if (why := _unusable(name)) is not None:
            raise _refused(name, why)
        yield name
        return
    searched = DEFAULT_PATH if path is None else path
    denied: tuple[str, OSError] | None = None
    for directory in searched.split(":") if name else ():
        candidate = f"{directory or '.'}/{name}"
        why = _unusable(candidate)
        if why is None:
            yield candidate
        elif why.errno not in (errno.ENOENT, errno.ENOTDIR):
            denied = denied or (candidate, why)
    if denied:
        raise _refused(*denied)
    raise SpawnError(f"cannot run {name!r}: not found; PATH is {searched!r}", 127)


def _unusable(path: str) -> OSError | None:
    try:
        found = os.stat(path)
    except OSError as error:
        return error
    except ValueError:  # a NUL, which no argument from outside can have
        return OSError(errno.ENOENT, "not a file name")
    if stat.S_ISDIR(found.st_mode):
        return OSError(errno.EISDIR, "it is a directory")
    if not os.access(path, os.X_OK, effective_ids=True):
        return OSError(errno.EACCES, "permission denied" if found.st_mode & 0o111 else "it is not executable")
    return None


def _is_script(path: str) -> bool:
    """Return whether `path` may be a script without a `#!` line: its first line is text, and no program's mark."""
    line = _first_line(path)
    return not line.startswith(b"\x7fELF") and not any(byte < 32 and byte not in _IN_TEXT for byte in line)


def _first_line(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.read(256) or b"").partition(b"\n")[0]
    except OSError:
        return b""


def _refused(program: str, error: OSError | ValueError | MemoryError) -> SpawnError:
    """Return the one-line error that says why `program` could not be started."""
    number = error.errno if isinstance(error, OSError) else errno.EINVAL
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if number in _EXHAUSTED or not isinstance(error, OSError):
        return SpawnError(f"cannot start {program!r}: {_LIMITS.get(number or 0, why)}", 125)
    line = _first_line(program) if number in (errno.ENOENT, errno.EACCES) else b""
    if line.startswith(b"#!"):
        interpreter = line[2:].strip().decode("utf-8", "backslashreplace")
        why = f"its interpreter {interpreter!r}: {why}"
    if number == errno.ENOEXEC:
        why = "it is no program of this machine, and no script"
    return SpawnError(f"cannot run {program!r}: {why}", 127 if number in _NOT_FOUND else 126)


def _same_file(left: int, right: int) -> bool:
    a, b = os.fstat(left), os.fstat(right)
    return (a.st_dev, a.st_ino, a.st_rdev) == (b.st_dev, b.st_ino, b.st_rdev)
