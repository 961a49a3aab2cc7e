"""What is in order is no finding, however the record came to be what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from casework import INTENT, RESULT, put
from entries import run_id
from runguard.evidence.tally import Tally
from runguard.evidence.verify import Since, Trusted, integrity
from runguard.guard.intake import Intake
from runguard.store.sqlite import open_reader
from shell import Shell

Make = Callable[..., tuple[str, str, dict[str, Any]]]
RUN = run_id(1)


@pytest.fixture
def begun(shell: Shell, started: Make) -> Shell:
    """A run that lives and has said 120 things of cases, one of which is no entry."""
    shell.write(started(1, job="letters"))
    said = [{"case": f"HB-{n}", **phase} for n in range(60) for phase in (INTENT, RESULT)]
    put(shell, RUN, *said, b"no entry")
    return shell


def findings(shell: Shell) -> list[str]:
    with open_reader(str(shell.state / "db" / "runguard.sqlite")) as reader:
        return [each.text for each in integrity(reader, Since(), Trusted(), {}, lambda count: None).findings]


def end(shell: Shell, finished: Make, *, journaled: bool) -> None:
    """Record the end of the run as its guard told it; one that the journal took leaves the lists as they are."""
    with shell.open() as store:
        intake = Intake(str(shell.directory / "items"), RUN)
        tally = intake.tally(store)
        fields = finished(1, items=tally.fields(), **({"journaled": True} if journaled else {}))[2]
        with store.write() as tx:
            if not journaled:
                intake.complete(tx, tally)
            tx.append("run.finish", 1_774_747_894_000_000, fields)


def test_an_end_that_the_journal_took_has_left_its_lists_as_they_are(begun: Shell, finished: Make) -> None:
    end(begun, finished, journaled=True)
    assert findings(begun) == []


def test_output_is_kept_after_an_end_that_the_journal_took_and_then_framed_otherwise(
    begun: Shell, finished: Make
) -> None:
    output = {"head_sha256": "0" * 64, "tail_sha256": "0" * 64}
    begun.write(finished(1, output=output, journaled=True, items=Tally(pending_bytes=9).fields()))
    with begun.open() as store, store.write() as tx:
        tx.keep_output(RUN, b"as it was left", b"")
    assert findings(begun) == []


@pytest.mark.parametrize("line", [b'{"case":"HB-9","phase":"note","action":"late"}\n', b"no entry either\n"])
def test_what_came_after_the_end_may_be_on_record_before_a_last_entry_tells_of_it(
    begun: Shell, finished: Make, line: bytes
) -> None:
    end(begun, finished, journaled=False)
    assert findings(begun) == []
    path = begun.directory / "items"
    path.touch(0o600)
    with begun.open() as store:
        intake = Intake(str(path), RUN)
        before = intake.tally(store)
        path.write_bytes(b"\n" * (before.bytes - 1) + b"\n" + line)  # what was taken in is not read again
        while intake.take(store, last=True):
            pass
        assert intake.tally(store)._replace(pending_bytes=0) != before
        assert findings(begun) == []
        with store.write() as tx:
            intake.complete(tx, intake.tally(store), final=True)
    assert findings(begun) == []


def test_a_run_that_took_no_entry_in_at_its_end_tells_of_what_waits(begun: Shell, finished: Make) -> None:
    begun.write(finished(1, items=Tally(pending_bytes=9).fields()))
    assert findings(begun) == []
