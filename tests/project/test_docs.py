"""The documents are true: README and manual name what the program has, and its console blocks print what it prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

import runguard
from runguard import zones
from runguard.cli import commands, run
from runguard.cli.options import Command
from runguard.config.merge import VARIABLES
from runguard.guard.start import GIVEN
from runguard.instant import from_rfc3339
from runguard.model import REFUSALS
from runguard.report import metrics
from runguard.schedule import cron, policy
from runguard.schedule.windows import Timetable
from runguard.settings import TABLE, Setting
from shell import SOURCE
from transcripts import normal, play, read

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [
    path
    for pattern in ("*.md", "man/*", "examples/**/*", ".ci/*", "tests/run", "tests/environment.sh", "pyproject.toml")
    for path in sorted(ROOT.glob(pattern))
    if path.is_file()
]
COMMANDS = commands.build().commands


def section(title: str) -> str:
    """Return the text of a section of README, down to the next of its rank."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
    assert found, f"README has no section {title!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the tables in `text`, without their headings; `\\|` in a cell is a bar."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rules = [at for at, row in enumerate(cells) if set(row[0]) == {"-"}]
    return [row for at, row in enumerate(cells) if at not in rules and at + 1 not in rules]


def keyed(text: str) -> dict[str, list[str]]:
    """Return the rows of the tables in `text` by what stands in the backticks of their first cells."""
    return {key: row[1:] for row in rows(text) for key in re.findall(r"`([^`]*)`", row[0])}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


# What README names


def spelled(setting: Setting) -> str:
    """Return an option as its row in README begins."""
    names = ([f"-{setting.short}"] if setting.short else []) + [setting.option]
    metavar = setting.metavar or "|".join(setting.choices)
    return ", ".join(names) + (f" {metavar}" if metavar else "")


OPTIONS = [setting for setting in TABLE if setting.is_option]


def test_readme_lists_exactly_the_options_of_run() -> None:
    expected = [spelled(setting) for setting in OPTIONS]
    expected.insert(expected.index("--output always|on-failure|never") + 1, "-q, --quiet")
    assert list(keyed(section("Options of run"))) == [*expected, "-h, --help"]


@pytest.mark.parametrize("setting", [each for each in OPTIONS if each.default], ids=lambda each: each.name)
def test_readme_tells_the_default_of_an_option(setting: Setting) -> None:
    meaning, default = keyed(section("Options of run"))[spelled(setting)]
    shown = f"{setting.default:g}s" if isinstance(setting.default, float) else str(setting.default)
    assert meaning
    assert default == f"`{shown}`"


def test_the_keys_that_readme_explains_are_some_of_those_that_only_files_have() -> None:
    # runguard.toml(5) and examples/runguard.toml have all of them.
    told = re.findall(r"`(\w+)` \(", section("Configuration"))
    assert "on_lost" in told
    assert set(told) <= {each.name for each in TABLE if not each.is_option}


def test_readme_lists_exactly_the_exit_statuses() -> None:
    listed = list(keyed(section("Exit statuses")))
    assert listed == ["N", "0", "1", "2", "3", "70", "74", "75", "78", "124", "125", "126", "127", "128+N", "130"]
    assert {status for status, _ in (*run.STATUSES, *commands.STATUSES)} <= set(listed)


@pytest.mark.parametrize("status", ["1", "75"])
def test_readme_and_the_help_name_every_command_that_ends_with(status: str) -> None:
    ends = {name for name, command in COMMANDS.items() if status in dict(command.statuses)} - {"run"}  # type: ignore[attr-defined]
    of_readme = set(re.findall(r"`(\w+)`", keyed(section("Exit statuses"))[status][0]))
    of_help = set(re.findall(r"[\w-]+", dict(commands.STATUSES)[status]))
    assert (sorted(of_readme & set(COMMANDS)), sorted(ends - of_help - {"rerun"})) == (sorted(ends), [])


def test_readme_lists_exactly_the_variables() -> None:
    settings = {"RUNGUARD_STATE_DIR", "RUNGUARD_CONFIG", *VARIABLES.values()}
    removed = {"RUNGUARD_FENCE"}
    assert set(keyed(section("Environment"))) == settings | (set(GIVEN) - removed)


def test_readme_lists_exactly_the_commands() -> None:
    assert [name.split()[0] for name in keyed(section("Commands"))] == list(COMMANDS)


def test_the_metrics_that_readme_explains_are_some_of_the_programs() -> None:
    # runguard(1) has all of them, and all hazards of a crontab.
    told = re.findall(r"`(runguard_\w+)`", section("Prometheus"))
    assert "runguard_level" in told
    assert set(told) <= set(metrics.names())


def test_readme_lists_exactly_the_policies() -> None:
    told = {name: cells[:2] for name, cells in keyed(section("Daylight saving")).items() if name in policy.POLICIES}
    expected = {name: list(policy.rule(name, None, None, wild=True)[:2]) for name in policy.POLICIES}
    fixed = policy.rule("vixie", None, None, wild=False)
    expected["vixie"] = [f"fixed: {fixed.gap}, wild: skip", f"fixed: {fixed.fold}, wild: both"]
    assert {name: [cell.replace("`", "") for cell in cells] for name, cells in told.items()} == expected


LONDON = zones.load("Europe/London").zone
# 2026-03-29 has 23 hours, 2026-10-25 has 25: https://www.iana.org/time-zones, rule GB-Eire
CHANGES = {"29 March": ("2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"),
           "25 October": ("2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z")}  # fmt: skip


@pytest.mark.parametrize("expression", [key for key in keyed(section("Daylight saving")) if "*" in key])
def test_readme_counts_the_windows_of_the_days_on_which_clocks_change(expression: str) -> None:
    kind, *told = keyed(section("Daylight saving"))[expression]
    schedule = cron.parse(expression)
    timetable = Timetable(schedule, LONDON, policy.rule("vixie", None, None, wild=schedule.wild))
    days = [(from_rfc3339(start) - 1, from_rfc3339(end) - 1) for start, end in CHANGES.values()]
    assert kind == ("wild" if schedule.wild else "fixed")
    assert [cell.partition(",")[0] for cell in told] == [str(len(list(timetable.between(*day)))) for day in days]


def test_readme_has_a_reason_for_exactly_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    assert list(keyed(section("Dependencies"))) == [re.split(r"[>=<]", each)[0] for each in needed]


def test_readme_lists_exactly_the_rooms() -> None:
    listed = {name.rstrip("/") for name in keyed(section("Code layout"))}
    package = Path(runguard.__file__).parent
    rooms = {path.name for path in package.iterdir() if not path.name.startswith("__")}
    folders = {"src/scripts", "man", "examples", "tests", "benchmarks", ".ci"}
    assert listed == {f"src/runguard/{room}" for room in rooms} | folders


def test_every_file_that_readme_names_exists() -> None:
    named = set(re.findall(r"`((?:\./)?(?:examples|tests|man|benchmarks|src|\.ci)/[A-Za-z0-9_./-]+)`", README))
    assert "./tests/run" in named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


SOURCE_TEXT = "\n".join(path.read_text() for path in Path(runguard.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("message", list(keyed(section("When things break"))))
def test_every_message_that_readme_explains_is_one_of_the_programs(message: str) -> None:
    refusal = re.search(r"\((.*)\)", message)
    assert refusal is None or refusal[1] in REFUSALS
    for fragment in re.split(r"…|\bN\b|(?<=\()[a-z-]+(?=\))", message):
        assert fragment.strip(" :;") in SOURCE_TEXT


def test_readme_names_the_licence_that_the_project_has() -> None:
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert "MIT" in section("Licence")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_document_installs_the_plain_name(path: Path) -> None:
    for line in path.read_text().splitlines():
        if re.search(r"\b(pip3?|pipx|uv|poetry|apt|apt-get)\b.*\b(install|add|tool)\b", line):
            assert not re.search(r"(?<![\w./-])runguard(?![\w./-])", line.replace("runguard-cron", "")), line


# What the help says


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_help_ends_with_its_exit_statuses(name: str) -> None:
    command = COMMANDS[name] if name else commands.build()
    statuses = command.statuses if isinstance(command, Command) else commands.STATUSES
    with click.Context(command, info_name=name, **command.context_settings) as context:
        *_, last = command.get_help(context).split("\n\n")
    heading, *lines = last.splitlines()
    assert heading == "EXIT STATUSES:"
    assert [line.split()[0] for line in lines if not line.startswith("    ")] == [status for status, _ in statuses]


# What README prints


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A directory with README's configuration and the command on its PATH; returns the environment."""
    directory = tmp_path_factory.mktemp("desk")
    (directory / "bin").mkdir()
    program = directory / "bin" / "runguard"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runguard "$@"\n')
    program.chmod(0o755)
    (directory / "runguard.toml").write_text(blocks("toml")[0])
    shutil.copytree(ROOT / "examples", directory / "examples")
    return {
        "PATH": f"{directory}/bin:/usr/bin:/bin",
        "HOME": str(directory),
        "TZ": "UTC",
        "RUNGUARD_STATE_DIR": str(directory / "state"),
        "RUNGUARD_CONFIG": str(directory / "runguard.toml"),
        "PYTHONPATH": SOURCE,
    }


def test_every_console_block_of_readme_prints_what_it_says(desk: dict[str, str]) -> None:
    played = [step for block in blocks("console") for step in read(block)]
    assert len(played) > 10
    printed = play([command for command, _ in played], desk)
    for (command, expected), actual in zip(played, printed, strict=True):
        assert (command, normal(actual, desk)) == (command, normal(expected, desk))


def test_the_shell_of_readme_completes_words(desk: dict[str, str]) -> None:
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    script = """
    eval "$(_RUNGUARD_COMPLETE=bash_source runguard)"
    COMP_WORDS=(runguard run --output o) COMP_CWORD=3
    _runguard_completion runguard
    echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script], env=desk, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("on-failure\n", "")


def test_the_changelog_begins_with_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(runguard.__version__)}\b", changelog, re.MULTILINE)
