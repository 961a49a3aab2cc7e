"""Entries of the ledger for the tests of commands."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from entries import finished as finished
from entries import refused as refused
from entries import started as started
from shell import Shell


@pytest.fixture
def nobodys() -> Iterator[Shell]:
    """A directory of nobody's, where we work as nobody; pytest's own are closed to that account."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    directory = Path(tempfile.mkdtemp())
    shell = Shell(directory)
    shell.environ["RUNGUARD_CONFIG"] = "/dev/null"
    shell.prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    os.chown(directory, 65534, 65534)
    if shell("--version").returncode != 0:
        pytest.skip("another user may not read this interpreter or the sources")
    yield shell
    shutil.rmtree(directory)
