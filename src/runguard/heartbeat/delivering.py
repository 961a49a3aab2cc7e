"""A text, handed to a command of the user's or to a URL of theirs: by a deadline, whatever becomes of it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping

from runguard.heartbeat import address, client
from runguard.heartbeat.body import Body, clean, fit
from runguard.heartbeat.event import Request

DEADLINE_S = 15.0
_FOR_TERM = 0.8  # of the deadline: then a command gets TERM, and KILL at the deadline
_LOOK_S = 0.02


def deliver(
    target: str, text: str, facts: Mapping[str, str], environ: Mapping[str, str], deadline_s: float = DEADLINE_S
) -> str:
    """Give `text` to `target` and return why that failed, or "": a clause that holds nothing of the target.

    A URL gets a POST. Anything else is a command for /bin/sh, with the text on its stdin and `facts` in its
    environment; what it prints goes to our stderr. It has to end with 0.
    """
    body = Body(clean(text.encode("utf-8", "surrogateescape")))
    if is_url(target):
        return _post(target, body, environ, deadline_s)
    try:
        return _run(target, fit(body) + b"\n", {**environ, **facts}, deadline_s)
    except OSError as error:
        return f"the command could not be started: {error.strerror}"
    except ValueError:
        return "the command could not be started: it has a NUL in it"


def is_url(target: str) -> bool:
    """Return whether a target is meant as a URL."""
    return target[:8].lower().startswith(("http://", "https://"))


def _post(url: str, body: Body, environ: Mapping[str, str], deadline_s: float) -> str:
    if why := address.unusable(url):
        return why.replace("the ping URL", "the URL")
    request = Request("POST", url, body=body)
    sending = client.launch(client.message("plain", request, deadline_s=deadline_s), environ)
    sent = client.collect(sending, deadline_s)
    return "" if sent.verdict == "accepted" else sent.detail


def _run(command: str, stdin: bytes, environ: Mapping[str, str], deadline_s: float) -> str:
    file = os.memfd_create("text")  # a pipe could be full, or closed by a command that does not read
    try:
        os.write(file, stdin)
        os.lseek(file, 0, os.SEEK_SET)
        pid = os.posix_spawn(
            "/bin/sh",
            ["/bin/sh", "-c", command],
            environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, file, 0), (os.POSIX_SPAWN_DUP2, 2, 1)],
            setsid=True,
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores them
        )
    finally:
        os.close(file)
    return _waited(pid, deadline_s)


def _waited(pid: int, deadline_s: float) -> str:
    """Wait for the command, end it and its group where it takes too long, and return why it has not succeeded."""
    began_s = time.monotonic()
    stages = [(deadline_s * _FOR_TERM, signal.SIGTERM), (deadline_s, signal.SIGKILL)]
    late = f"the command did not end within {stages[0][0]:g} s"
    try:
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            taken_s = time.monotonic() - began_s
            if stages and taken_s >= stages[0][0]:
                _signal(pid, stages.pop(0)[1])
            elif taken_s >= deadline_s + 1:
                return late  # it belongs to somebody else by now, or the kernel holds it
            time.sleep(_LOOK_S)
    except BaseException:  # Ctrl-C does not reach its session
        _signal(pid, signal.SIGKILL)
        raise
    code = os.waitstatus_to_exitcode(ended[1])
    if len(stages) < 2:
        return late
    return "" if code == 0 else f"the command ended by signal {-code}" if code < 0 else f"the command ended with {code}"


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)
