"""`runguard run` as a person types it, in a shell with job control on a real pseudo-terminal."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator

import pytest

from keyboard import Terminal
from shell import Shell, wait_until

RUN = f"{shlex.quote(sys.executable)} -m runguard run -j x"


@pytest.fixture
def terminal(shell: Shell) -> Iterator[Terminal]:
    opened = Terminal(shell.directory, shell.environ)
    yield opened
    opened.close()


def typed(script: str, after: str = "") -> str:
    return f"{RUN} -- bash -c {shlex.quote(script)} {after}; echo status=$?"


def test_a_job_that_asks_on_the_terminal_gets_its_answer_and_the_record_its_output(
    terminal: Terminal, shell: Shell
) -> None:
    terminal.type(typed("read -s -p 'password: ' word </dev/tty 2>/dev/tty; echo ${#word} letters; exit 3"))
    terminal.expect("password: ")
    terminal.type("swordfish")
    terminal.expect("9 letters")
    terminal.expect("status=3")
    assert shell("show", "1", "--output").stdout == "9 letters\n"
    assert shell.json("history")[0]["outcome"] == "failed"


def test_ctrl_c_reaches_the_job_exactly_once(terminal: Terminal, shell: Shell) -> None:
    terminal.type(typed("trap 'n=$((n+1))' INT; echo up; until [ $n ]; do sleep 0.05; done; sleep 0.3; exit $((n+40))"))
    terminal.expect("up")
    terminal.key(b"\x03")
    terminal.expect("status=41")
    assert shell.json("history")[0]["outcome"] == "failed"  # nobody told us to stop


def test_ctrl_c_ends_a_job_that_does_not_care_and_the_record_says_so(terminal: Terminal, shell: Shell) -> None:
    terminal.type(typed("echo up; sleep 60"))
    terminal.expect("up")
    terminal.key(b"\x03")
    terminal.expect("status=130")
    [run] = shell.json("history")
    assert (run["outcome"], run["signal"], run["returned"]) == ("killed", signal.SIGINT, 130)
    assert shell.processes("sleep 60") == []


def test_ctrl_z_stops_both_and_fg_continues_both(terminal: Terminal, shell: Shell) -> None:
    terminal.type(typed("echo $PPID $$ >pids; echo up; read line; echo got $line; exit 5"))
    terminal.expect("up")
    terminal.key(b"\x1a")
    terminal.expect("Stopped")
    pids = (shell.directory / "pids").read_text().split()
    wait_until(lambda: [state(pid) for pid in pids] == ["T", "T"])
    assert shell.json("history")[0]["outcome"] == "running"
    terminal.type("fg; echo fg=$?")
    terminal.expect("runguard run")  # bash says what it continues
    terminal.type("line")
    terminal.expect("got line")
    terminal.expect("fg=5")
    [run] = shell.json("history")
    assert (run["outcome"], run["exit_status"]) == ("failed", 5)


def test_ctrl_z_at_a_pipeline_stops_the_job_too(terminal: Terminal, shell: Shell) -> None:
    script = "echo $PPID $$ >pids; echo up; until [ -e go ]; do sleep 0.05; done; echo gone; exit 5"
    terminal.type(typed(script, "| cat; echo of ${PIPESTATUS[0]}"))
    terminal.expect("up")
    terminal.key(b"\x1a")
    terminal.expect("Stopped")
    pids = (shell.directory / "pids").read_text().split()
    wait_until(lambda: [state(pid) for pid in pids] == ["T", "T"])
    (shell.directory / "go").touch()
    terminal.type("fg; echo fg=$?")
    terminal.expect("gone")
    terminal.expect("fg=0")  # of `cat`
    assert shell.json("history")[0]["exit_status"] == 5


def test_the_record_of_a_job_in_a_pipeline_is_complete_although_its_reader_leaves(
    terminal: Terminal, shell: Shell
) -> None:
    terminal.type(typed("for i in $(seq 5); do echo $i 2>/dev/null; sleep 0.1; done; exit 6", "| head -1"))
    terminal.expect("1")
    terminal.expect("status=0")  # of `head`
    wait_until(lambda: shell.runs_so_far()[0]["outcome"] != "running")
    [run] = shell.json("history")
    assert (run["outcome"], run["signal"]) == ("killed", signal.SIGPIPE)  # as it would be without us
    assert shell("show", "1", "--output").stdout.startswith("1\n")
    assert "nobody read our stdout to its end; the command's was closed" in shell.json("show", "1")[0]["remarks"]


def test_a_job_in_a_pipeline_that_writes_no_more_ends_as_it_would(terminal: Terminal, shell: Shell) -> None:
    terminal.type(typed("echo one; sleep 0.3; touch end; exit 7", "| head -1; echo ${PIPESTATUS[0]}"))
    terminal.expect("one")
    terminal.expect("7")
    assert shell.json("history")[0]["exit_status"] == 7


def state(pid: str) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(") ")[2][0]
