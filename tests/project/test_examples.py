"""The examples are what they say: every line of them is read by the program, or run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from runguard import config
from runguard.cli import commands, fast
from runguard.config import strict
from runguard.crontab.daemons import DEBIAN
from runguard.crontab.wrap import Form, unwrap, wrap
from runguard.report import metrics
from runguard.schedule import cron
from runguard.settings import TABLE, Request, Setting
from shell import Shell
from transcripts import normal, play, read

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = [
    EXAMPLES / "try",
    EXAMPLES / "window.sh",
    EXAMPLES / "cases.sh",
    *(ROOT / folder / "run" for folder in ("tests", "benchmarks", ".ci")),
]
STARTED = [
    *SCRIPTS,
    EXAMPLES / "window.py",
    EXAMPLES / "cases.py",
    EXAMPLES / "killed.py",
    ROOT / "src" / "scripts" / "runguard",
]
SOURCED = ROOT / "tests" / "environment.sh"
FILE = EXAMPLES / "runguard.toml"
SAID = tomllib.loads(FILE.read_text())
KEYS = [setting for setting in TABLE if setting.is_key(top=True)]
FIRED = [line for line in (EXAMPLES / "crontab").read_text().splitlines() if re.match(r"[\d*]", line)]
LINES = [line for line in FIRED if " runguard run " in line]
# The keys as they stand in the file, those that are commented out because they have no default included.
SHOWN = re.findall(r"^(?:# )?([a-z_]+) = ", FILE.read_text().partition("\n[jobs.")[0], re.MULTILINE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def asked(words: list[str]) -> Request:
    """Return what `runguard run …` asks for, as read without click."""
    assert [words[0].rpartition("/")[2], words[1]] == ["runguard", "run"]
    request = fast.read(words[2:])
    assert request is not None
    return request


def fields_and_words(line: str) -> tuple[str, list[str]]:
    """Return the schedule of a crontab line and the words of its command as /bin/sh gets them from cron."""
    *fields, command = line.split(maxsplit=5)
    assert not re.search(r"(?<!\\)%", command)
    return " ".join(fields), shlex.split(command.replace("\\%", "%"))


# crontab


@pytest.mark.parametrize("line", LINES)
def test_a_crontab_line_fires_when_its_job_is_due(line: str) -> None:
    fields, words = fields_and_words(line)
    request = asked(words)
    given = request.values.get("schedule") or SAID["jobs"][request.job]["schedule"]
    assert cron.parse(fields) == cron.parse(str(given))


def test_the_crontab_finds_the_command_where_the_readme_links_it() -> None:
    assert len(LINES) == 4
    assert [line for line in FIRED if line not in LINES] == ["*/5 * * * *   runguard ping >/dev/null"]
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in (EXAMPLES / "crontab").read_text().splitlines()


def test_wrap_makes_of_the_table_before_the_table_after() -> None:
    form = Form(False, DEBIAN, b"/usr/local/bin/runguard")
    before, after = ((EXAMPLES / f"{name}.crontab").read_bytes() for name in ("before", "after"))
    assert wrap(before, form).data == after
    assert unwrap(after, form).data == before


# runguard.toml


def test_the_file_shows_every_key_once() -> None:
    assert sorted(SHOWN) == sorted(setting.name for setting in KEYS)


def test_the_file_is_without_mistakes() -> None:
    strict.load({"RUNGUARD_CONFIG": str(FILE)})


def test_a_job_that_the_file_does_not_name_gets_the_defaults() -> None:
    with_file, problems = config.effective({}, {}, config.load({"RUNGUARD_CONFIG": str(FILE)}, None), "other")
    without, _ = config.effective({}, {}, config.load({"RUNGUARD_CONFIG": "/dev/null"}, None), "other")
    assert problems == ()
    assert with_file == without


@pytest.mark.parametrize("setting", KEYS, ids=lambda setting: setting.name)
def test_a_key_with_a_default_is_not_commented_out(setting: Setting) -> None:
    assert (setting.name in SAID) == (setting.default is not None or setting.name == "timeout")


@pytest.mark.parametrize("setting", [each for each in KEYS if each.default is None and each.name != "timeout"])
def test_a_key_without_a_default_is_shown_with_a_value_that_would_do(setting: Setting, tmp_path: Path) -> None:
    line = re.search(rf"^# ({setting.name} = .*)$", FILE.read_text(), re.MULTILINE)
    assert line
    (tmp_path / "runguard.toml").write_text(line[1])
    strict.load({"RUNGUARD_CONFIG": str(tmp_path / "runguard.toml")})


def test_choices_are_listed_beside_their_key() -> None:
    for setting in KEYS:
        if setting.choices and setting.name != "on_lost" and setting.name != "on_store_failure":
            [comment] = re.findall(rf"^(?:# )?{setting.name} = \S+ +# (.*)$", FILE.read_text(), re.MULTILINE)
            assert set(setting.choices) <= set(re.findall(r"[\w-]+", comment))


# systemd


NAMES = [path.name for path in (EXAMPLES / "systemd").iterdir()]


def unit(name: str) -> dict[str, str]:
    text = (EXAMPLES / "systemd" / name).read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_timer_fires_when_the_job_of_its_service_is_due() -> None:
    request = asked(shlex.split(unit("letters.service")["ExecStart"]))
    minute, hour, *_ = str(request.values["schedule"]).split()
    assert unit("letters.timer")["OnCalendar"] == f"*-*-* {int(hour):02}:{minute}:00 {request.values['timezone']}"
    assert (request.job, request.values["policy"]) == ("letters", "systemd")


def test_a_timer_fires_a_job_that_the_file_describes_when_it_is_due() -> None:
    request = asked(shlex.split(unit("backup.service")["ExecStart"]))
    minute, *rest = str(SAID["jobs"][request.job]["schedule"]).split()
    assert (unit("backup.timer")["OnCalendar"], rest) == (f"*-*-* *:{minute}:00", ["*"] * 4)


def test_every_timer_has_its_service_and_every_service_a_command() -> None:
    names = {path.stem for path in (EXAMPLES / "systemd").glob("*.timer")}
    assert {path.stem for path in (EXAMPLES / "systemd").glob("*.service")} == names
    for name in names:
        program, command, *_ = shlex.split(unit(f"{name}.service")["ExecStart"])
        assert (program, command in commands.NAMES) == ("/usr/local/bin/runguard", True)


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    for path in (EXAMPLES / "systemd").iterdir():  # with a program that exists here
        (tmp_path / path.name).write_text(path.read_text().replace("/usr/local/bin/runguard", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", *tmp_path.iterdir()], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if any(name in line for name in (str(tmp_path), *NAMES))] == []


# Prometheus

RULES = (EXAMPLES / "prometheus" / "runguard.rules.yml").read_text()


def test_the_alerts_name_only_metrics_that_are_written() -> None:
    named = set(re.findall(r"runguard_[a-z_]+", RULES))
    assert named <= set(metrics.names())
    assert len(named) == 6


def test_every_alert_has_a_condition_a_severity_and_a_summary() -> None:
    head, *alerts = RULES.split("\n      - alert: ")
    assert head.startswith("#")
    assert len(alerts) == 8
    for alert in alerts:
        assert re.search(
            r"^[A-Za-z]+\n {8}expr: .+\n(?: {8}for: \d+[mh]\n)? {8}labels:\n {10}severity: (?:critical|warning)\n"
            r' {8}annotations:\n {10}summary: ".+"\n?',
            alert,
        )


# Monitors


def test_nrpe_runs_a_check_that_the_command_line_takes(shell: Shell) -> None:
    shell("run", "-j", "backup", "--", "true")
    lines = re.findall(
        r"^command\[\w+\]=/usr/bin/sudo -n (.+)$", (EXAMPLES / "monitors" / "nrpe.cfg").read_text(), re.M
    )
    assert [line.split()[0] for line in lines] == ["/usr/local/bin/runguard"] * 2
    assert [shell(*line.split()[1:]).returncode for line in lines] == [0, 0]
    sudoers = re.findall(r"NOPASSWD: (.+)$", (EXAMPLES / "monitors" / "nrpe.cfg").read_text(), re.M)
    assert sudoers == [", ".join(lines)]


def test_icinga_gives_options_that_check_takes(shell: Shell) -> None:
    text = (EXAMPLES / "monitors" / "icinga2.conf").read_text()
    options = re.findall(r'"(--[a-z]+)" = \{', text)
    assert options == ["--job", "--store"]
    assert '"/usr/local/bin/runguard", "check" ]' in text
    shell("run", "-j", "backup", "--", "true")
    store = str(shell.state / "db" / "runguard.sqlite")
    assert shell("check", "--job", "backup", "--store", store).returncode == 0


# Jobs

SPRING = ("-s", "30 1 * * *", "-z", "Europe/London", "--scheduled-at", "2026-03-29T02:30+01:00")


def test_the_shell_job_works_on_its_window(shell: Shell) -> None:
    done = shell("run", *SPRING, "--", str(EXAMPLES / "window.sh"))
    said = "extracting records from 2026-03-28T01:30:00Z up to 2026-03-29T01:00:00Z (attempt 1)\n"
    assert (done.stdout, done.stderr, done.returncode) == (said, "", 0)


def test_the_python_job_works_on_its_window(shell: Shell) -> None:
    done = shell("run", *SPRING, "--", str(EXAMPLES / "window.py"))
    said = "adding up 23.5 hours, from 2026-03-28 01:30:00 up to 2026-03-29 01:00:00 UTC, attempt 1\n"
    assert (done.stdout, done.stderr, done.returncode) == (said, "", 0)


@pytest.mark.parametrize("name", ["window.sh", "window.py"])
def test_a_job_without_its_window_says_so_and_fails(shell: Shell, name: str) -> None:
    done = shell("run", "--", str(EXAMPLES / name))
    assert done.returncode != 0
    assert "start me through runguard run with a schedule" in done.stderr


def told(shell: Shell, number: int) -> list[tuple[str, str, str | None]]:
    """Return what a run said of its cases: case, phase, result."""
    return [(each["case"], each["phase"], each["result"]) for each in shell.json("show", str(number), "--items")]


def test_the_python_job_says_what_it_does_with_its_cases(shell: Shell) -> None:
    done = shell("run", "--", str(EXAMPLES / "cases.py"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (shell.directory / "outbox").read_text() == "HB-1041\nHB-1042\n"
    assert told(shell, 1)[1::2] == [
        ("HB-1041", "result", "done"),
        ("HB-1042", "result", "done"),
        ("HB-1043", "result", "no_action"),
        ("HB-1044", "result", "skipped"),
    ]
    [run] = shell.json("show", "1")
    assert (run["items"]["expected"], run["items"]["cases"], run["suspect"]) == (4, 4, None)


def test_the_python_job_killed_half_way_sends_nothing_twice(shell: Shell) -> None:
    first = shell(
        "run", *SPRING, "-j", "cases", "--", str(EXAMPLES / "killed.py"), environ={"PYTHONDONTWRITEBYTECODE": "1"}
    )
    assert first.returncode == 137
    assert shell.json("show", "1")[0]["items"]["uncertain"] == 1
    second = shell("run", *SPRING, "-j", "cases", "--", str(EXAMPLES / "cases.py"))
    assert second.returncode == 0
    said = "1 case is uncertain: HB-1042; RUNGUARD_UNCERTAIN names it to the command"
    assert second.stderr == f"runguard: cases: {said}\n"
    assert (shell.directory / "outbox").read_text() == "HB-1041\nHB-1042\n"
    assert [case for case, phase, _ in told(shell, 2) if phase == "intent"] == ["HB-1042", "HB-1043", "HB-1044"]


def test_what_explain_says_of_the_killed_job_is_what_the_example_tells(shell: Shell) -> None:
    for name in ("cases.py", "killed.py"):
        shutil.copy(EXAMPLES / name, shell.directory)
    (shell.directory / "bin").mkdir()
    program = shell.directory / "bin" / "runguard"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runguard "$@"\n')
    program.chmod(0o755)
    environ = {**shell.environ, "PATH": f"{shell.directory}/bin:/usr/bin:/bin"}
    played = read((EXAMPLES / "killed.txt").read_text())
    assert len(played) == 7
    printed = play([command for command, _ in played], environ)
    for (command, expected), actual in zip(played, printed, strict=True):
        assert (command, normal(actual, environ)) == (command, normal(expected, environ))


def test_the_shell_job_says_what_it_does_with_its_cases(shell: Shell) -> None:
    command = shell.directory / "bin" / "runguard"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runguard "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:/usr/bin:/bin"
    done = shell("run", *SPRING, "--", str(EXAMPLES / "cases.sh"), environ={"PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    assert (shell.directory / "closed").read_text() == "HB-2001\nHB-2002\nHB-2003\n"
    run = shell.json("show", "1")[0]
    assert (run["items"]["cases"], run["items"]["done"], run["items"]["skipped"], run["suspect"]) == (5, 3, 2, None)
    again = shell("rerun", "1", "--reason", "test", environ={"PATH": path})
    assert again.returncode == 0
    assert (shell.directory / "closed").read_text() == "HB-2001\nHB-2002\nHB-2003\n"


# Scripts


@pytest.mark.parametrize("script", [*SCRIPTS, SOURCED], ids=name_of)
def test_the_shell_can_read_a_script(script: Path) -> None:
    done = subprocess.run(["/bin/sh", "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("script", [*SCRIPTS, SOURCED], ids=name_of)
def test_shellcheck_has_nothing_to_say_against_a_script(script: Path) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    command = ["shellcheck", "--shell=dash", "--severity=info", "-x", f"--source-path={ROOT}", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", STARTED, ids=name_of)
def test_what_is_started_is_executable(path: Path) -> None:
    assert path.stat().st_mode & 0o111 == 0o111
