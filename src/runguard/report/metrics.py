"""How jobs stand, as Prometheus reads it: the text format of the node exporter's textfile collector.

Every job has the same series, whether there is anything to say or not: a series that comes and goes ends an alert. What
does not exist is NaN, which no `>` or `<` holds for, so that `time() - runguard_running_since…` is silent while nothing
runs. Only a success that never was is 0: its age is to be an alarm.

The label is `job_name`, because Prometheus gives `job` to what it scrapes. HELP texts never depend on what is told: of
two files that differ in them the node exporter drops samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from runguard import printable
from runguard.coverage.levels import LEVELS
from runguard.heartbeat.styles import pushgateway
from runguard.instant import SECOND_US

if TYPE_CHECKING:
    from runguard.coverage.levels import Assessment
    from runguard.coverage.standing import Standing

NOTHING = "NaN"


class Family(NamedTuple):
    """One metric, and what HELP says of it."""

    name: str
    meaning: str


LEVEL = Family("runguard_level", "How the job stands: 0 ok, 1 warning, 2 critical, 3 unknown.")
READABLE = Family("runguard_store_readable", "1 if the records could be read, else 0.")
GENERATED = Family("runguard_generated_timestamp_seconds", "When this was read from the records, in Unix time.")


def exposition(assessed: Iterable[Assessment], store: str, now_us: int, *, readable: bool = True) -> str:
    """Return the metrics of jobs whose records are in `store`; a retired job has none."""
    jobs = [(_labels(job_name=each.standing.job, store=store), each) for each in assessed if not each.standing.retired]
    families = [_family(LEVEL, [(labels, str(LEVELS.index(each.level))) for labels, each in jobs])]
    families += [
        _family(family, [(labels, value(each.standing)) for labels, each in jobs]) for family, value in SERIES.items()
    ]
    families.append(_family(GENERATED, [(_labels(store=store), _seconds(now_us))]))
    return "".join([*families, _readable(store, str(int(readable)))])


def names() -> list[str]:
    """Return the names of all metrics, in the order in which they are written."""
    return [family.name for family in (LEVEL, *SERIES, GENERATED, READABLE)]


def unreadable(before: str, store: str) -> str:
    """Return `before`, the metrics that were written last, with the records of `store` as not readable now.

    What was said of the jobs stays, with the time when it was read: that the records are gone ends no alert.
    """
    said = _sample(READABLE, _labels(store=store), "")
    if f"\n{said}" not in before:
        return _readable(store, "0")
    return "".join(
        _sample(READABLE, _labels(store=store), "0\n") if line.startswith(said) else line
        for line in before.splitlines(keepends=True)
    )


def _success(standing: Standing) -> str:
    return _seconds(standing.last_success.finished_us if standing.last_success else 0)


def _exit_status(standing: Standing) -> str:
    """Return the status of the last end, never 0 for one that was no success."""
    ended = standing.ended
    if ended is None:
        return NOTHING
    if ended.outcome == "succeeded" and ended.suspect is None:
        return "0"
    return str(standing.last_exit or 1)


def _duration(standing: Standing) -> str:
    ended = standing.ended
    return NOTHING if ended is None or ended.duration_us is None else _seconds(ended.duration_us)


def _seconds(at_us: int | None) -> str:
    """Return an instant or a span in seconds, exactly."""
    if at_us is None:
        return NOTHING
    seconds, fraction_us = divmod(at_us, SECOND_US)
    return f"{seconds}.{fraction_us:06d}".rstrip("0").rstrip(".")


SERIES: dict[Family, Callable[[Standing], str]] = {
    # These are also what the Pushgateway is sent of a run.
    Family(*pushgateway.LAST_SUCCESS): _success,
    Family(*pushgateway.LAST_EXIT): _exit_status,
    Family(*pushgateway.LAST_FINISH): lambda job: _seconds(job.ended.finished_us if job.ended else None),
    Family(*pushgateway.LAST_DURATION): _duration,
    Family("runguard_missing_windows", "Windows of the last days that nobody answered in time."): (
        lambda job: str(len(job.missing))
    ),
    Family("runguard_refusals_in_a_row", "Starts refused since the last that ran."): (
        lambda job: str(job.refusals_in_a_row)
    ),
    Family("runguard_failures_in_a_row", "Runs since the last success that were none."): (
        lambda job: str(job.failures_in_a_row)
    ),
    Family("runguard_running_since_timestamp_seconds", "When the run that goes on was started, in Unix time."): (
        lambda job: _seconds(min((run.started_us for run in job.running), default=None))  # of several the oldest
    ),
    Family("runguard_next_due_timestamp_seconds", "When the job's next window is due, in Unix time."): (
        lambda job: _seconds(job.next_due_us)
    ),
}


def _readable(store: str, value: str) -> str:
    return _family(READABLE, [(_labels(store=store), value)])


def _family(family: Family, samples: Sequence[tuple[str, str]]) -> str:
    head = f"# HELP {family.name} {family.meaning}\n# TYPE {family.name} gauge\n"
    return head + "".join(_sample(family, labels, f"{value}\n") for labels, value in samples)


def _sample(family: Family, labels: str, value: str) -> str:
    return f"{family.name}{{{labels}}} {value}"


def _labels(**values: str) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())


def _escaped(value: str) -> str:
    """Return a label's value: valid UTF-8 on one line, backslashes and quotation marks escaped."""
    return printable.line(value).replace("\\", "\\\\").replace('"', '\\"')
