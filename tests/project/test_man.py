"""The manual pages are sound and name exactly what the program has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from operator import attrgetter
from pathlib import Path

import click
import pytest

from runguard.cli import commands, run
from runguard.config.merge import VARIABLES
from runguard.crontab.hazards import HAZARDS
from runguard.evidence import entries, touches, whynot
from runguard.evidence import lists as lists_
from runguard.evidence.tally import Tally
from runguard.guard.start import GIVEN
from runguard.model import OUTCOMES, REFUSALS, VERDICTS
from runguard.report import metrics
from runguard.report.doctor.checks import CHECKS
from runguard.schedule.policy import POLICIES
from runguard.settings import TABLE, Setting
from shell import Shell

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "man").iterdir())
RUNGUARD = (ROOT / "man" / "runguard.1").read_text()
EVIDENCE = (ROOT / "man" / "runguard-evidence.7").read_text()
TOML = (ROOT / "man" / "runguard.toml.5").read_text()
COMMANDS = commands.build().commands
QUERIES = ("history", "show", "windows", "missing", "status", "check", "next", "explain", "ping", "lint", "doctor")
CHOICES = [setting for setting in TABLE if setting.choices]
NAME = attrgetter("name")


def section(page: str, title: str) -> str:
    found = re.search(rf"^\.Sh {re.escape(title)}\n(.*?)(?=^\.Sh |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found, f"no section {title!r}"
    return found[1]


def items(text: str, macro: str) -> list[str]:
    """Return the words of every item of a list that begins with `macro`: `.It Ev A , B`."""
    lines = re.findall(rf"^\.It {macro} (.*)$", text, re.MULTILINE)
    return [word for line in lines for word in line.split() if word != ","]


def options(title: str) -> set[str]:
    """Return the options that the items of a section of runguard(1) name, spelled as they are typed."""
    flags = re.findall(r"^\.It (Fl .*)$", section(RUNGUARD, title), re.MULTILINE)
    return {"-" + name for line in flags for name in re.findall(r"Fl (\S+)", line)}


def of_command(command: click.Command) -> set[str]:
    """Return what the command takes, by click."""
    with click.Context(command, **command.context_settings) as context:
        given = [each for each in command.get_params(context) if isinstance(each, click.Option)]
        return {name for each in given for name in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_mandoc_has_nothing_to_say_against_a_page(page: Path) -> None:
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style", page], capture_output=True, text=True, check=False)
    # Which other manuals this host has is not the page's fault.
    said = [line for line in done.stdout.splitlines() if "referenced manual not found" not in line]
    assert said == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_word_of_a_heading_is_taken_for_a_macro(page: Path) -> None:
    headings = re.findall(r"^\.S[hs] (.*)$", page.read_text(), re.MULTILINE)
    assert [each for each in headings if re.search(r"(?<!&)\b[A-Z][a-z]\b", each)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_installed_in_its_section(page: Path) -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    number = page.name[-1]
    assert build["targets"]["wheel"]["shared-data"][f"man/{page.name}"] == f"share/man/man{number}/{page.name}"


def test_there_is_a_page_of_the_command_one_of_its_file_and_one_of_evidence() -> None:
    assert [page.name for page in PAGES] == ["runguard-evidence.7", "runguard.1", "runguard.toml.5"]


def test_the_manual_and_the_help_of_run_name_the_same_options() -> None:
    assert options("OPTIONS OF RUN") == of_command(COMMANDS["run"])


@pytest.mark.parametrize("name", QUERIES)
def test_the_manual_and_the_help_of_a_query_name_the_same_options(name: str) -> None:
    shared = options("OPTIONS OF EVERY QUERY") | options("OPTIONS OF EVERY COMMAND")
    assert options(f"OPTIONS OF {name.upper()}") | shared == of_command(COMMANDS[name])


def test_the_manual_and_the_help_of_item_name_the_same_options() -> None:
    without = {"--store"}  # it writes to its run's file alone
    expected = options("OPTIONS OF ITEM") | options("OPTIONS OF EVERY COMMAND") - without
    assert expected == of_command(COMMANDS["item"])


@pytest.mark.parametrize("name", ["wrap", "unwrap"])
def test_the_manual_and_the_help_of_an_edit_name_the_same_options(name: str) -> None:
    expected = options(f"OPTIONS OF {name.upper()}") | {"-h", "--help"}  # they look at no records
    assert expected == of_command(COMMANDS[name])


def test_the_manual_names_exactly_the_hazards() -> None:
    assert items(section(RUNGUARD, "CRONTABS"), "Li") == list(HAZARDS)


@pytest.mark.parametrize(
    "name", ["waive", "retire", "metrics", "export", "hold", "release", "redact", "prune", "correct", "defect"]
)
def test_the_manual_and_the_help_of_a_command_name_the_same_options(name: str) -> None:
    assert options(f"OPTIONS OF {name.upper()}") | options("OPTIONS OF EVERY COMMAND") == of_command(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_manual_names_every_option_of_a_command_and_no_other(name: str) -> None:
    title, taken = f"OPTIONS OF {name.upper()}", of_command(COMMANDS[name])
    own = options(title) if f".Sh {title}\n" in RUNGUARD else set()
    shared = options("OPTIONS OF EVERY QUERY") | options("OPTIONS OF EVERY COMMAND")
    assert (own - taken, taken - own - shared) == (set(), set())


@pytest.mark.parametrize("setting", [each for each in CHOICES if each.is_option], ids=NAME)
def test_the_manual_names_the_choices_of_an_option(setting: Setting) -> None:
    assert f"Fl -{setting.option[2:]} Cm {' | '.join(setting.choices)}\n" in section(RUNGUARD, "OPTIONS OF RUN")


def test_the_manual_names_every_command() -> None:
    named = re.findall(r"^\.Cm (\S+)$", section(RUNGUARD, "SYNOPSIS"), re.MULTILINE)
    assert sorted(named) == sorted(COMMANDS)


def test_the_manual_names_exactly_the_statuses_of_run() -> None:
    of_run, _ = section(RUNGUARD, "EXIT STATUS").split("\n.Pp\n")
    assert re.findall(r"^\.It (\S+)", of_run, re.MULTILINE) == [status for status, _ in run.STATUSES]


def test_the_manual_names_exactly_the_statuses_of_queries() -> None:
    _, of_queries = section(RUNGUARD, "EXIT STATUS").split("\n.Pp\n")
    others = [COMMANDS[name].statuses for name in COMMANDS if name != "run"]  # type: ignore[attr-defined]
    known = {status for table in (commands.STATUSES, *others) for status, _ in table}
    listed = [word for line in re.findall(r"^\.It (.*)", of_queries, re.MULTILINE) for word in line.split(" , ")]
    assert sorted(listed) == sorted(known | {"130"})


@pytest.mark.parametrize("status", ["1", "75"])
def test_the_manual_names_every_command_that_ends_with(status: str) -> None:
    _, of_queries = section(RUNGUARD, "EXIT STATUS").split("\n.Pp\n")
    told = re.search(rf"^\.It {status}\n(.*?)(?=^\.It)", of_queries, re.DOTALL | re.MULTILINE)
    assert told
    named = [word for line in re.findall(r"^\.Cm (.*)$", told[1], re.MULTILINE) for word in line.split()]
    ends = {name for name, command in COMMANDS.items() if status in dict(command.statuses)} - {"run"}  # type: ignore[attr-defined]
    assert sorted(word for word in named if word in COMMANDS) == sorted(ends)


def test_the_manual_names_exactly_the_variables() -> None:
    settings = {"RUNGUARD_STATE_DIR", "RUNGUARD_CONFIG", *VARIABLES.values()}
    text = section(RUNGUARD, "ENVIRONMENT")
    removed = {"RUNGUARD_FENCE"}
    assert set(items(text, "Ev")) == settings | set(GIVEN) - removed
    assert set(re.findall(r"\bRUNGUARD_[A-Z_]+", text)) == settings | set(GIVEN)


def test_the_manual_names_exactly_the_outcomes() -> None:
    assert items(section(RUNGUARD, "OUTCOMES"), "Li") == list(OUTCOMES)


def test_the_manual_names_the_refusals_that_this_version_knows() -> None:
    refused = section(RUNGUARD, "OUTCOMES").partition(".It Li refused\n")[2]
    assert set(re.findall(r"[a-z-]+", " ".join(re.findall(r"^\.Li (.*)$", refused, re.MULTILINE)))) == (
        set(REFUSALS) - {"claimed"}  # of several hosts
    )


@pytest.mark.parametrize("page", [RUNGUARD, TOML], ids=["runguard.1", "runguard.toml.5"])
def test_an_example_of_the_manual_fits_a_terminal(page: str) -> None:
    examples = re.findall(r"^\.Bd -literal -offset indent\n(.*?)^\.Ed$", page, re.DOTALL | re.MULTILINE)
    assert examples
    assert max(len(line) for example in examples for line in example.splitlines()) <= 80 - 11  # their margin


def test_the_recurrence_of_the_manual_is_the_last_working_day_of_a_month(shell: Shell) -> None:
    example = re.search(r"^\[jobs\.payroll\]\n.*?\n\n", RUNGUARD, re.DOTALL | re.MULTILINE)
    assert example
    shell.config.write_text(example[0].replace("\\e\n", "\\\n") + 'timezone = "UTC"\n')
    windows = shell.json("next", "payroll", "--from", "2999-02-01", "--until", "2999-06-01")
    # 2999-03-31 and 2999-05-31 are no working days
    assert [window["label"][:16] for window in windows] == [
        "2999-02-28T18:00",
        "2999-03-29T18:00",
        "2999-04-30T18:00",
        "2999-05-31T18:00",
    ]


def test_the_manual_names_exactly_the_verdicts() -> None:
    assert items(section(RUNGUARD, "VERDICTS"), "Li") == list(VERDICTS)


def test_the_manual_names_every_policy() -> None:
    assert set(re.findall(r"^\.Cm (\w+)$", section(RUNGUARD, "WINDOWS"), re.MULTILINE)) == set(POLICIES)


def test_the_manual_names_exactly_the_keys_of_the_json(shell: Shell) -> None:
    shell("run", "-s", "@daily", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z", "--", "true")
    lines = '{"case":"HB-1","phase":"note","action":"look"}\\nbad\\n'
    shell("run", "-j", "loud", "-c", f"echo said; printf '{lines}' >> $RUNGUARD_ITEMS")
    entry, bad = shell.json("show", "--items", "2")
    [told] = shell.json("show", "1")
    [_, brief] = shell.json("history")
    [judged] = shell.json("windows", "--since", "2026-02-28", "--until", "2026-03-01")
    [coming] = shell.json("next", "-n", "1")
    [said] = shell.json("show", "--output", "2")
    parts = re.split(r"^\.Pp$", section(RUNGUARD, "JSON"), flags=re.MULTILINE)
    of_history, of_show, of_output, of_items, of_windows, _, of_lint = parts
    assert [listed(line) for line in lists(of_history)] == [list(brief), list(brief["window"])]
    assert [listed(line) for line in lists(of_show)] == [
        [key for key in told["window"] if key not in brief["window"]],
        [key for key in told if key not in brief],
    ]
    kept = [list(told["output"]), list(told["output"]["stdout"]), list(said)]
    assert [listed(line) for line in lists(of_output)] == kept
    (shell.directory / "tab").write_text("0 12 * * fri-sun true\n")
    [hazard] = json.loads(shell("lint", "tab", "--json").stdout)
    assert [listed(line) for line in lists(of_lint)] == [list(hazard)]
    assert [listed(line) for line in lists(of_items)] == [list(entry), list(bad["rejected"])]
    assert [listed(line) for line in lists(of_windows)] == [
        [key for key in judged if key in coming],
        [key for key in judged if key not in coming],
    ]
    assert [key for key in coming if key not in judged] == re.findall(r"^\.Li (\w+)$", of_windows, re.MULTILINE)


def test_the_manual_names_exactly_the_keys_of_an_explanation(shell: Shell) -> None:
    line = '{"case":"HB-1","phase":"intent","action":"look"}'
    daily = ("run", "-j", "x", "-s", "@daily", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z")
    shell(*daily, "-c", f"echo '{line}' >> $RUNGUARD_ITEMS")
    [first] = shell.json("explain", "HB-1")
    [told] = shell.json("explain", "HB-1")
    [answer] = shell.json("explain", "HB-1", "--why-not", "x@2026-03-01T00:00Z")
    text = section(RUNGUARD, "EXPLANATIONS").partition("As JSON,\n")[2]
    [touch], [run], [access] = told["touches"], told["runs"], told["later"]
    [run_of_answer] = answer["runs"]
    assert [listed(line) for line in lists(text)] == [
        list(first), list(touch), list(touches.STATES), list(touch["records"][0]), list(run),
        [key for key in access if key not in ("how", "question", "bundle_sha256", "reason")],
        list(told["unknown"][0]), ["entry", "text"], list(answer), [key for key in run_of_answer if key not in run],
    ]  # fmt: skip


def test_the_manual_names_exactly_the_answers_of_why_not() -> None:
    answers = items(section(RUNGUARD, "EXPLANATIONS"), "Li")
    assert answers == [*whynot.VERDICTS, "missing", "waived", "pending"]


def test_the_manual_of_evidence_names_what_the_ledger_says_of_a_runs_entries() -> None:
    told = re.search(r'^"items":\{(.*?)\}$', EVIDENCE, re.DOTALL | re.MULTILINE)
    assert told
    assert re.findall(r'"(\w+)":', told[1]) == list(Tally._fields)


def test_the_manual_of_evidence_names_every_phase_and_result() -> None:
    fields = section(EVIDENCE, "CASE ENTRIES")
    assert set(re.findall(r"\w+", " ".join(re.findall(r"^\.Li (.*)$", fields, re.MULTILINE)))) >= {
        *entries.PHASES,
        *entries.RESULTS,
    }


def test_the_limits_of_the_manual_of_evidence_are_those_of_the_program() -> None:
    for limit in (entries.MOST_CHARACTERS, entries.MOST_LINE_BYTES, entries.MOST_LEVELS, lists_.MOST_ENTRIES):
        assert f"{limit:,}" in EVIDENCE


def test_the_manual_names_exactly_the_keys_of_a_standing(shell: Shell) -> None:
    daily = ("run", "-j", "sync", "-s", "@daily", "-z", "UTC", "--scheduled-at", "2026-03-01T00:00Z")
    shell(*daily, "--", "true")
    inside = f"{sys.executable} -m runguard run -j sync -- true; {sys.executable} -m runguard status --json"
    [told] = json.loads(shell(*daily, "--reason", "test", "-c", inside).stdout)
    of_status = re.split(r"^\.Pp$", section(RUNGUARD, "JSON"), flags=re.MULTILINE)[-2]
    parts = [told[key] for key in ("last", "last_success", "newest", "holder", "refused_by")]
    expected = [list(told), list(told["reasons"][0]), *map(list, parts), list(told["running"][0])]
    named = [listed(line) for line in lists(of_status)]
    assert sorted(named[:-1]) == sorted(expected)  # the last is of pings that were not delivered


def test_the_manual_names_exactly_the_checks_of_doctor() -> None:
    checks, _ = section(RUNGUARD, "DOCTOR").split("\n.El\n", 1)
    named = [name for line in re.findall(r"^\.It Li (.*)$", checks, re.MULTILINE) for name in line.split(" , ")]
    assert named == list(CHECKS)


def test_the_manual_names_the_keys_of_what_doctor_finds(shell: Shell) -> None:
    found = json.loads(shell("doctor", "--json").stdout)
    steps = json.loads(shell("doctor", "--recover", "--reason", "test", "--json").stdout)
    of_checks, _, of_steps = lists(section(RUNGUARD, "DOCTOR"))[-3:]
    assert [list(found[0]), list(steps[0])] == [listed(of_checks), listed(of_steps)]


def lists(text: str) -> list[str]:
    return [line for line in re.findall(r"^\.Li (.*)$", text, re.MULTILINE) if "," in line]


def listed(line: str) -> list[str]:
    return re.findall(r"\w+", line)


def test_the_manual_of_the_file_names_exactly_its_keys() -> None:
    keys = [name for name in items(section(TOML, "KEYS"), "Ic") if name != "="]
    assert sorted(keys) == sorted(setting.name for setting in TABLE if setting.is_key(top=True))


@pytest.mark.parametrize("setting", [each for each in CHOICES if each.is_key(top=True)], ids=NAME)
def test_the_manual_of_the_file_names_the_choices_of_a_key(setting: Setting) -> None:
    text = re.search(rf"^\.It Ic {setting.name}\n(.*?)(?=^\.(?:It|El))", TOML, re.DOTALL | re.MULTILINE)
    assert text
    words = " ".join(re.findall(r"^\.Cm (.*)$", text[1], re.MULTILINE))
    assert set(re.findall(r"\w[\w-]*", words)) == set(setting.choices)


def test_the_manual_names_exactly_the_metrics() -> None:
    named = re.findall(r"^\.It Li (\S+)$", section(RUNGUARD, "METRICS"), re.MULTILINE)
    assert named == metrics.names()
