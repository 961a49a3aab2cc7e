"""Prometheus' own programs, which read what runguard writes: `tests/run` unpacks Debian's packages beside the tests.

They are unpacked and not installed: their packages would start daemons that listen on every address.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from shell import wait_until

UNPACKED = os.path.join(sys.prefix, "debian", "usr", "bin")


def needs(name: str) -> pytest.MarkDecorator:
    """Return the mark of tests that need a program."""
    return pytest.mark.skipif(program(name) is None, reason=f"needs {name}; ./tests/run unpacks it")


def program(name: str) -> str | None:
    """Return the path of a program, or None."""
    return shutil.which(name, path=f"{UNPACKED}:{os.environ.get('PATH', os.defpath)}")


@contextmanager
def daemon(name: str, *arguments: str) -> Iterator[str]:
    """Start a program that serves HTTP on a free port of loopback, and give its URL once it answers; end it."""
    path = program(name)
    assert path is not None
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [path, f"--web.listen-address=127.0.0.1:{port}", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as it:
        try:
            wait_until(lambda: it.poll() is None and _listens(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            it.kill()


def get(url: str) -> str:
    """Return what a URL answers."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
