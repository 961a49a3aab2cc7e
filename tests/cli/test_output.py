"""What reaches a terminal, a pipe, and a stdout that cannot be written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runguard.cli.output import spelled

Entry = Callable[..., tuple[str, str, dict[str, Any]]]
ALL = ("history", "--since", "2026-01-01")


@pytest.fixture
def recorded(shell: Any, started: Entry, finished: Entry) -> Any:
    shell.write(started(1), finished(1, "failed", exit_status=3, why="a long reason " * 20))
    return shell


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_table_on_a_terminal_has_colour(recorded: Any) -> None:
    assert "\x1b[1;31mfailed" in recorded.on_terminal(*ALL, columns=200)


def test_no_color_is_heeded(recorded: Any) -> None:
    assert "\x1b[1;31m" not in recorded.on_terminal(*ALL, columns=200, NO_COLOR="1")


@pytest.mark.parametrize("columns", [200, 100, 60])
def test_a_table_on_a_terminal_fits_its_width(recorded: Any, columns: int) -> None:
    lines = without_colour(recorded.on_terminal(*ALL, columns=columns)).splitlines()
    assert len(lines) == 2
    assert max(len(line) for line in lines) <= columns


def test_hostile_text_does_not_reach_a_terminal(shell: Any, started: Entry, finished: Entry) -> None:
    shell.write(started(1), finished(1, "failed", why="\x1b]52;c;eA==\x07[bold]\u202e"))
    for form in ("table", "csv", "json", "jsonl"):
        seen = shell.on_terminal(*ALL, "--format", form, columns=250)
        assert "\x1b]" not in seen
        assert "\u202e" not in seen
        assert "\x07" not in seen
    assert r"\x1b]52;c;eA==\x07[bold]\u202e" in shell.on_terminal(*ALL, columns=250)
    assert r"\x1b]52;c;eA==\x07[bold]\u202e" in shell.on_terminal("show", "1", columns=250)


def test_a_reader_that_goes_away_is_no_fault(recorded: Any, started: Entry, finished: Entry) -> None:
    recorded.write(*(entry for n in range(2, 2000) for entry in (started(n), finished(n))))
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "runguard", *ALL, "--json"]
    process = subprocess.Popen(command, env=recorded.environ, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 0


def test_a_full_disk_behind_stdout_is_told(recorded: Any) -> None:
    with Path("/dev/full").open("w") as full:
        done = recorded(*ALL, stdout=full)
    assert done.stderr == "runguard: stdout cannot be written: No space left on device\n"
    assert done.returncode == 74


def test_a_closed_stdout_is_no_crash(recorded: Any) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "runguard", *ALL]
    done = subprocess.run(command, env=recorded.environ, capture_output=True, timeout=60, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_closed_standard_streams_are_no_crash(recorded: Any) -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "runguard", *ALL]
    assert subprocess.run(command, env=recorded.environ, timeout=60).returncode == 0


def test_an_ascii_locale_is_no_crash(recorded: Any, started: Entry) -> None:
    recorded.write(started(2, window=None, argv=["é"], reason="é"))
    done = recorded("show", "2", environ={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert r"trigger       schedule: \xe9" in done.stdout


def test_the_output_of_commands_comes_between_states_of_a_progress_bar(shell: Any) -> None:
    code = "from runguard.cli.output import progress\nwith progress('letters', 2) as advance:\n"
    code += " for n in 1, 2: print(f'output {n}', flush=True); advance()"
    seen = without_colour(shell.on_terminal(command=[sys.executable, "-c", code])).splitlines()
    assert [line[:8].rstrip() for line in seen] == ["output 1", "letters", "output 2", "letters"]
    assert [line.split()[2] for line in seen[1::2]] == ["1/2", "2/2"]


def test_json_spells_what_strict_readers_refuse() -> None:
    assert spelled({"a\udcff": ["\udc80é", None, 1.5]}) == r'{"a\\xff": ["\\x80\u00e9", null, 1.5]}'
    assert spelled("\U0001f600") == r'"\ud83d\ude00"'
