"""A monitor on loopback, in a process of its own so that it takes no time from what is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

CHECK = "/ping/00000000-0000-4000-8000-000000000000"  # the shape by which a Healthchecks server is recognised


class Receiver:
    """The monitor's process; `url` is what to ping."""

    def __enter__(self) -> Receiver:
        command = [sys.executable, "-m", "benchmarks.receiver"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(next(self.told()))}{CHECK}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate()

    def told(self) -> Iterator[str]:
        """Yield what the monitor says: its port, then the path of every request as it comes."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            yield line.strip()


class Answer(BaseHTTPRequestHandler):
    """Takes everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Read the body and answer 200."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        print(self.path, flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"OK")

    do_GET = do_POST

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    print(server.server_port, flush=True)
    server.serve_forever()
