"""What bad input gets: one line that names the thing and the place, the right status, and nothing half done."""

from __future__ import annotations

import os
import pwd
from typing import Any

import pytest
from bad_input import LOUD, REFUSED, USAGE, Bad


def feed(shell: Any, bad: Bad) -> Any:
    def filled(text: str) -> str:
        text = text.replace("{dir}", str(shell.directory)).replace("{uid}", str(os.geteuid()))
        return text.replace("{account}", pwd.getpwuid(os.getuid()).pw_name)

    shell.config.write_text(bad.config)
    for name, text in bad.files.items():
        (shell.directory / name).write_text(text)
    environ = {name: filled(text) for name, text in bad.environ.items()}
    done = shell(*(filled(argument) for argument in bad.arguments), environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == (bad.status, "", f"runguard: {filled(bad.message)}\n")


def name_of(bad: Bad) -> str:
    return ascii(" ".join(bad.arguments)[:40] or bad.message[:40])


@pytest.mark.parametrize("bad", USAGE, ids=name_of)
def test_a_usage_error_starts_nothing(shell: Any, bad: Bad) -> None:
    feed(shell, bad)
    assert not shell.state.exists()


@pytest.mark.parametrize("bad", LOUD, ids=name_of)
def test_a_mistake_that_a_job_survives_is_said_and_the_job_runs(shell: Any, bad: Bad) -> None:
    feed(shell, bad)
    shell.config.write_text("")
    (run,) = shell.json("history")
    assert run["outcome"] == "succeeded"


@pytest.mark.parametrize("bad", REFUSED, ids=name_of)
def test_what_would_be_unsafe_is_refused(shell: Any, bad: Bad) -> None:
    feed(shell, bad)
    assert not (shell.state / "db").exists()
