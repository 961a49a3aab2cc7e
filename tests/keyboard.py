"""A person at a terminal: an interactive shell with job control on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from pathlib import Path

import runguard


class Terminal:
    """An interactive bash on a pseudo-terminal."""

    def __init__(self, folder: Path, environ: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            own = {"PS1": "", "PYTHONPATH": str(Path(runguard.__file__).parents[1]), "TERM": "dumb"}
            os.chdir(folder)
            environ = {**(environ or os.environ), **own}
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environ)
        self.seen = ""
        self.type("stty -echo; set +o history; bind 'set enable-bracketed-paste off'; PS1=; echo rea''dy")
        self.expect("ready")

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode() + b"\n")

    def key(self, control: bytes) -> None:
        os.write(self.fd, control)

    def expect(self, text: str) -> None:
        """Wait until `text` was shown since the last expected one."""
        end_s = time.monotonic() + 20
        while text not in self.seen:
            assert select.select([self.fd], [], [], max(0, end_s - time.monotonic()))[0], (
                f"{text!r} not in {self.seen!r}"
            )
            self.seen += os.read(self.fd, 4096).decode()
        self.seen = self.seen.partition(text)[2]

    def close(self) -> None:
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
