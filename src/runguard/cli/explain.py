"""`explain CASE`: what touched a case, by which rule and code, what bears on it since, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from runguard import clock, config, values
from runguard.cli.asking import Place, find, known_job, nothing_recorded, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import Column, Row, emit, page
from runguard.cli.spans import when
from runguard.cli.windows_named import Wanted, find_window, target
from runguard.errors import RunguardError, UsageError
from runguard.evidence import erasure, unknown, whynot, words
from runguard.evidence import explain as explaining
from runguard.evidence.found import Asked
from runguard.evidence.ran import Moment
from runguard.guard import host
from runguard.guard.expecting import expecting
from runguard.guard.writing import writing
from runguard.instant import SECOND_US, rfc3339
from runguard.printable import line
from runguard.store.database import ReadOnlyStore
from runguard.store.journal import Journal

TEXT = """Tell what is on record about a case, and what is not known.

Each touch in order: when, by which run, rule and reason, what was changed and sent, which code, who started it. Then
what was written about it later, the windows of its jobs without a success, and what the record does not know. The
numbers are entries of the ledger. That you asked is itself put on record.

With --why-not, why the case was not handled in a window; JOB@WINDOW as runguard windows tells them.
"""

STATUSES = (
    ("0", "told"),
    ("1", "told, and the record is damaged: see the first lines"),
    ("2", "usage, or a case, job or window that is not on record"),
    ("74", "the store cannot be read"),
    ("78", "a mistake in the configuration, with its file and line"),
)
FIELDS = ("case", "at", "touches", "runs", "later", "windows", "unknown", "damage", "entry")
WHY_NOT_FIELDS = ("case", "at", "job", "window", "verdict", "because", "runs", "unknown", "damage", "entry")

_WAIT_S = 5.0  # for other writers; nobody waits longer to read an explanation


@click.command("explain", cls=Command, help=TEXT, short_help="Tell what touched a case.", statuses=STATUSES)
@click.argument("case", metavar="CASE")
@click.option("--at", "at", metavar="WHEN", help="As it was on record then: 2026-03-29, 14:00, last monday, 7d.")
@click.option("--why-not", metavar="JOB@WINDOW", help="Why the case was not handled in that window.")
@click.option("--reason", metavar="TEXT", help="Why you ask; it is put on record with your login.")
@query_options
@click.pass_obj
def explain(
    environ: dict[str, str],
    case: str,
    at: str | None,
    why_not: str | None,
    reason: str | None,
    form: str | None,
    store: str | None,
) -> int:
    """Print the explanation, and put on record that it was asked for."""
    _judge(case, reason)
    now_us = clock.look().wall_us
    past_us = None if at is None else _past(at, now_us)
    window = None if why_not is None else target("explain: --why-not", why_not)
    place = find(environ, store)
    journaled = _bring_over(environ, place)
    moment = Moment(now_us if past_us is None else past_us, place.kept.runs, past=past_us is not None)
    asked = Asked(case, moment, lambda job: _grace_us(environ, place, job), journaled)
    told, known = _tell(place, asked, window)
    answered = None if window is None else f"{told['job']}@{told['window']['key']}"
    question = {"at": told["at"], "why_not": answered}
    told["entry"] = _note(environ, place, case, question, reason, now_us) if known else None
    lines, fields = (words.lines, FIELDS) if window is None else (whynot.lines, WHY_NOT_FIELDS)
    _print(told, form, lines(told), fields)
    return 1 if told["damage"] else 0


def _tell(place: Place, asked: Asked, window: tuple[str, Wanted] | None) -> tuple[dict[str, Any], bool]:
    """Return the answer, and whether the case is on record. Raises UsageError where there is nothing to tell."""
    records = open_records(place)
    if records is None:
        raise UsageError(f"no case {values.short(asked.case)} is on record: {nothing_recorded(place)}")
    with records:
        for remark in records.remarks:
            say(remark)
        if window is not None:
            job = known_job(records, window[0], place)
            named = find_window(records, job, expecting(records, job), window[1])
            return whynot.answer(records, asked, job, named)
        found = explaining.explain(records, asked)
        if found is None:
            raise UsageError(_unknown(records, asked))
    return found, True


def _judge(case: str, reason: str | None) -> None:
    if not case or case.isspace():
        raise UsageError("explain: CASE is empty")
    if reason is not None and not reason.strip():
        raise UsageError("explain: --reason is empty")


def _past(at: str, now_us: int) -> int:
    past_us = when("explain: --at", at).at_us(now_us)
    if past_us > now_us:
        raise UsageError(f"explain: --at ({rfc3339(past_us)}) lies ahead: what will be on record then is not known")
    return past_us


def _bring_over(environ: dict[str, str], place: Place) -> tuple[dict[str, Any], ...]:
    """Bring the journal into the ledger, where that can be; return the entries that wait in it still."""
    journal = Journal(place.kept.state, host.author(environ))
    if not journal.pending():
        return ()
    try:
        with writing(environ, place.kept, create=False, wait_s=_WAIT_S):
            pass
    except RunguardError:
        pass  # what waits is told from where it is
    return tuple(journal.entries())


def _grace_us(environ: dict[str, str], place: Place, job: str) -> int:
    settings, _ = config.effective({}, environ, place.loaded, job)
    return round(settings.grace_s * SECOND_US)


def _unknown(records: ReadOnlyStore, asked: Asked) -> str:
    """Return that a case is not on record, and what was searched. No other case is named: they are of other people."""
    entries, runs, partly = explaining.searched(records)
    then = f" by {rfc3339(asked.moment.at_us)}" if asked.moment.past else ""
    searched = f"{entries:,} case entries of {runs:,} run{'s' * (runs != 1)} were searched, for exactly this id"
    left = f"; of {partly:,} of these runs not all that they wrote is on record" if partly else ""
    pruned = unknown.of_pruned([(*row,) for row in records.rows("pruned", what="cases")])
    left += "".join(f"; {each['text']} (entry {each['entries'][0]})" for each in pruned)
    return (
        f"no case {values.short(asked.case)} is on record{then}: {searched}{left}; to ask why it was not handled:"
        " --why-not JOB@WINDOW"
    )


def _note(
    environ: dict[str, str], place: Place, case: str, question: dict[str, Any], reason: str | None, now_us: int
) -> int | None:
    """Put on record that the case was explained; returns the entry, None where this account cannot."""
    asked = question if any(question.values()) else None
    fields = {"how": "explain", "question": asked, "bundle_sha256": None, "reason": reason}
    try:
        with writing(environ, place.kept, create=False, wait_s=_WAIT_S) as tx:
            about = [erasure.target_of(tx.store, case)]
            return tx.append("access", now_us, {"about": about, **fields}).seq
    except RunguardError as error:
        say(f"explain: that you asked is not on record: {error}")
    return None


def _print(told: dict[str, Any], form: str | None, lines: Iterator[str], fields: tuple[str, ...]) -> None:
    if form not in (None, "table"):
        emit(form or "json", [Row(told, ())], (Column(""),), fields)
        return
    page(map(line, lines), hang=words.HANG)
    if told["entry"]:
        page(["", f"That this was asked is entry {told['entry']} of the ledger."])
