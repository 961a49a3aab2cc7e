"""`check --notify`: what a check has found, as people are told of it."""

from __future__ import annotations

from collections.abc import Sequence

from runguard import paths, printable
from runguard.cli.fast import say
from runguard.config.files import secret
from runguard.coverage.levels import OK, UNKNOWN, Assessment, Reason, worst
from runguard.errors import RunguardError, UsageError
from runguard.guard import host
from runguard.report.notifying import Memory, Report, notify

_MOST_JOBS = 50


class Telling:
    """Whom to tell what a check at `now_us` has found; `asked` names the question: the store and the jobs.

    Whatever goes wrong is a line on stderr. Raises UsageError for a target that is none.
    """

    def __init__(self, environ: dict[str, str], targets: Sequence[str], asked: Sequence[str], now_us: int) -> None:
        if not all(target.strip() for target in targets):
            raise UsageError("check: --notify: is empty")
        self._environ = environ
        self._targets = targets
        self._asked = asked
        self._now_us = now_us

    def tell(self, line: str, jobs: Sequence[Assessment], general: Sequence[Reason]) -> None:
        """Tell the line of a check, and every reason of every job that is not ok, where that is news."""
        wrong = [each for each in jobs if each.level != OK]
        levels = {each.standing.job: each.level for each in wrong}
        if general:
            levels[""] = worst([reason.level for reason in general])
        line = line.partition(" | ")[0]
        lines = [line, *(reason.text for reason in general if reason.text not in line)]
        for each in wrong[:_MOST_JOBS]:
            lines += [f"{each.standing.job} is {each.level}:", *(f"  {reason.text}" for reason in each.reasons)]
        if len(wrong) > _MOST_JOBS:
            lines.append(f"and {len(wrong) - _MOST_JOBS} jobs more")
        self._tell(levels, lines)

    def tell_unknown(self, error: Exception) -> None:
        """Tell that nothing could be found out."""
        said = str(error) if isinstance(error, RunguardError) else f"a bug in runguard: {type(error).__name__}"
        self._tell({"": UNKNOWN}, [f"RUNGUARD UNKNOWN - {said}"])

    def _tell(self, levels: dict[str, str], lines: Sequence[str]) -> None:
        state = worst([OK, *levels.values()])
        report = Report(state, levels, [printable.line(each) for each in lines], self._now_us, host.name())
        for target in self._targets:
            try:
                where = secret(target.removeprefix("file:")) if target.startswith("file:") else target
                memory = Memory(paths.state_directory(self._environ), target, self._asked)
                for wrong in notify(where, report, memory, self._environ):
                    say(f"check: --notify: {wrong}")
            except (RunguardError, ValueError) as error:
                say(f"check: --notify: {error}; nobody was told")
