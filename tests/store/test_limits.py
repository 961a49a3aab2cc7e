"""No descriptor is left: said as a fault of the store, at whatever step it comes."""

import subprocess
import sys

import pytest

# Does each thing anew in a child of its own, for every limit; prints the outcome.
PROBE = """
import os, resource, sys
from runguard.errors import RunguardError
from runguard.store.journal import Journal
from runguard.store.lines import Author
from runguard.store.sqlite import open_reader, open_store
author = Author("alpha", {}, "0")
state, thing = sys.argv[1:]
path, witness = state + "/db/runguard.sqlite", state + "/witness"
run = {"run_id": "r", "number": None, "job": "j", "window": None, "attempt": 1, "trigger": "schedule"}
def store():
    return open_store(path, author=author, create=True, witness_directory=witness)
def write():
    with store().write() as transaction:
        transaction.append("run.start", 0, {**run, "number": transaction.store.next_number()})
        raise KeyError  # undone
def ask():
    open_reader(path, witness_directory=witness).head()
def reconcile():
    with store().write() as transaction:
        Journal(state, author).reconcile(transaction)
        raise KeyError
def note():
    Journal(state, author).write("run.start", 0, run)
def prepare():
    Journal(state, author).prepare()
for limit in range(3, 16):
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        said = "done"
        try:
            globals()[thing]()
        except KeyError:
            pass
        except RunguardError as error:
            said = f"{type(error).__name__}: {error}"
        except BaseException as error:
            said = f"ESCAPED {type(error).__name__}: {error}"
        os.write(1, f"{said}\\n".encode())
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture
def probe(place, start, child_environment):
    def run(thing):
        command = [sys.executable, "-c", PROBE, str(place.directory), thing]
        done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("state", ["in order", "missing", "corrupt", "lost"])
@pytest.mark.parametrize("thing", ["write", "ask", "reconcile"])
def test_without_a_descriptor_the_store_fails_as_a_store_and_names_the_limit(place, start, probe, state, thing):
    place.directory.joinpath("journal").mkdir(0o700)
    place.directory.joinpath("journal", "x.jsonl").write_text("{}\n")
    if state != "missing":
        place.write(start(1))
    if state == "corrupt":
        place.path.write_bytes(b"\xa5" * 8192)
    if state == "lost":
        place.path.write_bytes(b"")
    said = probe(thing)
    assert len(said) == 13
    assert {line.split(":")[0] for line in said} <= {"done", "StoreError", "NothingRecordedError"}
    assert "Too many open files (ulimit -n allows 3)" in said[0]


def test_without_a_descriptor_there_is_no_trace_and_the_limit_is_named(place, probe):
    said = probe("note")
    assert {line.split(":")[0] for line in said} == {"done", "NoTraceError"}
    assert "Too many open files (ulimit -n allows 3)" in said[0]


def test_without_a_descriptor_the_journal_is_prepared_without_its_reserve(probe):
    assert set(probe("prepare")) == {"done"}
