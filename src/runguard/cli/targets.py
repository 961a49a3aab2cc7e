"""What later entries are about, as people name it on the command line: cases, runs, jobs, spans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from runguard import values
from runguard.cli.asking import Place, known_job, known_run
from runguard.cli.spans import when
from runguard.errors import UsageError
from runguard.evidence.entries import MOST_CHARACTERS
from runguard.instant import rfc3339
from runguard.store.database import ReadOnlyStore

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Target = dict[str, Any]


def target_options(command: Decorated) -> Decorated:
    """Add `--case`, `--run`, `--job` and `--span`."""
    for options in (
        (("--span",), {"metavar": "SINCE..UNTIL", "help": "Runs started then; with --job those of the job."}),
        (("--job",), {"metavar": "JOB", "help": "All runs of a job and their cases."}),
        (("--run",), {"metavar": "RUN", "help": "A run and all its cases, by its number or id."}),
        (("--case", "cases"), {"metavar": "ID", "multiple": True, "help": "A case; also several."}),
    ):
        command = click.option(*options[0], **options[1])(command)
    return command


def targets(
    command: str,
    records: ReadOnlyStore | None,
    place: Place,
    now_us: int,
    cases: tuple[str, ...],
    run: str | None,
    job: str | None,
    span: str | None,
) -> list[Target]:
    """Return what was named: one or more cases, or one of the others. Raises UsageError for none, or for several."""
    given = [bool(cases), run is not None, job is not None or span is not None]
    if sum(given) > 1:
        raise UsageError(f"{command}: either cases, a run, or a job and a span")
    if cases:
        return [{"case": case_id(command, each)} for each in dict.fromkeys(cases)]
    if run is not None:
        return [{"run": known_run(records, run, place).run_id}]
    found: Target = {} if job is None else {"job": known_job(records, job, place)}
    if span is not None:
        since_us, until_us = ends(f"{command}: --span", span, now_us)
        found |= {"since": rfc3339(since_us), "until": rfc3339(until_us)}
    return [found] if found else []


def case_id(command: str, text: str) -> str:
    """Return the text where it can be a case id. Raises UsageError."""
    if not text.strip() or len(text) > MOST_CHARACTERS:
        raise UsageError(f"{command}: {values.short(text)} is no case id: 1 to {MOST_CHARACTERS} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{command}: a case id is UTF-8") from None
    return text


def ends(option: str, text: str, now_us: int) -> tuple[int, int]:
    """Return the two ends of `SINCE..UNTIL`. Raises UsageError, which names the option."""
    first, dots, last = text.partition("..")
    if not dots or not first.strip() or not last.strip():
        example = "2026-03-01..2026-04-01"
        raise UsageError(f"{option}: {values.short(text)} is no span: SINCE..UNTIL is wanted, as in {example}")
    since_us, until_us = when(option, first).at_us(now_us), when(option, last).at_us(now_us)
    if since_us >= until_us:
        raise UsageError(f"{option}: {rfc3339(since_us)} is not before {rfc3339(until_us)}")
    return since_us, until_us


def reason_of(command: str, reason: str | None, whose: str) -> str:
    """Return the reason. Raises UsageError where there is none: `whose` says who owes it."""
    if reason is None or not reason.strip():
        raise UsageError(f"{command}: --reason TEXT is {'needed' if reason is None else 'empty'}: {whose}")
    return reason
