"""Monitors on loopback: one that behaves as Healthchecks does, and one that misbehaves as told.

Both are real HTTP servers on a port of their own, and record every request.

    with Healthchecks() as monitor:
        url = monitor.add("0b1cfa3e-…")     # http://127.0.0.1:PORT/ping/0b1cfa3e-…
        …
        assert [ping.path for ping in monitor.requests] == […]

    with Misbehaving([reset, answer(503), answer(200, b"OK")]) as monitor:
        …                                   # one step per connection; the last one repeats
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from healthchecks import Check

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Received(NamedTuple):
    """One request as it came; header names are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at_s: float  # monotonic


class Receiver:
    """What both monitors share: a URL, and the requests so far."""

    scheme = "http"
    host = "127.0.0.1"
    port = 0

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self._changed = threading.Condition()

    def url(self, path: str) -> str:
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def record(self, request: Received) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def wait_for(self, count: int, timeout_s: float = 10.0) -> list[Received]:
        """Return the requests once there are `count`; fail if they do not come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s), self.requests
            return list(self.requests)


class Healthchecks(Receiver):
    """A self-hosted Healthchecks: `/ping/<uuid>` and `/ping/<key>/<slug>`, each with /start, /fail, /log, /<0-255>.

    `filters_bodies` answers 500 to a body that is not UTF-8, as a check with keyword filters does.
    """

    def __init__(
        self, *, body_limit: int | None = 10_000, tls: ssl.SSLContext | None = None, filters_bodies: bool = False
    ) -> None:
        super().__init__()
        self.checks: dict[str, Check] = {}
        self.outages = 0  # so many requests are answered 503 and not heard
        self._ahead_s = 0.0
        self.body_limit = body_limit
        self.filters_bodies = filters_bodies
        self.scheme = "https" if tls else "http"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if tls:
            # The handshake belongs into the connection's thread, not into accept().
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
            self.host = "localhost"
        self.port = self._server.server_address[1]

    def __enter__(self) -> Healthchecks:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, name: str, **configured: Any) -> str:
        """Add a check named by a UUID or by `key/slug` and return its URL; keywords are those of Check."""
        self.checks[name] = Check(lambda: time.time() + self._ahead_s, **configured)
        return self.url(f"/ping/{name}")

    def pass_time(self, span_s: float) -> None:
        """Let the monitor's clock go on by so much."""
        self._ahead_s += span_s

    def reply(self, request: Received) -> tuple[int, bytes]:
        """Return status and body of the answer, and change the check."""
        if request.method not in ("GET", "POST", "HEAD"):
            return 405, b""
        if "transfer-encoding" in request.headers:
            return 411, b"length required"
        parts = request.path.removeprefix("/ping/").split("/")
        name, rest = (parts[0], parts[1:]) if UUID.fullmatch(parts[0]) else ("/".join(parts[:2]), parts[2:])
        action = rest[0] if rest else ""
        if not request.path.startswith("/ping/") or len(rest) > 1 or not re.fullmatch(r"start|fail|log|\d*", action):
            return 404, b"not found"
        if action.isdigit() and int(action) > 255:
            return 400, b"invalid url format"
        rid = request.query.get("rid")
        if rid is not None and not UUID.fullmatch(rid):
            return 400, b"invalid uuid format"
        status = 200
        if name not in self.checks:
            if UUID.fullmatch(name) or request.query.get("create") != "1":
                return 404, b"not found"
            self.add(name)
            status = 201
        if self.filters_bodies:
            try:
                request.body.decode()
            except UnicodeDecodeError:
                return 500, b"server error"
        limit = len(request.body) if self.body_limit is None else self.body_limit
        self.checks[name].ping(action, rid, request.body[:limit])
        return status, b"OK" if status == 200 else b"Created"


def _handler(receiver: Healthchecks) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = _received(self.command, self.path, list(self.headers.items()), body)
            receiver.record(request)
            down, receiver.outages = receiver.outages > 0, max(receiver.outages - 1, 0)
            status, answer = (503, b"") if down else receiver.reply(request)
            self.send_response(status)
            if down:
                self.send_header("Retry-After", "3600")  # so that one try is all
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(answer)))
            if receiver.body_limit is not None:
                self.send_header("Ping-Body-Limit", str(receiver.body_limit))
            if status == 411:
                self.close_connection = True
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_POST = do_HEAD = do_PUT = _any

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # a client that does not like our certificate
                super().handle()

    return Handler


Step = Callable[[socket.socket, threading.Event], None]


class Misbehaving(Receiver):
    """A server that does one of `steps` per connection, after it has read the request; the last one repeats.

    `look` is called whenever somebody connects, before anything else; what it returns is kept in `looks`.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        tls: ssl.SSLContext | None = None,
        look: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self.looks: list[object] = []
        self._look = look
        self._tls = tls
        if tls:
            self.scheme, self.host = "https", "localhost"
        self._steps = list(steps)
        self._taken = 0
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Misbehaving:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.looks.append(self._look())
            step = self._steps[min(self._taken, len(self._steps) - 1)]
            self._taken += 1
            threading.Thread(target=self._serve, args=(connection, step), daemon=True).start()

    def _serve(self, connection: socket.socket, step: Step) -> None:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, ValueError):
            stack.enter_context(connection)
            connection.settimeout(10)
            if self._tls:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            self.record(_read(connection))
            step(connection, self._over)


def answer(status: int, body: bytes = b"", **headers: str) -> Step:
    """Answer properly; `Retry_After="1"` is a header."""
    head = [f"HTTP/1.1 {status} Any", f"Content-Length: {len(body)}", "Connection: close"]
    head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    def step(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    return step


def hang(connection: socket.socket, over: threading.Event) -> None:
    """Say nothing, and keep the connection."""
    over.wait(60)


def drip(connection: socket.socket, over: threading.Event) -> None:
    """Answer with one byte a second."""
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK":
        connection.sendall(bytes([byte]))
        if over.wait(1):
            return


def reset(connection: socket.socket, over: threading.Event) -> None:
    """Close with a RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def close(connection: socket.socket, over: threading.Event) -> None:
    """Close without a word."""


def garbage(connection: socket.socket, over: threading.Event) -> None:
    """Answer with something that is no HTTP."""
    connection.sendall(b"\x00\xff\x16\x03\x01 what?\r\n\r\n")


def endless(connection: socket.socket, over: threading.Event) -> None:
    """Answer 200 with a body that never ends."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nOK")
    while not over.is_set():
        connection.sendall(b"x" * 65_536)


def _read(connection: socket.socket) -> Received:
    """Read one request whose body has a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = list(_split_headers(lines))
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    while len(body) < length:
        body += _more(connection)
    return _received(method, target, headers, body)


def _more(connection: socket.socket) -> bytes:
    chunk = connection.recv(65_536)
    if not chunk:
        raise ValueError("the client is gone")
    return chunk


def _split_headers(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition(":")
        yield name, value.strip()


def _received(method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> Received:
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    lowered = {name.lower(): value for name, value in headers}
    return Received(method, parts.path, query, lowered, body, time.monotonic())
