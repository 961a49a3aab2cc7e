"""Case entries on record at an instant of the test's choice, and the explanation of a case in this process."""

from __future__ import annotations

import json
from typing import Any

from runguard.evidence import words
from runguard.evidence.explain import explain
from runguard.evidence.found import Asked
from runguard.evidence.ran import Moment
from runguard.evidence.tail import Line
from runguard.guard.batch import Batch
from runguard.guard.intake import list_of
from runguard.instant import SECOND_US, from_rfc3339
from runguard.store import items
from runguard.store.items import Progress
from runguard.store.sqlite import open_reader
from shell import Shell

NOW = "2026-03-31T12:00:00Z"
GRACE_US = 300 * SECOND_US

INTENT = {
    "phase": "intent",
    "action": "reminder",
    "at": "2026-03-29T01:30:05Z",
    "rule": {"id": "R7", "version": "3", "sha256": "ab" * 32},
    "reason": "No reply for 28 days.",
    "inputs": {"last_reply": {"value": "2026-03-01", "source": "register", "date": "2026-03-28"}},
    "before": {"stage": 1},
}
RESULT = {
    "phase": "result",
    "action": "reminder",
    "result": "done",
    "at": "2026-03-29T01:30:06Z",
    "after": {"stage": 2},
    "sent": {"template": "L4", "version": "2", "channel": "post", "reference": "99", "at": "2026-03-29T01:30:06Z"},
}


def put(shell: Shell, run_id: str, *said: dict[str, Any] | bytes, at: str = "2026-03-29T01:30:07Z") -> None:
    """Put entries, or lines that are none, on record as received `at`."""
    with shell.open() as store:
        run = store.run(run_id)
        assert run is not None
        progress = items.progress(store, run.start_seq) or Progress(run.start_seq)
        offset, lines = progress.file_offset, []
        for each in said:
            data = each if isinstance(each, bytes) else json.dumps(each).encode()
            lines.append(Line(offset, len(data) + 1, data))
            offset += len(data) + 1
        batch = Batch(run_id, progress, list_of(store, run.start_seq), from_rfc3339(at))
        batch.add(lines, offset)
        with store.write() as tx:
            batch.write(tx, tell=False)


def asked(shell: Shell, case: str, *, at: str | None = None) -> Asked:
    """Return the question as it is asked at NOW, as of `at`."""
    runs = str(shell.state / "db" / "runs")
    return Asked(case, Moment(from_rfc3339(at or NOW), runs, past=at is not None), lambda _: GRACE_US)


def told(shell: Shell, case: str, *, at: str | None = None) -> dict[str, Any]:
    """Return what explain tells of a case as JSON."""
    with open_reader(str(shell.state / "db" / "runguard.sqlite")) as reader:
        found = explain(reader, asked(shell, case, at=at))
    assert found is not None
    return found


def text(shell: Shell, case: str, *, at: str | None = None) -> list[str]:
    """Return what explain tells of a case as lines, without their indents."""
    return [line.strip() for line in words.lines({**told(shell, case, at=at)})]
