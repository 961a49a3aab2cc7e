"""Start the helper process that sends a heartbeat, and wait for it no longer than a deadline.

`requests` has no deadline (a server that drips a byte a second holds it for ever, and DNS is not covered at all), and
importing it would double a waiting guard's memory. So `runguard.sender` is a process that is killed when its time is
over. Nothing here raises: what goes wrong with a ping is a `Sent` too.
"""

from __future__ import annotations

import os
import select
import sys
import time
from _signal import SIGHUP, SIGINT, SIGKILL, SIGTERM  # type: ignore[import-not-found]

from runguard.children import HELPERS
from runguard.heartbeat.body import MOST_BYTES
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runguard.heartbeat.event import Request

DEADLINE_S = 15.0  # after the command's end
STOPPED_DEADLINE_S = 3.0  # once we were told to terminate
DELAYS_S = (0.5, 1.0, 2.0)
TIMEOUTS_S = (5.0, 10.0)  # of one try: to connect, and between two bytes

_RESULT_BYTES = 65_536  # far more than a helper ever says
# What the helper gets of the environment: how to reach a network and its own libraries, and none of a job's secrets.
_PASSED_ON = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONHOME",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF",
    "RES_OPTIONS", "LOCALDOMAIN",
)  # fmt: skip


class Sent(NamedTuple):
    """How the sending of one ping ended."""

    verdict: str  # accepted | undelivered | final
    status: int | None  # of the last answer
    tries: int
    detail: str  # one line that holds nothing of the URL
    elapsed_s: float
    body_limit: int | None = None  # the server's Ping-Body-Limit, for the next body
    answer: str = ""  # as much of it as was asked for; it may hold secrets


class Cut(NamedTuple):
    """How a signal shortens the wait: whenever `fd` is readable, `told` drains it and says whether to stop."""

    fd: int
    told: Callable[[], bool]


class Sending:
    """A helper under way: `fileno()` is readable when it has something to say, or has ended."""

    __slots__ = ("began", "failure", "fd", "pid", "received", "request_fd", "sent", "unsent")

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.pid: int | None = None
        self.fd: int | None = None
        self.request_fd: int | None = None
        self.unsent = b""
        self.received = b""
        self.failure = ""
        self.sent: Sent | None = None

    def fileno(self) -> int:
        """Return the descriptor to wait for, -1 once there is nothing to wait for."""
        return -1 if self.fd is None else self.fd


def message(
    style: str,
    request: Request,
    *,
    deadline_s: float = DEADLINE_S,
    body_limit: int = MOST_BYTES,
    delays_s: Sequence[float] | None = None,
    timeouts_s: tuple[float, float] | None = None,
    answer_bytes: int = 0,
    secrets: Sequence[str] = (),
) -> dict[str, object]:
    """Return what the helper is asked; `body_limit` is the lower of the setting and what the server last said.

    `deadline_s` is how long `collect` will wait. The helper ends a little earlier, with an account of its tries. Left
    out, `delays_s` and `timeouts_s` are DELAYS_S and TIMEOUTS_S. At most `answer_bytes` of the answer come back;
    `secrets`, beside those of the URL, are masked in what is said of it.
    """
    return {
        "style": style,
        "method": request.method,
        "url": request.url,
        "headers": request.headers,
        "summary": request.body.summary,
        "tail": request.body.tail,
        "omitted_bytes": request.body.omitted_bytes,
        "payload": request.payload,
        "limit": body_limit,
        "deadline_s": deadline_s - min(1.0, deadline_s / 4),
        "delays_s": DELAYS_S if delays_s is None else delays_s,
        "timeouts_s": TIMEOUTS_S if timeouts_s is None else timeouts_s,
        "answer_bytes": answer_bytes,
        "secrets": secrets,
    }


def launch(message: Mapping[str, object], environ: Mapping[str, str]) -> Sending:
    """Start the helper on `message`, in a session of its own; `environ` is ours.

    The message goes through a pipe, because argv and environment are readable to others.
    """
    sending = Sending()
    opened: list[int] = []
    try:
        import json  # the command is running, or has ended

        sending.unsent = json.dumps(message).encode()
        request_end, sending.request_fd = os.pipe2(os.O_CLOEXEC)
        opened.append(request_end)
        sending.fd, result_end = os.pipe2(os.O_CLOEXEC)
        opened.append(result_end)
        os.set_blocking(sending.request_fd, False)
        os.set_blocking(sending.fd, False)
        sending.pid = _spawn(request_end, result_end, environ)
        HELPERS.add(sending.pid)
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        sending.failure = f"the helper could not be started: {why or type(error).__name__}"
        _close(sending)
    finally:
        for fd in opened:
            os.close(fd)
    _write(sending)
    return sending


def poll(sending: Sending) -> Sent | None:
    """Return how it ended, or None while it is under way; never wait."""
    if sending.sent is None:
        _write(sending)
        if _read(sending):
            sending.sent = _ended(sending)
    return sending.sent


def collect(sending: Sending, deadline_s: float = DEADLINE_S, cut: Cut | None = None) -> Sent:
    """Wait until the helper has ended, at most `deadline_s` from now, or STOPPED_DEADLINE_S once `cut` says so.

    At the deadline the helper is killed, and the ping counts as undelivered.
    """
    until = time.monotonic() + deadline_s
    if cut is not None and cut.told():
        until, cut = min(until, time.monotonic() + STOPPED_DEADLINE_S), None
    while (sent := poll(sending)) is None:
        left_s = until - time.monotonic()
        if left_s <= 0:
            return _kill(sending)
        waiting = select.poll()
        waiting.register(sending.fileno(), select.POLLIN)
        if sending.request_fd is not None:
            waiting.register(sending.request_fd, select.POLLOUT)
        if cut is not None:
            waiting.register(cut.fd, select.POLLIN)
        ready = {fd for fd, _ in waiting.poll(left_s * 1000)}
        if cut is not None and cut.fd in ready and cut.told():
            until, cut = min(until, time.monotonic() + STOPPED_DEADLINE_S), None
    return sent


def _spawn(request_end: int, result_end: int, environ: Mapping[str, str]) -> int:
    """Start `python -m runguard.sender` with the pipes as stdin and stdout; raise OSError or ValueError."""
    if not sys.executable:
        raise FileNotFoundError(2, "the path of the Python interpreter is not known")
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_DUP2, request_end, 0),
        (os.POSIX_SPAWN_DUP2, result_end, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()]
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-m", "runguard.sender"],
        _environment(environ),
        file_actions=actions,
        setsid=True,  # a terminal's Ctrl-C is not meant for it
        # Neither is a service manager's stop: it ends by itself, and the guard kills it in time.
        setsigmask=(SIGTERM, SIGINT, SIGHUP),
    )


def _inheritable() -> list[int]:
    """Return the descriptors that the helper would inherit: locks above all, which are the command's to hold."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the one of the listing itself
    return found


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the helper's environment, in which it finds the very modules that we run on."""
    passed_on = {name: environ[name] for name in _PASSED_ON if name in environ}
    # Our own order. The first entry is where we were started (a script's directory, the current one): nothing to import
    # from, unless the package lies there.
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = [os.path.abspath(place) for place in sys.path[0 if sys.flags.safe_path else 1 :] if place]
    if home not in places:
        places.insert(0, home)
    return {**passed_on, "PYTHONPATH": os.pathsep.join(places)}


def _write(sending: Sending) -> None:
    """Hand over what the pipe takes of the message; closing it is the message's end."""
    if sending.request_fd is None:
        return
    try:
        sending.unsent = sending.unsent[os.write(sending.request_fd, sending.unsent) :]
    except BlockingIOError:
        return
    except OSError:
        sending.unsent = b""  # the helper is gone: its result says so
    if not sending.unsent:
        os.close(sending.request_fd)
        sending.request_fd = None


def _read(sending: Sending) -> bool:
    """Read what has come; return whether that was all."""
    if sending.fd is None:
        return True
    try:
        chunk = os.read(sending.fd, _RESULT_BYTES)
    except BlockingIOError:
        return False
    except OSError:
        return True
    sending.received += chunk
    return not chunk or b"\n" in chunk or len(sending.received) > _RESULT_BYTES


def _ended(sending: Sending) -> Sent:
    """Reap the helper, which has said its last, and return what it said."""
    status = _reap(sending, kill=False)
    elapsed_s = time.monotonic() - sending.began
    if sending.failure:
        return Sent("undelivered", None, 0, sending.failure, elapsed_s)
    import json

    try:
        return Sent(**{**json.loads(sending.received), "elapsed_s": elapsed_s})
    except (ValueError, TypeError):
        return Sent("undelivered", None, 0, f"the helper ended without a result{status}", elapsed_s)


def _kill(sending: Sending) -> Sent:
    _reap(sending, kill=True)
    elapsed_s = time.monotonic() - sending.began
    sending.sent = Sent("undelivered", None, 0, f"deadline: no answer after {elapsed_s:.1f} s", elapsed_s)
    return sending.sent


def _reap(sending: Sending, *, kill: bool) -> str:
    """Wait for the helper's end, after SIGKILL if `kill`; return how it ended, for a person."""
    _close(sending)
    if sending.pid is None:
        return ""
    pid, sending.pid = sending.pid, None
    try:
        # The first call tells whether the pid is still our child's; only then it is safe to send it a signal.
        ended, status = os.waitpid(pid, os.WNOHANG)
        if not ended:
            if kill:
                os.kill(pid, SIGKILL)
            _, status = os.waitpid(pid, 0)
    except OSError:
        return ""  # reaped by somebody else
    finally:
        HELPERS.discard(pid)
    code = os.waitstatus_to_exitcode(status)
    return f" (signal {-code})" if code < 0 else f" (status {code})"


def _close(sending: Sending) -> None:
    for fd in (sending.request_fd, sending.fd):
        if fd is not None:
            os.close(fd)
    sending.request_fd = sending.fd = None
