"""`check`: for monitors: a status from 0 to 3, one line, and numbers behind a bar.

The form is that of the Monitoring Plugins Development Guidelines, which NRPE, Icinga and Nagios read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import click

from runguard import clock, config, printable
from runguard.cli.asking import Place, chosen_jobs, find, nothing_recorded, open_records
from runguard.cli.fast import say
from runguard.cli.options import Command, query_options
from runguard.cli.output import emit, page
from runguard.cli.standings_told import COLUMNS, FIELDS, row
from runguard.cli.telling import Telling
from runguard.coverage.levels import CRITICAL, LEVELS, OK, UNKNOWN, WARNING, Assessment, Reason, worst
from runguard.coverage.standing import Standing
from runguard.errors import OutputError, RunguardError, UsageError
from runguard.guard import host
from runguard.instant import SECOND_US, span
from runguard.report.assessment import assessments
from runguard.store.journal import Journal
from runguard.store.reads import Reader

TEXT = """Say in one line whether all is well, for NRPE, Icinga, Nagios and their like; with --json, one object per job.

Critical: the newest window beyond its grace is missing, failed or lost; the last run of a job without a schedule
failed; starts are refused again and again (alarm_after); or the record did not verify. Warning: older windows missing
or held, suspect runs, a run longer than usual, pings that were not delivered, a last success older than max_age, a
journal that is not empty, a record that nobody verified for long (verify_within). Unknown: nothing is on record, or it
cannot be read: that is never ok. Nothing is written but, with --notify, what was told.

--notify tells of each change once, once a day while something is wrong, and of the end once. COMMAND is run by /bin/sh
with the text on its stdin; a URL gets it as a POST. What is not delivered is tried again by the next check.
"""

STATUSES = (
    ("0", "ok"),
    ("1", "warning"),
    ("2", "critical"),
    (
        "3",
        "unknown: also usage, a job that is not known, no records, or records or a configuration that cannot be read",
    ),
)
STATUS_UNKNOWN = LEVELS.index(UNKNOWN)

_LONGEST = 400  # characters of the line before the bar: old NRPE takes 1,024 bytes in all
_BAR = "\\x7c"  # what a bar in somebody's command is shown as: the first one ends the text


class Judgement(NamedTuple):
    """What a monitor is told: the worst level, the line, how each job stands, and what concerns no single job."""

    level: str
    line: str
    jobs: tuple[Assessment, ...]
    general: tuple[Reason, ...] = ()

    @property
    def status(self) -> int:
        """The exit status."""
        return LEVELS.index(self.level)


@click.command("check", cls=Command, help=TEXT, short_help="Say in one line whether all is well.", statuses=STATUSES)
@click.option("-j", "--job", "jobs", metavar="NAME", multiple=True, help="Only this job; may be given several times.")
@click.option("--notify", "targets", metavar="COMMAND|URL", multiple=True,
              help="Whom to tell of changes; may be given several times.")  # fmt: skip
@query_options
@click.pass_obj
def check(
    environ: dict[str, str], jobs: tuple[str, ...], targets: tuple[str, ...], form: str | None, store: str | None
) -> int:
    """Print the line and return the status."""
    now_us = clock.look().wall_us
    telling = Telling(environ, targets, (store or environ.get("RUNGUARD_STORE", ""), *sorted(set(jobs))), now_us)
    try:
        judgement = judge(environ, find(environ, store), jobs, now_us)
    except Exception as error:
        telling.tell_unknown(error)
        raise
    try:
        _print(judgement, form)
    finally:
        telling.tell(judgement.line, judgement.jobs, judgement.general)
    return judgement.status


def _print(judgement: Judgement, form: str | None) -> None:
    try:
        if form in (None, "table"):
            page([judgement.line])
        else:
            emit(form or "json", map(row, judgement.jobs), COLUMNS, FIELDS)
            if not judgement.jobs:
                say(judgement.line)
    except BrokenPipeError:
        pass  # who does not read the line gets the status all the same


def judge(environ: dict[str, str], place: Place, jobs: Sequence[str], now_us: int) -> Judgement:
    """Return what a monitor is told of `jobs`, or of all jobs where none is named.

    Raises UsageError for a job that is not known, StoreError, and ConfigError for a zone or a schedule that is none.
    """
    records = open_records(place)
    if records is None:
        reason = Reason(UNKNOWN, nothing_recorded(place))
        return Judgement(UNKNOWN, line(UNKNOWN, reason.text), (), (reason,))
    found = assessments(environ, place.loaded, records, place.kept, now_us, chosen_jobs(records, place, jobs))
    general = [Reason(WARNING, remark) for remark in records.remarks]
    if not jobs and not any(each.standing.journaled for each in found):
        general += _journal(environ, place)
    if not jobs:
        general += _verified(environ, place, records, now_us)
    if not found:
        general.append(Reason(UNKNOWN, "no job is on record"))
    level = worst([*(each.level for each in found), *(reason.level for reason in general)])
    return Judgement(level, line(level, _told(found, general), _numbers(found, jobs)), tuple(found), tuple(general))


def line(level: str, text: str, numbers: str = "") -> str:
    """Return the line of a plugin: `RUNGUARD CRITICAL - letters: window … missing | jobs=1;;;0`."""
    said = printable.line(text).replace("|", _BAR)
    said = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
    return f"RUNGUARD {level.upper()} - {said}" + (f" | {numbers}" if numbers else "")


def in_a_monitors_words(call: Callable[[], int]) -> int:
    """Do `call`; whatever goes wrong is said on stdout too, where a monitor looks, and is status 3."""
    try:
        return call()
    except OutputError as error:
        say(str(error))
    except RunguardError as error:
        named = str(error) if str(error).startswith("check: ") else f"check: {error}"
        say(named if isinstance(error, UsageError) else str(error))
        _print_unknown(str(error))
    except Exception:  # noqa: BLE001 - a monitor knows no other status than 3 for it
        _print_unknown("a bug in runguard; the traceback is on stderr")
        import traceback

        traceback.print_exc()
    return STATUS_UNKNOWN


def _print_unknown(text: str) -> None:
    try:
        page([line(UNKNOWN, text)])
    except (BrokenPipeError, OutputError):
        return  # the status tells


def _journal(environ: dict[str, str], place: Place) -> list[Reason]:
    """Return that something waits in the journal that belongs to none of the jobs."""
    if not Journal(place.kept.state, host.author(environ)).pending():
        return []
    return [Reason(WARNING, f"the journal in {place.kept.state} is not empty")]


def _verified(environ: dict[str, str], place: Place, records: Reader, now_us: int) -> list[Reason]:
    """Return that the record did not verify when somebody looked last, or that nobody has looked for long."""
    settings, _ = config.effective({}, environ, place.loaded, "")
    limit_us = round(settings.verify_within_s * SECOND_US)
    ((since_us, problems),) = records.rows("verified_lately")
    if problems:
        return [Reason(CRITICAL, f"the record did not verify {span(now_us - since_us)} ago: runguard verify --full")]
    if not limit_us or since_us is None or now_us - since_us < limit_us:
        return []
    return [Reason(WARNING, f"nobody has verified the record for {span(now_us - since_us)}: runguard verify")]


def _told(found: Sequence[Assessment], general: Sequence[Reason]) -> str:
    """Return the reasons, the gravest first, and of those the ones that concern no single job."""
    reasons = [(reason.level, f"{each.standing.job}: {reason.text}") for each in found for reason in each.reasons]
    reasons = [*((reason.level, reason.text) for reason in general), *reasons]
    if not reasons:
        return f"{len(found)} job{'s' * (len(found) != 1)} as expected"
    reasons.sort(key=lambda reason: (CRITICAL, UNKNOWN, WARNING).index(reason[0]))
    return _joined([text for _, text in reasons])


def _joined(texts: Sequence[str]) -> str:
    """Return as many texts as the line takes, and how many more there are."""
    said = texts[0]
    for at, text in enumerate(texts[1:], 1):
        if len(said) + len(text) > _LONGEST - len("; and 1234 more"):
            return f"{said[: _LONGEST - len('…; and 1234 more')]}; and {len(texts) - at} more"
        said += f"; {text}"
    return said


def _numbers(found: Sequence[Assessment], jobs: Sequence[str]) -> str:
    """Return the performance data, 'label'=value[UOM];warn;crit;min: totals, and some of each job that was named."""
    totals = [f"jobs={len(found)};;;0"]
    totals += [f"{level}={sum(each.level == level for each in found)};;;0" for level in LEVELS if level != OK]
    standings = [each.standing for each in found]
    totals += [
        f"missing={sum(len(each.missing) for each in standings)};;;0",
        f"lost={sum(len(each.lost) for each in standings)};;;0",
        f"refused={sum(each.refusals_in_a_row for each in standings)};;;0",
        f"running={sum(len(each.running) for each in standings)};;;0",
        f"undelivered={sum(len(each.undelivered) for each in standings)};;;0",
    ]
    return " ".join([*totals, *(number for each in standings if jobs for number in _numbers_of(each))])


def _numbers_of(standing: Standing) -> Iterator[str]:
    label = printable.line(standing.job).replace("'", "''")
    yield f"'{label} missing'={len(standing.missing)};;;0"
    yield f"'{label} failures'={standing.failures_in_a_row};;;0"
    if standing.last_success is not None:
        age_s = max(standing.now_us - standing.last_success.finished_us, 0) // 1_000_000
        yield f"'{label} age'={age_s}s;;;0"
    if standing.ended is not None and standing.ended.duration_us is not None:
        yield f"'{label} duration'={standing.ended.duration_us / 1_000_000:.3f}s;;;0"
