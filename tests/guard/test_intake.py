"""Case entries on their way from a job's file into the store."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runguard.errors import StoreError
from runguard.evidence import lists
from runguard.evidence.tally import Tally
from runguard.guard.intake import Intake, list_of, told_of
from runguard.store import items
from runguard.store.database import Store
from shell import Shell

RUN = "3f0c12ab-7c1e-4d0b-9a55-0123456789ab"


def entry(case: str, phase: str = "intent", **fields: Any) -> bytes:
    return json.dumps({"case": case, "phase": phase, "action": "reminder", **fields}).encode() + b"\n"


def result(case: str, result: str = "done", **fields: Any) -> bytes:
    return entry(case, "result", result=result, **fields)


@pytest.fixture
def store(shell: Shell) -> Iterator[Store]:
    shell.write(
        (
            "run.start",
            "2026-03-29T01:30:00Z",
            {"run_id": RUN, "number": 1, "job": "x", "window": None, "attempt": 1, "trigger": "schedule"},
        )
    )
    with shell.open() as opened:
        yield opened


class Desk:
    """A file of one run, and who takes it in."""

    def __init__(self, path: Path, store: Store) -> None:
        self.path = path
        self.store = store
        path.touch(0o600)
        self.intake = Intake(str(path), RUN)

    def add(self, *lines: bytes) -> None:
        with open(self.path, "ab") as file:
            file.writelines(lines)

    def take(self, *, last: bool = True) -> Tally:
        while self.intake.take(self.store, last=last):
            pass
        return self.intake.tally(self.store)

    def records(self) -> list[items.Record]:
        return list(items.records(self.store, *lists.bounds(1)))

    def rejects(self) -> list[items.Reject]:
        return list(items.rejects(self.store, 1))

    def entries(self) -> list[dict[str, Any]]:
        rows = sqlite3.connect(self.store.path).execute("SELECT line FROM ledger ORDER BY seq").fetchall()
        return [json.loads(line) for (line,) in rows]


@pytest.fixture
def desk(shell: Shell, store: Store) -> Desk:
    return Desk(shell.directory / "items", store)


def test_each_line_becomes_a_record_with_a_salt_of_its_own(desk: Desk) -> None:
    desk.add(entry("HB-1", key="k"), result("HB-1", key="k"))
    desk.take()
    first, second = desk.records()
    assert (first.id, first.case, first.said, first.file_offset) == (lists.number(1, 1), "HB-1", "intent", 0)
    assert (second.id, second.said, second.file_offset) == (lists.number(1, 2), "done", len(entry("HB-1", key="k")))
    found = json.loads(first.line)
    assert list(found) == ["v", "run", "seq", "salt", "item"]
    assert (found["v"], found["run"], found["seq"]) == (1, RUN, 1)
    assert found["salt"] != json.loads(second.line)["salt"]
    assert lists.item_of(first.line) + b"\n" == entry("HB-1", key="k")


def test_the_entries_of_a_run_are_counted(desk: Desk) -> None:
    desk.add(b'{"expected": 6}\n')
    desk.add(
        entry("HB-1"), result("HB-1"), entry("HB-2"), result("HB-2", "failed"), entry("HB-3"), entry("HB-3", "note")
    )
    desk.add(result("HB-4", "skipped"), result("HB-5", "no_action"), entry("HB-6", "note"))
    tally = desk.take()
    assert tally._replace(list_sha256=None, bytes=0) == Tally(
        entries=9, cases=5, done=1, no_action=1, failed=1, skipped=1, uncertain=1, expected=6
    )
    assert (
        tally.verdict() == "4 of 6 cases accounted for: 5 of 6 expected cases were reached, 1 case uncertain, 1 failed"
    )
    assert tally.list_sha256 == list_of(desk.store, 1).sha256()


def test_an_intent_waits_for_the_result_with_its_key(desk: Desk) -> None:
    desk.add(entry("HB-1", key="a"), entry("HB-1", key="b"), result("HB-1", key="b"))
    assert desk.take().uncertain == 1
    assert items.still_open(desk.store, 1) == [items.Open("HB-1", "a", lists.number(1, 1))]


def test_a_result_closes_an_intent_that_was_taken_in_before(desk: Desk) -> None:
    desk.add(entry("HB-1"), entry("HB-2"))
    desk.take(last=False)
    desk.add(result("HB-1"), entry("HB-1"), result("HB-1"))
    tally = desk.take()
    assert (tally.cases, tally.uncertain, tally.unannounced) == (2, 1, 0)
    assert [each.case for each in items.still_open(desk.store, 1)] == ["HB-2"]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_result_without_an_intent_is_on_record_and_counted(desk: Desk, at_once: bool) -> None:
    for line in (result("HB-1"), entry("HB-2"), result("HB-2"), result("HB-2", "failed"), result("HB-3", "skipped")):
        desk.add(line)
        if not at_once:
            desk.take()
    tally = desk.take()
    assert (tally.cases, tally.done, tally.failed, tally.unannounced, tally.rejected) == (3, 2, 1, 2, 0)


@pytest.mark.parametrize("sizes", [[2500], [999, 1, 1500], [1001, 1499], [1] * 3])
def test_a_case_is_counted_once_wherever_its_entries_fall(desk: Desk, sizes: list[int]) -> None:
    number = 0
    for size in sizes:
        for _ in range(size):
            desk.add(result(f"HB-{number % 1300}"))
            number += 1
        desk.take(last=False)
    tally = desk.take()
    assert (tally.entries, tally.cases) == (number, min(number, 1300))
    assert len(items.of_case(desk.store, "HB-1")) == (2 if number > 1300 else 1)


def test_what_is_no_entry_is_kept_aside_and_the_next_line_counts(desk: Desk) -> None:
    torn = b'{"case":"HB-1","phase":"int'
    desk.add(entry("HB-0"), torn + entry("HB-1"), b"\xff\xfe\n", entry("HB-2"), torn)
    tally = desk.take()
    assert (tally.entries, tally.rejected) == (2, 3)
    first, second, third = desk.rejects()
    whole = torn + entry("HB-1")
    assert first.file_offset == len(entry("HB-0"))
    assert (first.size_bytes, first.lines, first.head) == (len(whole), 1, whole)
    assert first.sha256 == hashlib.sha256(whole).hexdigest()
    assert first.why.startswith("it is no JSON")
    assert second.why == "it is no UTF-8 (byte 1)"
    assert (third.head, third.sha256) == (torn, hashlib.sha256(torn).hexdigest())
    told = b"".join(b"%s  x%010d\n" % (each.sha256.encode(), each.file_offset) for each in desk.rejects())
    assert tally.rejected_sha256 == hashlib.sha256(told).hexdigest()


def test_a_line_beyond_all_measure_is_hashed_and_its_beginning_kept(desk: Desk) -> None:
    long = b'{"case":"' + b"x" * 3_000_000 + b'"}\n'
    desk.add(long, entry("HB-1"))
    assert desk.take().entries == 1
    [kept] = desk.rejects()
    assert (kept.size_bytes, kept.sha256) == (len(long), hashlib.sha256(long).hexdigest())
    assert kept.head == long[:256]
    assert kept.why == f"it is {len(long)} bytes long, more than 65536"


def test_of_endless_garbage_a_thousand_lines_are_kept_singly(desk: Desk) -> None:
    desk.add(b"garbage\n" * 3500, entry("HB-1"), b"garbage\n")
    tally = desk.take()
    assert (tally.entries, tally.rejected) == (1, 3501)
    kept = desk.rejects()
    assert sum(each.lines for each in kept) == 3501
    assert len(kept) < 1010
    assert kept[1000].sha256 == hashlib.sha256(b"garbage\n" * kept[1000].lines).hexdigest()


def test_a_whole_entry_without_a_newline_at_the_end_counts(desk: Desk) -> None:
    desk.add(entry("HB-1").rstrip(b"\n"))
    assert desk.take().entries == 1


def test_empty_lines_say_nothing(desk: Desk) -> None:
    desk.add(b"\n\n", b'{"expected": 1}\n', b"\n", result("HB-1"), b"\n")
    assert desk.take()._replace(list_sha256=None) == Tally(
        entries=1, cases=1, done=1, expected=1, unannounced=1, bytes=desk.path.stat().st_size
    )


@pytest.mark.parametrize("before", [entry("HB-1"), b"garbage\n", b'{"expected": 2}\n'])
def test_only_the_first_line_says_how_many_are_expected(desk: Desk, before: bytes) -> None:
    desk.add(before, b'{"expected": 3}\n')
    desk.take()
    assert desk.rejects()[-1].why == "expected stands in the first line only"


def test_who_begins_anew_goes_on_where_the_record_ends(desk: Desk) -> None:
    desk.add(*(result(f"HB-{n}") for n in range(150)))
    desk.take(last=False)
    desk.add(*(result(f"HB-{n}") for n in range(150, 330)), b"bad\n")
    desk.intake = Intake(str(desk.path), RUN)
    tally = desk.take()
    assert (tally.entries, tally.cases, tally.rejected) == (330, 330, 1)
    assert [record.case for record in desk.records()] == [f"HB-{n}" for n in range(330)]
    assert b"".join(items.digests(desk.store, *lists.bounds(1))) == b"".join(
        hashlib.sha256(record.line).digest() for record in desk.records()[:300]
    )


def test_of_two_who_take_in_one_file_each_line_is_on_record_once(desk: Desk) -> None:
    other = Intake(str(desk.path), RUN)
    for n in range(5):
        desk.add(*(result(f"HB-{n}-{m}") for m in range(40)))
        desk.take(last=False)
        desk.add(result(f"HB-{n}"))
        while other.take(desk.store):
            pass
    assert desk.take().entries == 205
    assert len({record.case for record in desk.records()}) == 205


def test_a_file_that_the_job_truncated_goes_on_and_that_is_on_record(desk: Desk) -> None:
    desk.add(result("HB-1"), result("HB-2"))
    size = desk.path.stat().st_size
    desk.take(last=False)
    desk.path.write_bytes(result("HB-3"))
    tally = desk.take()
    assert (tally.entries, tally.rejected, tally.pending_bytes) == (3, 1, 0)
    [kept] = desk.rejects()
    assert kept.why == f"the file was truncated to {len(result('HB-3'))} bytes after {size} bytes were on record"


def test_a_file_that_the_job_replaced_is_read_too_and_that_is_on_record(desk: Desk) -> None:
    desk.add(result("HB-1"))
    desk.take(last=False)
    desk.add(result("HB-2"))
    desk.path.rename(desk.path.with_name("old"))
    desk.path.touch(0o600)
    desk.add(result("HB-3"))
    tally = desk.take()
    assert (tally.entries, tally.rejected, tally.pending_bytes) == (3, 1, 0)
    why = f"the file was replaced by another after {2 * len(result('HB-1'))} bytes were on record"
    assert [each.why for each in desk.rejects()] == [why]


def test_a_file_that_the_job_removed_is_read_to_its_end(desk: Desk) -> None:
    desk.add(result("HB-1"))
    desk.take(last=False)
    desk.add(result("HB-2"))
    desk.path.unlink()
    tally = desk.take()
    assert (tally.entries, tally.rejected, tally.pending_bytes) == (2, 0, 0)


def test_the_ledger_names_the_list_every_thousand_entries(desk: Desk) -> None:
    desk.add(*(result(f"HB-{n}") for n in range(2500)))
    desk.take(last=False)
    told = [each for each in desk.entries() if each["kind"] == "items"]
    assert [each["items"]["entries"] for each in told] == [1000, 2000]
    first = lists.RunList()
    first.extend(record.line for record in desk.records()[:1000])
    assert told[0]["items"]["list_sha256"] == first.sha256()
    assert told[0]["final"] is False
    assert told[0]["run_id"] == RUN


def test_with_the_end_the_lists_are_complete(desk: Desk) -> None:
    desk.add(*(result(f"HB-{n}") for n in range(130)))
    tally = desk.take()
    with desk.store.write() as tx:
        desk.intake.complete(tx, tally, final=True)
    assert b"".join(items.digests(desk.store, *lists.bounds(1))) == b"".join(
        hashlib.sha256(record.line).digest() for record in desk.records()
    )
    assert desk.entries()[-1]["items"] == tally.fields()
    assert desk.entries()[-1]["final"] is True
    found = items.progress(desk.store, 1)
    assert found is not None
    assert (found.complete, found.told) == (1, 130)


def test_what_comes_after_the_end_is_taken_in_too(desk: Desk) -> None:
    desk.add(*(result(f"HB-{n}") for n in range(130)))
    tally = desk.take()
    with desk.store.write() as tx:
        desk.intake.complete(tx, tally)
    desk.add(*(result(f"HB-{n}") for n in range(130, 290)))
    desk.intake = Intake(str(desk.path), RUN)
    later = desk.take()
    with desk.store.write() as tx:
        desk.intake.complete(tx, later, final=True)
    whole = lists.RunList()
    whole.extend(record.line for record in desk.records())
    assert (later.entries, later.list_sha256) == (290, whole.sha256())
    assert list_of(desk.store, 1).sha256() == whole.sha256()


def test_over_the_limit_of_entries_the_run_is_marked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_ENTRIES", 1500)
    lines = [result(f"HB-{n}") for n in range(1600)]
    desk.add(*lines)
    tally = desk.take()
    assert (tally.entries, tally.beyond_bytes) == (1500, sum(map(len, lines[1500:])))
    desk.add(result("HB-0"))
    assert desk.take().beyond_bytes == sum(map(len, lines[1500:])) + len(result("HB-0"))
    assert "over the limit are not on record" in (tally.verdict() or "")


def test_over_the_limit_of_bytes_the_run_is_marked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_BYTES", 1000)
    desk.add(result("HB-1"), result("HB-2", reason="x" * 1000), result("HB-3"))
    tally = desk.take()
    assert (tally.entries, tally.pending_bytes) == (1, 0)
    assert tally.beyond_bytes == desk.path.stat().st_size - len(result("HB-1"))


def test_what_is_not_on_record_yet_is_told_in_bytes(desk: Desk) -> None:
    desk.add(result("HB-1"), b"torn")
    assert desk.take(last=False).pending_bytes == 4


def test_a_run_whose_start_is_not_on_record_waits(desk: Desk) -> None:
    desk.add(result("HB-1"))
    other = Intake(str(desk.path), "00000000-7c1e-4d0b-9a55-0123456789ab")
    with pytest.raises(StoreError, match="the start of run 00000000-7c1e-4d0b-9a55-0123456789ab is not on record yet"):
        other.take(desk.store)


def test_a_file_that_is_not_ours_alone_is_not_read(desk: Desk) -> None:
    desk.path.chmod(0o666)
    with pytest.raises(OSError, match="others may write"):
        desk.take()


def test_personal_data_is_warned_of_by_the_place_of_its_entry(desk: Desk) -> None:
    desk.add(result("HB-1"), result("ann@example.org"), result("HB-2", reason="rang 020 7946 0018"))
    desk.take()
    assert list(told_of(desk.intake.personal)) == [
        "case or reason of case entry 2 looks like an e-mail address: a record that is kept for years needs none",
        "case or reason of case entry 3 looks like a phone number: a record that is kept for years needs none",
    ]


def test_case_entries_are_never_edited(desk: Desk) -> None:
    desk.add(result("HB-1"), b"bad\n", *(result("HB-2") for _ in range(100)))
    desk.take()
    database = sqlite3.connect(desk.store.path)
    for table, change in (("item", "line = x'00'"), ("item_list", "digests = x''"), ("item_rejected", "why = ''")):
        with pytest.raises(sqlite3.IntegrityError, match="never edited"):
            database.execute(f"UPDATE {table} SET {change}")
        with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
            database.execute(f"DELETE FROM {table}")


def test_a_case_with_a_newline_is_found_by_it(desk: Desk) -> None:
    desk.add(result("HB\n1"))
    desk.take()
    assert len(items.of_case(desk.store, "HB\n1")) == 1


def test_a_link_in_the_place_of_the_file_is_not_followed(desk: Desk) -> None:
    os.rename(desk.path, f"{desk.path}.real")
    os.symlink(f"{desk.path}.real", desk.path)
    with pytest.raises(OSError, match="it is a symbolic link"):
        desk.take()


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_that_the_job_wrote_anew_with_as_much_or_more_goes_on_and_that_is_on_record(
    desk: Desk, more: int
) -> None:
    desk.add(result("HB-1"), result("HB-2"))
    size = desk.path.stat().st_size
    desk.take(last=False)
    desk.path.write_bytes(b"".join(result(f"HB-{n}") for n in range(3, 5 + more)))
    tally = desk.take()
    assert (tally.entries, tally.rejected, tally.pending_bytes) == (4 + more, 1, 0)
    assert [each.why for each in desk.rejects()] == [f"the file was written anew after {size} bytes were on record"]


def test_a_file_that_is_not_the_one_that_was_given_is_read_too_and_that_is_on_record(desk: Desk) -> None:
    made = os.open(desk.path, os.O_RDONLY)
    desk.path.unlink()
    desk.path.touch(0o600)
    desk.add(result("HB-1"))
    desk.intake = Intake(str(desk.path), RUN, made)
    tally = desk.take()
    os.close(made)
    assert (tally.entries, tally.rejected, tally.pending_bytes) == (1, 1, 0)
    assert [each.why for each in desk.rejects()] == ["the file was replaced by another after 0 bytes were on record"]
