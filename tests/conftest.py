"""Fixtures that more than one room uses."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import tmpfs
from shell import Shell

WAIT_FOR_MINUTES = ("test_changes_of_the_clock.py", "test_cron.py")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A state directory and the command line on it."""
    os.chmod(tmp_path, 0o700)
    return Shell(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with tmpfs(tmp_path / "small", "1m") as directory:
        yield directory


@pytest.fixture
def small_state(shell: Shell) -> Iterator[Path]:
    """The state directory of `shell`, on a file system of 2 MiB."""
    with tmpfs(shell.state, "2m") as directory:
        yield directory


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--long`: also the storms and sweeps."""
    parser.addoption("--long", action="store_true", help="also run the storms and sweeps")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what takes long unless it was asked for; begin with what waits for minutes while others work."""
    items.sort(key=lambda item: item.path.name not in WAIT_FOR_MINUTES)
    if not config.getoption("--long"):
        for item in items:
            if "long" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes long: ./tests/run --long"))
