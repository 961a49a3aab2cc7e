"""Stores of the tests: real files, real entries, and other processes that write to them."""

import hashlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runguard
from runguard.instant import from_rfc3339
from runguard.store import (  # noqa: F401  # before an account changes
    faults,
    finding,
    journal,
    reconciling,
    reserve,
    statements,
)
from runguard.store.database import Store
from runguard.store.lines import Author
from runguard.store.sqlite import open_reader, open_store

AUTHOR = Author("alpha", {"uid": 0, "user": "root", "login": "ada", "sudo_user": None}, "0.1.0")
AT = from_rfc3339("2026-03-29T01:30:00Z")
NOBODY = 65534
WRITER = """
import sys, uuid
from runguard.store.lines import Author
from runguard.store.sqlite import open_store
author = Author("alpha", {"uid": 0, "user": "root", "login": "ada", "sudo_user": None}, "0.1.0")
store = open_store(sys.argv[1], author=author, create=True, witness_directory=sys.argv[2])
for _ in range(int(sys.argv[3])):
    with store.write() as transaction:
        transaction.append("run.start", 1774747800000000, {
            "run_id": str(uuid.uuid4()), "number": store.next_number(), "job": "letters", "revision": None,
            "window": None, "attempt": 1, "trigger": "schedule", "reason": None, "supersedes": None,
        })
"""


class Place:
    """A state directory with its store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "db" / "runguard.sqlite"
        self.witness = directory / "witness"

    def open(self, *, create: bool = True, wait_s: float = 5.0, mountinfo: str | None = None) -> Store:
        return open_store(
            str(self.path),
            author=AUTHOR,
            create=create,
            witness_directory=str(self.witness),
            wait_s=wait_s,
            mountinfo=mountinfo,
        )

    def reader(self) -> Any:
        return open_reader(str(self.path), witness_directory=str(self.witness), wait_s=5.0)

    def write(self, *entries: tuple[str, dict[str, Any]]) -> None:
        """Append the entries in one transaction, a second apart."""
        store = self.open()
        with store.write() as transaction:
            for second, (kind, fields) in enumerate(entries):
                transaction.append(kind, AT + second * 1_000_000, fields)
        store.close()

    def writers(self, processes: int, entries: int = 1) -> list[int]:
        """Start so many processes at once, each adding so many starts; return their exit statuses."""
        command = [sys.executable, "-c", WRITER, str(self.path), str(self.witness), str(entries)]
        running = [subprocess.Popen(command, env=_child_environment()) for _ in range(processes)]
        return [process.wait(timeout=100) for process in running]


def _child_environment() -> dict[str, str]:
    source = str(Path(runguard.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": source}


@pytest.fixture
def child_environment() -> Callable[[], dict[str, str]]:
    return _child_environment


@pytest.fixture
def place_in() -> Callable[[Path], Place]:
    return Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def open_place() -> Iterator[Place]:
    """A place below /tmp that other accounts can reach."""
    import shutil
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="rg-store-"))
    directory.chmod(0o755)
    yield Place(directory)
    shutil.rmtree(directory)


@pytest.fixture
def start() -> Callable[..., tuple[str, dict[str, Any]]]:
    """Return a maker of `run.start` entries; keywords replace fields, `key` and `due` make a window."""

    def make(number: int | None = 1, key: str = "", due: str = "2026-03-29T01:30:00Z", **fields: Any) -> Any:
        window = None
        if key:
            start = "2026-01-01T00:00:00Z"
            window = {"key": key, "start": start, "due": due, "label": "l", "nominal": "n", "zone": "Europe/London"}
        run = {
            "run_id": str(uuid.uuid4()),
            "number": number,
            "job": "letters",
            "revision": None,
            "window": window,
            "attempt": 1,
            "trigger": "schedule",
            "reason": None,
            "supersedes": None,
            "boot_id": "b00t",
            "guard_pid": 4711,
            "argv": ["/bin/true"],
        }
        return "run.start", {**run, **fields}

    return make


@pytest.fixture
def finish() -> Callable[..., tuple[str, dict[str, Any]]]:
    def make(run_id: str, outcome: str = "succeeded", **fields: Any) -> Any:
        run = {
            "run_id": run_id,
            "outcome": outcome,
            "exit_status": 0,
            "returned": 0,
            "signal": None,
            "why": None,
            "started": "2026-03-29T01:30:00.25Z",
            "finished": "2026-03-29T01:30:02Z",
            "duration_s": 1.75,
        }
        return "run.finish", {**run, **fields}

    return make


@pytest.fixture
def refused() -> Callable[..., tuple[str, dict[str, Any]]]:
    """Return a maker of `run.refused` entries for a window."""

    def make(number: int, key: str, due: str, why: str = "overlap", job: str = "letters") -> Any:
        window = {"key": key, "start": "2026-01-01T00:00:00Z", "due": due, "label": "l", "nominal": "n", "zone": "UTC"}
        run = {"run_id": str(uuid.uuid4()), "number": number, "job": job, "window": window, "why": why, "returned": 75}
        return "run.refused", {**run, "trigger": "schedule", "reason": None, "holder": None}

    return make


@pytest.fixture
def waived() -> Callable[..., tuple[str, dict[str, Any]]]:
    """Return a maker of `window.waived` entries: of one window by `key`, or of the span of dues `since`, `until`."""

    def make(**fields: Any) -> Any:
        entry = {"job": "letters", "key": None, "since": None, "until": None, "reason": "planned", "withdraw": False}
        return "window.waived", {**entry, **fields}

    return make


@pytest.fixture
def chain() -> Callable[[Path], list[dict[str, Any]]]:
    """Check a chain with nothing of ours but the format's description; return what the lines say."""

    def check(path: Path) -> list[dict[str, Any]]:
        import sqlite3

        found, prev = [], "0" * 64
        with sqlite3.connect(path) as connection:
            rows = connection.execute("SELECT seq, line FROM ledger ORDER BY seq").fetchall()
        for expected, (seq, line) in enumerate(rows, 1):
            assert isinstance(line, bytes)
            assert line.endswith(b"\n")
            assert line.count(b"\n") == 1
            entry = json.loads(line)
            assert (seq, entry["seq"], entry["prev"]) == (expected, expected, prev)
            prev = hashlib.sha256(line).hexdigest()
            found.append(entry)
        return found

    return check


@pytest.fixture
def as_nobody() -> Callable[[Callable[[], object]], str]:
    """Run a function in a child of another account and return what it returned, or its error, as text."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another account")

    def run(function: Callable[[], object]) -> str:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                said = repr(function())
            except BaseException as error:  # noqa: BLE001  # told to the parent
                said = f"{type(error).__name__}: {error}"
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)
        with open(reading, encoding="utf-8") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        return said

    if run(lambda: os.access(statements.__file__, os.R_OK)) != "True":
        pytest.skip("another account may not read the sources: the checkout lies in a private directory")
    return run
