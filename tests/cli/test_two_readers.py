"""`run` is read twice, by the standard library and by click, from one table: with one result."""

from __future__ import annotations

import click
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runguard.cli import fast, run
from runguard.errors import UsageError
from runguard.settings import TABLE, Request

COMMAND = run.build()


def by_click(arguments: list[str]) -> Request | None:
    try:
        return run.read(COMMAND.make_context("run", list(arguments)))
    except (click.ClickException, click.exceptions.Exit, UsageError):
        return None


LONG = [setting.option for setting in TABLE if setting.is_option]
GOOD = [
    "5m",
    "90",
    "letters",
    "always",
    "never",
    "0",
    "75",
    "2026-03-29T02:30:00Z",
    "/s",
    "x",
    "vixie",
    "skip",
    "@daily",
]
ODD = ["", "-", "--", "=", "5x", "-5", "--quiet", "-j", "=x", "a b", "é", "\udcff", "256", "--no", "on-failure", "a=b"]
texts = st.sampled_from(GOOD + ODD)
words = st.one_of(
    st.sampled_from(LONG),
    st.builds("{}={}".format, st.sampled_from([*LONG, "--quiet", "--help"]), texts),
    st.builds("-{}{}".format, st.text("qcjsztQh", min_size=1, max_size=4), st.sampled_from(["", "x", "5", "=x", "a"])),
    st.sampled_from(["-q", "-c", "--quiet", "--shell", "--dry-run", "--", "-", "-h", "--help", "--tim", "--jo", "---"]),
    texts,
)  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(st.lists(words, max_size=8))
@example(["-q", "--output", "always", "-q", "true"])
@example(["--output", "always", "-q", "--output", "never", "true"])
@example(["-qcjNAME", "exit 3"])
@example(["-j", "--", "--", "true"])
@example(["-t", "5", "-t", "6", "true"])
@example(["-t", "x", "-t", "6", "true"])
def test_both_readers_agree(arguments: list[str]) -> None:
    assert fast.read(arguments) == by_click(arguments)


sound = st.lists(
    st.one_of(
        st.sampled_from([
            ["-j", "letters"], ["-jx"], ["--job=x.y"], ["-q"], ["--quiet"], ["--output", "never"], ["--output=always"],
            ["-t", "5m"], ["-t90"], ["--timeout=1h30m"], ["--kill-after", "0"], ["-s", "30 2 * * *"], ["-s", ""],
            ["--schedule="], ["-zEurope/London"], ["--policy", "nonsense"], ["--gap", "-"], ["--fold=both"],
            ["--ping", "x"], ["--ping-style", ""], ["--conflict-exit", "0"], ["--reason", "--"], ["--dry-run"],
            ["--scheduled-at", "2026-03-29T02:30:00+01:00"], ["--store", "s.sqlite"], ["-qt5"], ["-qj", "-q"],
            ["--overlap", "kill"], ["--wait", "5m"], ["--overlap=allow"], ["--retries", "3"], ["--retry-delay=1"],
        ]),
        st.just([]),
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(sound, st.sampled_from([[], ["--"]]), st.sampled_from([["true"], ["/opt/send", "-q", "--job", "z", "--", "-h"]]))
def test_both_readers_agree_on_sound_lines(options: list[list[str]], end: list[str], command: list[str]) -> None:
    arguments = [word for option in options for word in option] + end + command
    found = fast.read(arguments)
    assert found == by_click(arguments)
    assert found is None or found.command == tuple(command)


@pytest.mark.parametrize(
    ("arguments", "values", "command", "job"),
    [
        (["true"], {}, ("true",), "true"),
        (["-j", "letters", "--", "/opt/send", "--all"], {"job": "letters"}, ("/opt/send", "--all"), "letters"),
        (["-qcjx", "exit 3"], {"output": "on-failure", "shell": True, "job": "x"}, ("exit 3",), "x"),
        (["--timeout=1h", "-t", "90", "true"], {"timeout": 90.0}, ("true",), "true"),
        (["true", "-q", "--", "-h"], {}, ("true", "-q", "--", "-h"), "true"),
        (["--", "--", "x"], None, None, None),
        (["-j", "a", "-"], {"job": "a"}, ("-",), "a"),
        (["--schedule", "", "true"], {"schedule": ""}, ("true",), "true"),
        (["--output", "always", "-q", "true"], {"output": "on-failure"}, ("true",), "true"),
        (["-q", "--output", "always", "true"], {"output": "always"}, ("true",), "true"),
        (["--dry-run", "--reason", "by hand", "true"], {"dry_run": True, "reason": "by hand"}, ("true",), "true"),
        (["--out", "always", "true"], None, None, None),
        (["--reason", "", "true"], None, None, None),
        (["-h"], None, None, None),
        ([], None, None, None),
    ],
)
def test_what_is_read(
    arguments: list[str], values: dict[str, object] | None, command: tuple[str, ...] | None, job: str | None
) -> None:
    expected = None if values is None else Request(values, command or (), job or "")
    assert fast.read(arguments) == expected
    assert by_click(arguments) == expected
