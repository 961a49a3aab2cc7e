"""The command line as a process, on a state directory of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import pwd
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import runguard
from runguard.instant import from_rfc3339
from runguard.store.database import Store
from runguard.store.lines import Author
from runguard.store.sqlite import open_store

SOURCE = str(Path(runguard.__file__).parents[1])
AUTHOR = Author("alpha", {"uid": 1000, "user": "ann", "login": "ann", "sudo_user": None}, "0.1.0")


class Shell:
    """A state directory and the command line on it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self.directory = directory
        self.prefix: tuple[str, ...] = ()  # what is put before the command, to become another user
        self.state = directory / "state"
        self.config = directory / "runguard.toml"
        self.config.write_text("")
        self.environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(directory),
            "TZ": "UTC",
            "RUNGUARD_STATE_DIR": str(self.state),
            "RUNGUARD_CONFIG": str(self.config),
            "PYTHONPATH": SOURCE,
        }

    def __call__(self, *arguments: str | bytes, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `runguard` with these arguments; `environ` adds variables."""
        environ = {**self.environ, **options.pop("environ", {})}
        command = [*self.prefix, sys.executable, "-m", "runguard", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
        return subprocess.run(
            command, env=environ, cwd=self.directory, encoding="utf-8", errors="surrogateescape", timeout=60, **pipes
        )

    def json(self, *arguments: str) -> Any:
        """Return what a query says with --json."""
        done = self(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    @property
    def nothing_recorded(self) -> str:
        """The line with which a query says that there are no records here."""
        account = pwd.getpwuid(os.getuid()).pw_name
        whose = f"{self.state} (account {account}; each account has its own records)"
        return f"runguard: nothing has been recorded yet in {whose}\n"

    def entries(self, run_id: str) -> list[dict[str, Any]]:
        """Return what the ledger says of a run."""
        with self.open() as store:
            return store.entries(run_id)

    def processes(self, command: str) -> list[int]:
        """Return the living processes with this command line that were started in our directory."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
                if line == command and (entry / "cwd").resolve() == self.directory.resolve():
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
        return found

    def runs_so_far(self) -> list[dict[str, Any]]:
        """Return the runs, newest first, while others write: none where nothing has been recorded yet."""
        done = self("history", "--json")
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else []

    def write(self, *entries: tuple[str, str, dict[str, Any]]) -> None:
        """Append (kind, instant, fields) to the ledger."""
        with self.open() as store, store.write() as transaction:
            for kind, at, fields in entries:
                transaction.append(kind, from_rfc3339(at), fields)

    @contextmanager
    def open(self) -> Iterator[Store]:
        """Give the store for writing."""
        store = open_store(
            str(self.state / "db" / "runguard.sqlite"),
            author=AUTHOR,
            create=True,
            witness_directory=str(self.state / "witness"),
        )
        yield store
        store.close()

    def on_terminal(self, *arguments: str, columns: int = 80, command: list[str] | None = None, **environ: str) -> str:
        """Return what `runguard`, or a `command`, writes to a terminal of that width, with its line ends as \\n."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = command or [sys.executable, "-m", "runguard", *arguments]
        everything = {**self.environ, "TERM": "xterm-256color", **environ}
        process = subprocess.Popen(
            command, env=everything, cwd=self.directory, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:  # EIO: the last holder of the terminal has gone
            pass
        os.close(ours)
        assert process.wait(timeout=60) == 0
        return seen.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def wait_until(condition: Callable[[], bool], limit_s: float = 20.0) -> None:
    """Wait for what sends no event, such as another process's death; fail after `limit_s`."""
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.01)


# Cron in its own mount and process namespace: it sees our crontab alone, mails through our sendmail if there is one,
# and ends with everything it has started.
_PRIVATE_CRON = """
mount -t tmpfs none /run &&
mount --bind "$1/crontabs" /var/spool/cron/crontabs &&
mount --bind "$1/empty" /etc/cron.d &&
mount --bind "$1/crontab" /etc/crontab &&
mount --bind "$1/sbin" /usr/sbin &&
{ [ ! -e "$1/environment" ] || mount --bind "$1/environment" /etc/environment; } &&
{ [ ! -e "$1/locale" ] || mount --bind "$1/locale" /etc/default/locale; } &&
exec /usr/sbin/cron -f
"""


def private_cron(
    place: Path, crontab: str | bytes, environ: dict[str, str] | None = None, *, sendmail: str | None = None
) -> subprocess.Popen[bytes]:
    """Start Debian's cron on this system crontab; `place` is a directory to make. Kill it to end it all.

    Files `environment` and `locale` there are its /etc/environment and /etc/default/locale.
    `sendmail` is a script that gets the mails.
    """
    for name in ("crontabs", "empty", "sbin"):  # `empty`, if it is there already, are the files of cron.d
        (place / name).mkdir(parents=True, exist_ok=name == "empty")
    (place / "crontab").write_bytes(crontab if isinstance(crontab, bytes) else crontab.encode())
    shutil.copy2("/usr/sbin/cron", place / "sbin")
    if sendmail is not None:
        (place / "sbin" / "sendmail").write_text(sendmail)
        (place / "sbin" / "sendmail").chmod(0o755)
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _PRIVATE_CRON, "cron", str(place)]
    silent: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    return subprocess.Popen(command, env={**os.environ, **(environ or {})}, **silent)
