"""The command of a start: which code it is, what the record says of it, and how it is to be run."""

from __future__ import annotations

import sys

from runguard.errors import SpawnError
from runguard.guard import process, provenance
from runguard.guard.start import command_environ
from runguard.heartbeat.redact import mask_argv, mask_text
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runguard.guard.prepare import Prepared
    from runguard.guard.provenance import Provenance
    from runguard.guard.start import Start
    from runguard.model import Window
    from runguard.paths import Places

_PYTHON = ".".join(str(part) for part in sys.version_info[:3])


class Command(NamedTuple):
    """What is to be run, and what the entry of a start says of it."""

    code: Provenance
    fields: dict[str, Any]


def describe(prepared: Prepared) -> Command:
    """Return the command of a start as it is now."""
    code = _code_of(prepared.start)
    return Command(code, _fields_of(prepared, code))


def plan_of(
    prepared: Prepared,
    places: Places,
    inherit: tuple[int, ...],
    window: Window | None,
    attempt: int,
    more: dict[str, str],
    *,
    tries_left: bool,
) -> process.Plan:
    """Return how the command is to be run as `attempt` of `window`, inheriting the descriptors `inherit`.

    `more` are variables of this run that are not the start's.
    """
    settings = prepared.settings
    return process.Plan(
        argv=prepared.start.argv,
        environ=command_environ(prepared.start, window, attempt) | more,
        shell=settings.shell,
        inherit=inherit,
        timeout_s=settings.timeout_s,
        kill_after_s=settings.kill_after_s,
        output=settings.output,
        tries_left=tries_left,
        stragglers=settings.stragglers,
        spool_dir=places.spool,
    )


def _code_of(start: Start) -> Provenance:
    """Describe the program that will run and the scripts it is given; what cannot be found is told by the spawn."""
    if start.shell:
        words = tuple(word.strip("'\"();&|<>") for word in start.argv[0].split())
        return provenance.describe(process.SHELL, words)
    try:
        program: str | None = process.find_program(start.argv[0], start.environ.get("PATH"))
    except SpawnError:
        program = None
    return provenance.describe(program, start.argv[1:])


def _fields_of(prepared: Prepared, code: Provenance) -> dict[str, Any]:
    """Return what the entry of a start says of its command."""
    start, settings = prepared.start, prepared.settings
    argv, was_masked = mask_argv(start.argv, prepared.secrets, settings.mask)

    def masked(text: str) -> str:
        return mask_text(text, prepared.secrets, settings.mask)

    return {
        "argv": argv,
        "masked": was_masked,
        "shell": start.shell,
        "cwd": start.cwd,
        "path": start.environ.get("PATH"),
        "program": code.program.fields(masked) if code.program else None,
        "inputs": [each.fields(masked) for each in code.inputs],
        "commit": code.commit,
        "python": _PYTHON,
    }
