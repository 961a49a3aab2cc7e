import os
import re
import sqlite3

import pytest

from runguard.errors import StoreError, UsageError
from runguard.instant import from_rfc3339
from runguard.model import Revision, Schedule
from runguard.store import reads, statements
from runguard.store.reads import Ping

ID = "8c2f0000-0000-4000-8000-00000000000"


COVERS = {"first": "2026-03-27T02:30:00Z", "last": "2026-03-28T02:30:00Z", "count": 2}


def changed(
    job="letters", revision=1, expression="30 2 * * *", after="2026-03-28T02:30:00Z", schedule=True, change="registered"
):
    given = {"expression": expression, "zone": "Europe/London", "policy": "vixie", "gap": None, "fold": "both"}
    fields = {"job": job, "change": change, "revision": revision, "after": after}
    return "job.changed", {**fields, "schedule": given if schedule else None}


def refused(number, run_id, **fields):
    run = {"run_id": run_id, "number": number, "job": "letters", "window": None, "why": "overlap", "returned": 75}
    return "run.refused", {**run, "trigger": "schedule", "reason": None, "holder": None, **fields}


def test_a_start_becomes_a_running_row(place, start):
    place.write(
        start(7, key="L2026-03-29T02:30", run_id=ID + "1", revision=3, reason="why not \udcff", trigger="manual")
    )
    (run,) = place.reader().running("letters")
    assert run._asdict() == {
        "start_seq": 1, "finish_seq": None, "late_seq": None, "run_id": ID + "1", "number": 7, "job": "letters",
        "revision": 3, "window_key": "L2026-03-29T02:30", "window_start_us": 1767225600_000000,
        "due_us": 1774747800_000000, "label": "l", "nominal": "n", "zone": "Europe/London", "attempt": 1,
        "trigger": "manual", "reason": "why not \\udcff", "outcome": "running", "exit_status": None, "returned": None,
        "signal": None, "why": None, "started_us": 1774747800_000000, "finished_us": None, "duration_us": None,
        "host": "alpha", "boot_id": "b00t", "guard_pid": 4711, "actor": "ada", "supersedes": None,
        "superseded_by": None, "suspect": None, "covers_first_us": None, "covers_last_us": None, "covers_count": None,
    }  # fmt: skip


def test_a_finish_closes_the_row(place, start, finish):
    place.write(
        start(1, run_id=ID + "1"), finish(ID + "1", "killed", exit_status=None, returned=137, signal=9, why="oom")
    )
    reader = place.reader()
    assert reader.running("letters") == []
    run = reader.run(ID + "1")
    assert run.outcome == "killed"
    assert (run.exit_status, run.returned, run.signal, run.why) == (None, 137, 9, "oom")
    assert (run.finish_seq, run.finished_us, run.duration_us) == (2, 1774747802_000000, 1_750_000)


def test_a_finish_may_say_that_a_success_is_suspect(place, start, finish):
    place.write(start(1, run_id=ID + "1"), finish(ID + "1", suspect="it took 0.1 s, less than its min_time of 60 s"))
    run = place.reader().run(ID + "1")
    assert (run.outcome, run.suspect) == ("succeeded", "it took 0.1 s, less than its min_time of 60 s")


def test_only_a_success_is_suspect(place, start, finish):
    with pytest.raises(StoreError, match="CHECK constraint failed"):
        place.write(start(1, run_id=ID + "1"), finish(ID + "1", "failed", suspect="odd"))


def test_a_start_may_cover_earlier_windows(place, start):
    place.write(start(1, key="L1", run_id=ID + "1", covers=COVERS))
    run = place.reader().run(ID + "1")
    assert (run.covers_first_us, run.covers_last_us, run.covers_count) == (1774578600_000000, 1774665000_000000, 2)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": None}, {"first": "2026-03-29T00:00:00Z"}, {"last": None}])
def test_what_a_start_covers_is_a_span_with_its_count(place, start, wrong):
    with pytest.raises(StoreError, match="CHECK constraint failed"):
        place.write(start(1, key="L1", covers=COVERS | wrong))


def test_a_start_without_a_window_covers_nothing(place, start):
    with pytest.raises(StoreError, match="CHECK constraint failed"):
        place.write(start(1, covers=COVERS))


def test_a_refused_start_is_a_row_of_its_own(place):
    place.write(refused(1, ID + "1"))
    run = place.reader().run(ID + "1")
    assert (run.outcome, run.why, run.returned, run.attempt, run.finish_seq) == ("refused", "overlap", 75, None, None)


def test_a_superseded_run_keeps_its_outcome_and_gains_a_link(place, start, finish):
    place.write(start(1, run_id=ID + "1"), finish(ID + "1", "failed"), start(2, run_id=ID + "2", supersedes=ID + "1"))
    reader = place.reader()
    assert (reader.run(ID + "1").outcome, reader.run(ID + "1").superseded_by) == ("failed", ID + "2")
    assert reader.run(ID + "2").supersedes == ID + "1"


def test_revisions_come_oldest_first(place):
    place.write(changed(), changed(revision=2, expression="0 3 * * *", after="2026-04-01T00:00:00Z"), changed("other"))
    assert place.reader().revisions("letters") == [
        Revision(1, Schedule("30 2 * * *", "Europe/London", "vixie", None, "both"), 1774665000_000000),
        Revision(2, Schedule("0 3 * * *", "Europe/London", "vixie", None, "both"), 1775001600_000000),
    ]


def test_a_revision_without_a_schedule_retires_the_job_until_the_next(place):
    place.write(changed(), changed(revision=2, after="2026-04-01T00:00:00Z", change="retired", schedule=False))
    assert place.reader().revisions("letters")[1] == Revision(2, None, 1775001600_000000)
    assert place.reader().retired("letters") is True
    place.write(changed(revision=3, after="2026-05-01T00:00:00Z"))
    assert place.reader().retired("letters") is False
    assert place.reader().retired("unknown") is False


@pytest.mark.parametrize(
    ("revision", "change", "schedule"), [(1, "registered", False), (None, "schedule", True), (2, "retired", True)]
)
def test_only_retiring_opens_a_revision_without_a_schedule(place, revision, change, schedule):
    with pytest.raises(ValueError, match="a revision has a schedule, or retires the job"):
        place.write(changed(revision=revision, change=change, schedule=schedule))
    assert place.open().jobs() == []


def test_a_job_without_a_schedule_has_no_revision(place):
    place.write(changed(revision=None, after=None, schedule=False))
    assert place.reader().revisions("letters") == []
    assert place.reader().jobs() == ["letters"]


def test_the_last_answered_due_is_the_greatest_of_those_let_run(place, start, finish):
    window = {"key": "L9", "start": "2026-01-01T00:00:00Z", "due": "2026-09-09T00:00:00Z"}
    place.write(
        start(1, key="L2", due="2026-02-02T00:00:00Z", run_id=ID + "1"),
        finish(ID + "1", "lost"),
        start(2, key="L1", due="2026-01-02T00:00:00Z", run_id=ID + "2"),
        refused(3, ID + "3", window=window),
        start(4),
        start(5, key="L8", due="2026-08-08T00:00:00Z", job="other"),
    )
    assert place.reader().last_answered_due_us("letters") == from_rfc3339("2026-02-02T00:00:00Z")
    assert place.reader().last_answered_due_us("unknown") is None


def test_the_last_finished_due_is_by_sequence_and_lost_is_no_end(place, start, finish):
    place.write(
        start(1, key="L5", due="2036-01-02T00:00:00Z", run_id=ID + "1"),
        finish(ID + "1"),
        start(2, key="L2", due="2026-02-02T00:00:00Z", run_id=ID + "2"),
        finish(ID + "2", "failed"),
        start(3, key="L3", due="2026-03-03T00:00:00Z", run_id=ID + "3"),
        finish(ID + "3", "lost"),
        start(4, key="L4", due="2026-04-04T00:00:00Z", run_id=ID + "4"),
    )
    assert place.reader().last_finished_due_us("letters") == from_rfc3339("2026-02-02T00:00:00Z")
    assert place.reader().last_finished_due_us("unknown") is None


def test_runs_and_refusals_share_the_numbers(place, start):
    assert place.open().next_number() == 1
    place.write(start(1), refused(2, ID + "2"))
    assert place.reader().next_number() == 3


def numbers(runs):
    return [run.number for run in runs]


def test_history_is_newest_first_across_pages(place, start, monkeypatch):
    monkeypatch.setattr(reads, "PAGE", 3)
    place.write(*(start(number, job="a" if number % 2 else "b") for number in range(1, 11)))
    reader = place.reader()
    assert numbers(reader.history()) == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert numbers(reader.history("a")) == [9, 7, 5, 3, 1]
    assert numbers(reader.history(limit=4)) == [10, 9, 8, 7]
    assert numbers(reader.history("a", limit=3)) == [9, 7, 5]
    assert numbers(reader.history(limit=0)) == []
    assert numbers(reader.history("nobody")) == []


def test_history_of_a_span_is_half_open(place, start):
    place.write(*(start(number) for number in range(1, 6)))  # a second apart, from 01:30:00
    second = from_rfc3339("2026-03-29T01:30:00Z") + 1_000_000
    reader = place.reader()
    assert numbers(reader.history(since_us=second, until_us=second + 2_000_000)) == [3, 2]
    assert numbers(reader.history("letters", since_us=second + 3_000_000)) == [5]
    assert numbers(reader.history(until_us=second)) == [1]
    assert numbers(reader.history(since_us=second + 10_000_000)) == []


def test_history_is_ordered_by_sequence_where_the_clock_stepped_back(place, start):
    store = place.open()
    for number, at_us in [(1, 3_000_000), (2, 1_000_000), (3, 2_000_000)]:
        with store.write() as transaction:
            transaction.append("run.start", at_us, start(number)[1])
    assert numbers(store.history()) == [3, 2, 1]
    assert numbers(store.history(since_us=2_000_000)) == [3, 1]


def test_history_by_outcome_and_window(place, start, finish):
    place.write(
        start(1, key="L1", run_id=ID + "1"),
        finish(ID + "1", "failed"),
        start(2, key="L1", run_id=ID + "2"),
        start(3, key="L2"),
        start(4, key="L1", job="other"),
    )
    reader = place.reader()
    assert numbers(reader.history(outcome="failed")) == [1]
    assert numbers(reader.history("letters", outcome="running")) == [3, 2]
    assert numbers(reader.history("letters", window_key="L1")) == [2, 1]
    assert numbers(reader.history("letters", window_key="L1", outcome="running")) == [2]
    assert numbers(reader.history(window_key="L1")) == [4, 2, 1]


def test_a_history_half_read_does_not_hold_up_a_writer(place, start):
    place.write(*(start(number) for number in range(1, 4)))
    reading = place.reader().history()
    next(reading)
    place.write(start(4))
    assert numbers(reading) == [2, 1]


def test_a_run_is_found_by_number_id_and_unique_prefix(place, start):
    place.write(start(1, run_id=ID + "1"), start(2, run_id="8c2fffff-0000-4000-8000-000000000002"))
    find = place.reader().find_run
    assert find("2").number == 2
    assert find(ID + "1").number == 1
    assert find("8C2FF").number == 2
    assert find(" 8c2f0 ").number == 1


def test_digits_may_also_begin_an_id(place, start):
    place.write(start(1, run_id="12345678-0000-4000-8000-000000000001"))
    assert place.reader().find_run("1234").number == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8c2f", "'8c2f' is the beginning of several runs: 1 (8c2f0000-0000, letters), 2 (8c2fffff-0000, letters)"),
        ("41", "no run '41'; the newest is 2 (8c2fffff-0000, letters)"),
        ("8c2f01", "no run '8c2f01'; the nearest is 1 (8c2f0000-0000, letters)"),
        ("dead", "no run 'dead'; the newest is 2 (8c2fffff-0000, letters)"),
        ("letters", "'letters' names no run: give its number, or four or more characters of its id (2 or 8c2fffff)"),
        ("8c", "'8c' names no run: give its number, or four or more characters of its id (2 or 8c2fffff)"),
        ("", "'' names no run: give its number, or four or more characters of its id (2 or 8c2fffff)"),
        ("9" * 30, f"no run '{'9' * 30}'; the newest is 2 (8c2fffff-0000, letters)"),
        ("\u0664\u0661", "'٤١' names no run: give its number, or four or more characters of its id (2 or 8c2fffff)"),
    ],
)
def test_a_name_that_is_no_run_says_what_is(place, start, text, message):
    place.write(start(1, run_id=ID + "1"), start(2, run_id="8c2fffff-0000-4000-8000-000000000002"))
    with pytest.raises(UsageError) as caught:
        place.reader().find_run(text)
    assert str(caught.value) == message


def test_an_empty_store_has_no_run(place):
    with pytest.raises(UsageError, match="no run '1': nothing has been recorded yet"):
        place.open().find_run("1")


def test_entries_are_the_lines_of_one_run(place, start, finish):
    place.write(start(1, run_id=ID + "1", argv=["caf\udce9"]), start(2), finish(ID + "1"))
    entries = place.reader().entries(ID + "1")
    assert [(entry["seq"], entry["kind"]) for entry in entries] == [(1, "run.start"), (3, "run.finish")]
    assert entries[0]["argv"] == ["caf\udce9"]
    assert place.reader().entries("unknown") == []


def test_output_is_kept_as_bytes(place, start):
    store = place.open()
    with store.write() as transaction:
        transaction.append("run.start", 0, start(1, run_id=ID + "1")[1])
        transaction.keep_output(ID + "1", bytes(range(256)), b"")
    assert place.reader().output(ID + "1") == (bytes(range(256)), b"")
    assert place.reader().output("unknown") is None


def test_pings_are_kept_in_order(place, start):
    place.write(start(1, run_id=ID + "1"))
    first = Ping("start", "plain", "http://127.0.0.1/…", "accepted", 200, 1, 5, 7, None)
    second = Ping("success", "plain", "http://127.0.0.1/…", "retry", None, 3, 6, 8, "timed out")
    store = place.open()
    store.record_pings(ID + "1", [first])
    store.record_pings(ID + "1", [second, first])
    assert place.reader().pings(ID + "1") == [first, second, first]
    assert place.reader().head().seq == 1


def test_jobs_are_those_registered_or_started(place, start):
    place.write(
        changed("registered"), start(1, job="started"), start(2, job="both"), changed("both"), start(3, job="both")
    )
    assert place.reader().jobs() == ["both", "registered", "started"]


def test_the_tables_can_be_derived_again_from_the_lines(place, start, finish, waived):
    """The same function, fed with parsed lines, rebuilds every indexed table."""
    from pathlib import Path

    from runguard.store import lines
    from runguard.store.index import index

    place.write(
        changed(),
        start(1, key="L1", run_id=ID + "1", reason="\udcff"),
        finish(ID + "1", "lost"),
        finish(ID + "1", "succeeded"),
        refused(2, ID + "2"),
        start(3, key="L3", run_id=ID + "3", supersedes=ID + "1", covers=COVERS),
        finish(ID + "3", suspect="it took 0.1 s"),
        changed(revision=2, change="retired", schedule=False),
        waived(key="L9", reason="\udcff"),
        waived(since="2026-01-01T00:00:00Z", until="2026-01-02T00:00:00Z", withdraw=True, reason=None),
    )
    stored = sqlite3.connect(place.path)
    again = sqlite3.connect(":memory:", isolation_level=None)
    again.executescript((Path(lines.__file__).parent / "migrations/sqlite/0001.sql").read_text())
    sql = statements.load()
    for (line,) in stored.execute("SELECT line FROM ledger ORDER BY seq"):
        assert index(lambda name, row: again.execute(sql[name], row).rowcount, lines.parse(line))
    for table in ("job", "revision", "run", "waiver"):
        rows = stored.execute(f"SELECT * FROM {table}").fetchall()
        assert rows == again.execute(f"SELECT * FROM {table}").fetchall()
        assert rows


@pytest.mark.parametrize(
    ("name", "searches"),
    [
        ("latest", {"run_of_window (job=? AND window_key=?)", "run_covers (job=? AND covers_last_us>?)"}),
        ("latest_waiver", {"waiver_of_window (job=? AND window_key=?)", "waiver_of_span (job=? AND until_us>?)"}),
        ("running", {"run_running (job=?)"}),
        ("last_answered_due", {"run_answered (job=? AND answered_due_us>?)"}),
        ("history_of_job", {"run_of_job (job=? AND start_seq>? AND start_seq<?)"}),
        ("history_of_window", {"run_of_window (job=? AND window_key=? AND start_seq>? AND start_seq<?)"}),
        ("run_by_id", {"sqlite_autoindex_run_1 (run_id=?)"}),
        (
            "coverage",
            {
                "run_answered (job=? AND answered_due_us>? AND answered_due_us<?)",
                "run_refused (job=? AND due_us>? AND due_us<?)",
                "run_covers (job=? AND covers_last_us>?)",
            },
        ),
        ("key_answered", {"run_of_window (job=? AND window_key=?)"}),
        ("refusals", {"run_refused (job=? AND due_us>? AND due_us<?)"}),
        ("covers", {"run_covers (job=? AND covers_last_us>?)"}),
        ("retired", {"sqlite_autoindex_revision_2 (job=?)"}),
    ],
)
def test_a_frequent_question_is_answered_from_indexes(place, name, searches):
    steps = plan(place, name)
    assert set(re.findall(r"USING (?:COVERING )?INDEX (.+)", "\n".join(steps))) == searches
    assert [step for step in steps if step.startswith("SCAN") and step[5:] not in ("answer", "latest")] == []


def plan(place, name):
    """Return the steps in which SQLite answers a question."""
    place.open().head()
    statement = statements.load()[name]
    names = dict.fromkeys(re.findall(r":(\w+)", statement))
    rows = sqlite3.connect(place.path).execute("EXPLAIN QUERY PLAN " + statement, names).fetchall()
    return [row[3] for row in rows]


def test_the_answered_dues_come_from_the_index_alone_and_in_its_order(place):
    bounds = "(job=? AND answered_due_us>? AND answered_due_us<?)"
    assert plan(place, "answered_dues") == [f"SEARCH run USING COVERING INDEX run_answered {bounds}"]


def test_a_reader_leaves_no_file_behind(place, start):
    place.write(start(1))
    before = sorted(os.listdir(place.path.parent))
    place.reader().head()
    assert sorted(os.listdir(place.path.parent)) == before
