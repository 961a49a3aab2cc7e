"""`check --notify`: what people were told is remembered in a file of the state directory, by target and question.

Told first and remembered afterwards: a message that comes twice is better than one that never comes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from filelock import FileLock, Timeout

from runguard import paths, private
from runguard.coverage.levels import UNKNOWN
from runguard.coverage.notices import Said, notice
from runguard.errors import UnsafeError
from runguard.heartbeat import ownfiles
from runguard.heartbeat.delivering import DEADLINE_S, deliver, is_url
from runguard.heartbeat.redact import mask_url
from runguard.instant import SECOND_US, from_rfc3339, rfc3339
from runguard.report import whole

_LARGEST_BYTES = 1_000_000


class Report(NamedTuple):
    """What a check has found at `now_us`."""

    state: str  # ok | warning | critical | unknown
    levels: Mapping[str, str]  # by job, of all that is not ok; "": what concerns no job
    lines: Sequence[str]  # for people: all in one line, then what is wrong with each job
    now_us: int
    host: str


class Memory:
    """What was told to one target in answer to one question: `asked` names the store and the jobs."""

    def __init__(self, state: str, target: str, asked: Sequence[str]) -> None:
        name = hashlib.sha256("\0".join((target, *asked)).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._state = state
        self.directory = os.path.join(state, "notified")
        self.path = os.path.join(self.directory, f"{name}.json")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from telling the same at once. Raises OSError or UnsafeError, and Timeout."""
        paths.prepare(self._state)
        if flaw := private.make(self.directory):
            raise UnsafeError(f"{self.directory}: {flaw}")
        with FileLock(f"{self.path}.lock", timeout=DEADLINE_S + 5, mode=0o600):
            yield

    def read(self) -> Said | None:
        """Return what was told last, or None. Raises OSError or ValueError."""
        try:
            with open(ownfiles.opened(self.path), "rb") as file:
                content = file.read(_LARGEST_BYTES)
        except FileNotFoundError:
            return None
        try:
            told = json.loads(content)
            levels = {str(job): str(level) for job, level in told["levels"].items()}
            return Said(levels, from_rfc3339(told["said"]), int(told["repeats"]))
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            raise ValueError("it is damaged") from None

    def write(self, said: Said) -> None:
        """Remember what was told. Raises OSError."""
        told = {"levels": dict(said.levels), "said": rfc3339(said.said_us), "repeats": said.repeats}
        whole.write(self.path, json.dumps(told).encode(), 0o600)


def notify(target: str, report: Report, memory: Memory, environ: Mapping[str, str]) -> list[str]:
    """Tell `target` of the report, if there is anything new to tell; return what went wrong, in lines."""
    try:
        with memory.alone():
            return _notify(target, report, memory, environ)
    except Timeout:
        return [f"another check is still telling {_shown(target)}"]
    except (OSError, UnsafeError) as error:
        # Nothing is remembered, so everything is told.
        wrong = [f"what was told cannot be remembered, so it may be told again: {_reason(error)}"]
        return wrong + (_tell(target, report, "problem", None, environ) if report.levels else [])


def _notify(target: str, report: Report, memory: Memory, environ: Mapping[str, str]) -> list[str]:
    wrong = []
    said: Said | None = None
    try:
        said = memory.read()
    except (OSError, ValueError) as error:
        wrong.append(f"{memory.path}: {_reason(error)}; what is wrong is told again")
    found = notice(said, report.levels, report.now_us)
    if found is None:
        return wrong
    failed = _tell(target, report, found.event, said, environ)
    if failed:
        return wrong + failed
    try:
        memory.write(found.said)
    except OSError as error:
        wrong.append(f"{memory.path}: {_reason(error)}; the same may be told again")
    return wrong


def _tell(target: str, report: Report, event: str, said: Said | None, environ: Mapping[str, str]) -> list[str]:
    """Tell, and return that it failed, if so."""
    before = said.levels if said and report.levels.get("") != UNKNOWN else {}  # then nothing is known of any job
    recovered = sorted(job for job in before if job and job not in report.levels)
    facts = {
        "RUNGUARD_CHECK_STATE": report.state,
        "RUNGUARD_CHECK_EVENT": event,
        "RUNGUARD_CHECK_JOBS": " ".join(sorted(job for job in report.levels if job)),
        "RUNGUARD_CHECK_RECOVERED": " ".join(recovered),
        "RUNGUARD_CHECK_HOST": report.host,
    }
    first, *others = report.lines
    if event == "repeat" and said is not None:
        others.insert(0, f"As told first at {rfc3339(said.said_us // SECOND_US * SECOND_US)}; repeated once a day.")
    if recovered:
        others.insert(0, f"Recovered: {', '.join(recovered)}.")
    why = deliver(target, "\n".join([first, *others]), facts, environ)
    return [f"{_shown(target)} was not told: {why}; the next check tries again"] if why else []


def _shown(target: str) -> str:
    return mask_url(target) if is_url(target) else "the command"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error).removesuffix("; nothing was started")
