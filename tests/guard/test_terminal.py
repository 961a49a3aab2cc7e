"""On a terminal the command is in the foreground: prompts, Ctrl-C and Ctrl-Z are its own.

A shell with job control stands on a pseudo-terminal, as a person's would.
"""

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from keyboard import Terminal

DRIVE = str(Path(__file__).with_name("drive.py"))


class Guarding(Terminal):
    """A terminal at which guards without bookkeeping are started."""

    def guard(self, script: str, *, before: str = "", after: str = "", **options: object) -> None:
        """Type a guarded `bash -c script`."""
        given = json.dumps({"report": str(self.folder / "report.json"), **options})
        command = " ".join(shlex.quote(word) for word in (sys.executable, DRIVE, given, "bash", "-c", script))
        self.type(f"{before} {command} {after}; echo status=$?")

    def report(self) -> dict[str, object]:
        content: dict[str, object] = json.loads((self.folder / "report.json").read_text())
        return content


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Guarding]:
    opened = Guarding(tmp_path)
    yield opened
    opened.close()


def test_the_command_can_ask_on_the_terminal(terminal: Guarding) -> None:
    terminal.guard("read -p 'name? ' name </dev/tty 2>/dev/tty; echo hello $name; exit 3")
    terminal.expect("name? ")
    terminal.type("anna")
    terminal.expect("hello anna")
    terminal.expect("status=3")


def test_the_commands_stdin_is_the_terminal_its_outputs_are_pipes(terminal: Guarding) -> None:
    terminal.guard("test -t 0 && echo stdin; test -t 1 || test -t 2 || echo pipes")
    terminal.expect("stdin")
    terminal.expect("pipes")
    terminal.expect("status=0")
    assert terminal.report()["merged"] is True


def test_the_command_is_a_foreground_group_in_our_session(terminal: Guarding) -> None:
    terminal.guard("read -a f </proc/$$/stat; test ${f[4]} = $$ -a ${f[7]} = $$ && echo leads; echo sid=${f[5]}")
    terminal.expect("leads")
    terminal.expect(f"sid={terminal.pid}")


def test_ctrl_c_reaches_the_command_once_and_not_us(terminal: Guarding) -> None:
    terminal.guard("trap 'echo interrupted; n=$((n+1))' INT; echo up; while [ ${n:-0} = 0 ]; do sleep 0.05; done;"
                   " sleep 0.2; echo n=$n; exit 4")  # fmt: skip
    terminal.expect("up")
    terminal.key(b"\x03")
    terminal.expect("n=1")
    terminal.expect("status=4")
    assert terminal.report()["stop_signal"] is None


def test_ctrl_c_ends_a_command_that_does_not_care(terminal: Guarding) -> None:
    terminal.guard("echo up; exec sleep 60")
    terminal.expect("up")
    terminal.key(b"\x03")
    terminal.expect("status=130")
    assert terminal.report()["signal"] == signal.SIGINT


def test_ctrl_z_stops_both_and_fg_goes_on(terminal: Guarding) -> None:
    terminal.guard("echo up; read line; echo got $line; exit 5")
    terminal.expect("up")
    terminal.key(b"\x1a")
    terminal.expect("Stopped")
    terminal.type("echo shell''again; fg; echo st=$?")
    terminal.expect("shellagain")
    terminal.expect("drive.py")  # bash says what it continues
    terminal.type("line")
    terminal.expect("got line")
    terminal.expect("st=5")


def test_bg_goes_on_in_the_background_and_leaves_the_terminal_to_the_shell(terminal: Guarding) -> None:
    os.mkfifo(terminal.folder / "go")
    os.mkfifo(terminal.folder / "end")  # not `go` again: who still has it open to write would be a reader's end
    terminal.guard("echo up; read line <go; echo got $line; read line <end; exit 6")
    terminal.expect("up")
    terminal.key(b"\x1a")
    terminal.expect("Stopped")
    terminal.type("bg; echo shell''again; echo on >go")
    terminal.expect("shellagain")
    terminal.expect("got on")
    assert os.tcgetpgrp(terminal.fd) == terminal.pid
    terminal.type("echo on >end; wait %1; echo st=$?")
    terminal.expect("st=6")


def test_a_command_in_the_background_that_wants_input_stops_until_fg(terminal: Guarding) -> None:
    terminal.guard("echo up; sleep 0.3; read line </dev/tty; echo got $line; exit 7")
    terminal.expect("up")
    terminal.key(b"\x1a")
    terminal.expect("Stopped")
    terminal.type("bg")
    terminal.type("until jobs | grep Stopped; do sleep 0.1; done; echo asks''again; fg; echo st=$?")
    terminal.expect("asksagain")
    terminal.expect("drive.py")
    terminal.type("line")
    terminal.expect("got line")
    terminal.expect("st=7")


def test_a_job_that_is_fetched_from_the_background_gets_the_terminal_when_it_asks(terminal: Guarding) -> None:
    os.mkfifo(terminal.folder / "go")
    terminal.guard("echo up; read line <go; echo got $line; read line </dev/tty; echo read $line; exit 8")
    terminal.expect("up")
    terminal.key(b"\x1a")
    terminal.expect("Stopped")
    terminal.type("bg; (sleep 0.3; echo on >go) & fg %1; echo st=$?")
    terminal.expect("got on")
    terminal.type("line")
    terminal.expect("read line")
    terminal.expect("st=8")


def test_a_command_started_in_the_background_does_not_take_what_is_typed(terminal: Guarding) -> None:
    terminal.guard("read line; echo got $line; exit 7", after="& true")
    terminal.type("until jobs | grep Stopped; do sleep 0.1; done; read x; echo shell has $x")
    terminal.expect("Stopped")
    terminal.type("mine")
    terminal.expect("shell has mine")
    terminal.type("fg; echo st=$?")
    terminal.expect("drive.py")
    terminal.type("line")
    terminal.expect("got line")
    terminal.expect("st=7")


def test_a_command_started_in_the_background_that_reads_nothing_ends_there(terminal: Guarding) -> None:
    terminal.guard("read -a f </proc/$$/stat; echo sid=${f[5]}; exit 9", after="& wait $!")
    terminal.expect(f"sid={terminal.pid}")
    terminal.expect("status=9")
    assert os.tcgetpgrp(terminal.fd) == terminal.pid


def test_a_reader_in_the_background_whose_shell_has_gone_is_hung_up(terminal: Guarding) -> None:
    given = json.dumps({"report": str(terminal.folder / "report.json")})
    command = " ".join(
        shlex.quote(word) for word in (sys.executable, DRIVE, given, "bash", "-c", "read go <go; read x")
    )
    os.mkfifo(terminal.folder / "go")
    (terminal.folder / "inner").write_text(f"set -m; {command} &\n")
    terminal.type("bash inner; echo on >go; echo shell''again")
    terminal.expect("shellagain")
    end_s = time.monotonic() + 20
    while not (terminal.folder / "report.json").exists() and time.monotonic() < end_s:
        time.sleep(0.02)
    assert terminal.report()["signal"] == signal.SIGHUP


def test_a_script_gets_the_terminal_back_at_the_end(terminal: Guarding) -> None:
    command = f"{shlex.quote(sys.executable)} {shlex.quote(DRIVE)} '{{}}' true"
    (terminal.folder / "script").write_text(f"{command}; read -p 'more? ' x; echo read $x\n")
    terminal.type("bash script; echo st=$?")
    terminal.expect("more? ")
    terminal.type("yes")
    terminal.expect("read yes")
    terminal.expect("st=0")


def test_a_job_that_ends_in_the_background_leaves_the_terminal_alone(terminal: Guarding) -> None:
    os.mkfifo(terminal.folder / "go")
    terminal.guard("echo up; read line <go")
    terminal.expect("up")
    terminal.key(b"\x1a")
    terminal.expect("Stopped")
    terminal.type("bg; read -p 'type: ' x; echo read $x; wait %1; echo st=$?")
    terminal.expect("type: ")
    (terminal.folder / "go").write_text("on\n")
    while not (terminal.folder / "report.json").exists():
        time.sleep(0.01)
    assert os.tcgetpgrp(terminal.fd) == terminal.pid
    terminal.type("on")
    terminal.expect("read on")
    terminal.expect("st=0")


def test_after_the_end_the_terminal_is_the_shells(terminal: Guarding) -> None:
    terminal.guard("true")
    terminal.expect("status=0")
    terminal.type("read -p 'more? ' x; echo read $x")
    terminal.expect("more? ")
    terminal.type("yes")
    terminal.expect("read yes")


def test_after_a_failed_spawn_the_terminal_is_ours(terminal: Guarding) -> None:
    command = f"{shlex.quote(sys.executable)} {shlex.quote(DRIVE)} '{{}}' /etc"
    (terminal.folder / "bad").write_text("#!/nonexistent/sh\n")
    (terminal.folder / "bad").chmod(0o755)
    terminal.type(f"{command.replace('/etc', './bad')}; echo status=$?; read x; echo read $x")
    terminal.expect("its interpreter '/nonexistent/sh'")
    terminal.expect("status=127")
    terminal.type("still here")
    terminal.expect("read still here")


def test_a_stop_signal_ends_a_foreground_command(terminal: Guarding) -> None:
    terminal.guard("trap 'echo term; exit 8' TERM; echo pp=$PPID; while :; do sleep 0.05; done")
    terminal.expect("pp=")
    while "\n" not in terminal.seen:
        terminal.seen += os.read(terminal.fd, 99).decode()
    os.kill(int(terminal.seen.split()[0]), signal.SIGTERM)
    terminal.expect("term")
    terminal.expect("status=8")
    assert terminal.report()["stop_signal"] == signal.SIGTERM


def test_tostop_does_not_stop_us_while_the_command_is_in_the_foreground(terminal: Guarding) -> None:
    terminal.type("stty tostop")
    terminal.guard("echo one; sleep 0.1; echo two")
    terminal.expect("one")
    terminal.expect("two")
    terminal.expect("status=0")


@pytest.mark.parametrize(("before", "after"), [("", "</dev/null"), ("", "| cat"), ("true |", "")])
def test_with_only_part_of_the_terminal_the_command_has_its_own_session(
    terminal: Guarding, before: str, after: str
) -> None:
    terminal.guard("read -a f </proc/$$/stat; test ${f[5]} = $$ && echo own session", before=before, after=after)
    terminal.expect("own session")
    terminal.expect("status=0")


def test_ctrl_c_at_a_command_in_its_own_session_is_forwarded(terminal: Guarding) -> None:
    terminal.guard("trap 'echo interrupted; exit 9' INT; echo up; while :; do sleep 0.05; done", after="</dev/null")
    terminal.expect("up")
    terminal.key(b"\x03")
    terminal.expect("interrupted")
    terminal.expect("status=9")
    assert terminal.report()["stop_signal"] == signal.SIGINT
