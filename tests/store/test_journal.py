import json
import os
import resource
import stat
import subprocess
import sys

import pytest

from runguard.errors import NoTraceError
from runguard.model import Earlier
from runguard.store.journal import Journal
from runguard.store.lines import Author

AT = 1774747800_000000
AUTHOR = Author("alpha", {"uid": 0, "user": "root", "login": "ada", "sudo_user": None}, "0.1.0")
ID = "8c2f0000-0000-4000-8000-00000000000"


@pytest.fixture
def journal(place):
    made = Journal(str(place.directory), AUTHOR, wait_s=0.2)
    assert made.prepare() == ""
    return made


def bring(place, journal):
    """Reconcile and clear as a start does; return the result."""
    store = place.open()
    with store.write() as transaction:
        done = journal.reconcile(transaction)
    assert journal.clear(done) == []
    store.close()
    return done


def waiting(journal):
    return sorted(os.listdir(journal.directory))


def fill_reserve(journal):
    with open(journal.reserve, "r+b") as file:
        file.write(b" " * (256 * 1024 - 1) + b"\n")


def spoil(journal):
    """Make the runs' own files impossible, as a full disk does."""
    os.rmdir(journal.directory)
    with open(journal.directory, "w"):
        pass


def mend(journal):
    os.unlink(journal.directory)
    os.mkdir(journal.directory, 0o700)


def test_an_entry_is_a_line_in_the_runs_own_file(journal, start):
    path = journal.write("run.start", AT, start(None, run_id=ID + "1", argv=["caf\udce9"])[1])
    assert path == f"{journal.directory}/{ID}1.jsonl"
    with open(path, "rb") as file:
        line = file.read()
    assert line.startswith(b'{"v":1,"kind":"run.start","at":"2026-03-29T01:30:00Z","host":"alpha","actor":{"uid":0,')
    assert line.endswith(b"}\n")
    assert json.loads(line)["argv"] == ["caf\udce9"]


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_journal_is_private_whatever_the_umask(place, start, umask):
    before = os.umask(umask)
    try:
        journal = Journal(str(place.directory), AUTHOR)
        journal.prepare()
        path = journal.write("run.start", AT, start(None)[1])
    finally:
        os.umask(before)
    assert [oct(stat.S_IMODE(os.stat(name).st_mode)) for name in (path, journal.reserve, journal.directory)] == [
        "0o600",
        "0o600",
        "0o700",
    ]


def test_it_works_without_being_prepared(place, start):
    journal = Journal(str(place.directory), AUTHOR)
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    assert [entry["run_id"] for entry in journal.entries()] == [ID + "1"]


def test_a_start_and_its_finish_reach_the_ledger(place, journal, start, finish, chain):
    place.write(start(1))
    journal.write("run.start", AT, start(None, run_id=ID + "1", key="L1")[1])
    journal.write("run.finish", AT + 1, finish(ID + "1")[1])
    assert journal.pending()
    assert bring(place, journal).added == 2
    entries = chain(place.path)
    assert [(entry["kind"], entry.get("journaled")) for entry in entries[1:]] == [
        ("run.start", True),
        ("run.finish", True),
    ]
    run = place.reader().run(ID + "1")
    assert (run.number, run.outcome, run.window_key) == (2, "succeeded", "L1")
    assert not journal.pending()
    assert waiting(journal) == []


def test_an_entry_keeps_its_own_author_and_time(place, journal, start, chain):
    other = Journal(str(place.directory), Author("beta", {"uid": 7, "login": "bob"}, "0.0.9"))
    other.write("run.start", AT, start(None)[1])
    bring(place, journal)
    (entry,) = chain(place.path)
    assert (entry["host"], entry["actor"], entry["version"], entry["at"]) == (
        "beta",
        {"uid": 7, "login": "bob"},
        "0.0.9",
        "2026-03-29T01:30:00Z",
    )


def test_a_start_alone_stays_running(place, journal, start):
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    bring(place, journal)
    assert place.reader().run(ID + "1").outcome == "running"


def test_a_finish_alone_ends_the_run_in_the_store(place, journal, start, finish):
    place.write(start(1, run_id=ID + "1"))
    journal.write("run.finish", AT, finish(ID + "1", "failed", exit_status=3)[1])
    assert bring(place, journal).added == 1
    assert place.reader().run(ID + "1").exit_status == 3


def test_a_refusal_gets_a_number(place, journal, start):
    refused = {"run_id": ID + "1", "number": None, "job": "letters", "window": None, "why": "overlap", "returned": 75}
    journal.write("run.refused", AT, {**refused, "trigger": "schedule", "reason": None})
    bring(place, journal)
    assert place.reader().find_run("1").why == "overlap"


def test_several_runs_are_numbered_by_their_time(place, journal, start):
    journal.write("run.start", AT + 9, start(None, run_id=ID + "1")[1])
    journal.write("run.start", AT + 5, start(None, run_id=ID + "2")[1])
    journal.write("run.start", AT + 7, start(None, run_id=ID + "3")[1])
    bring(place, journal)
    assert [run.run_id[-1] for run in place.reader().history()] == ["1", "3", "2"]


def test_a_window_gets_the_revision_that_expects_its_due(place, journal, start):
    given = {"expression": "* * * * *", "zone": "UTC", "policy": "vixie", "gap": None, "fold": None}
    for number, after in [(1, "2026-01-15T00:00:00Z"), (2, "2026-03-01T00:00:00Z")]:
        fields = {"job": "letters", "change": "schedule", "revision": number, "schedule": given, "after": after}
        place.write(("job.changed", fields))
    journal.write("run.start", AT, start(None, run_id=ID + "1", key="L1", due="2026-02-01T00:00:00Z")[1])
    journal.write("run.start", AT, start(None, run_id=ID + "2", key="L2", due="2026-03-01T00:00:01Z")[1])
    journal.write("run.start", AT, start(None, run_id=ID + "3", key="L3", due="2026-01-15T00:00:00Z")[1])
    journal.write("run.start", AT, start(None, run_id=ID + "4")[1])
    bring(place, journal)
    assert [place.reader().run(ID + n).revision for n in "1234"] == [1, 2, None, None]


def test_reconciling_again_adds_nothing(place, journal, start, finish, chain):
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    journal.write("run.finish", AT, finish(ID + "1")[1])
    store = place.open()
    for added in (2, 0):  # killed before it could clear
        with store.write() as transaction:
            assert journal.reconcile(transaction).added == added
    assert len(chain(place.path)) == 2
    bring(place, journal)
    assert len(chain(place.path)) == 2
    assert waiting(journal) == []


def test_the_same_line_twice_is_added_once(place, journal, start, chain):
    fields = start(None, run_id=ID + "1")[1]
    journal.write("run.start", AT, fields)
    journal.write("run.start", AT, fields)
    assert bring(place, journal).added == 1
    assert len(chain(place.path)) == 1


def test_a_rolled_back_reconciliation_keeps_the_journal(place, journal, start):
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])

    def fail():
        with place.open().write() as transaction:
            journal.reconcile(transaction)
            raise KeyError("bug")

    with pytest.raises(KeyError):
        fail()
    assert waiting(journal) == [f"{ID}1.jsonl"]
    assert place.open().run(ID + "1") is None


def test_a_finish_added_after_the_reading_is_not_lost(place, journal, start, finish):
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    store = place.open()
    with store.write() as transaction:
        done = journal.reconcile(transaction)
        journal.write("run.finish", AT, finish(ID + "1")[1])
    assert journal.clear(done) == []
    assert waiting(journal) == [f"{ID}1.jsonl"]
    assert bring(place, journal).added == 1
    assert place.reader().run(ID + "1").outcome == "succeeded"
    assert waiting(journal) == []


def test_a_file_that_another_start_cleared_is_no_error(place, journal, start):
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    store = place.open()
    with store.write() as transaction:
        done = journal.reconcile(transaction)
    assert journal.clear(done) == []
    assert journal.clear(done) == []


def test_the_late_finish_of_a_run_taken_for_lost_is_marked(place, journal, start, finish, chain):
    place.write(start(1, run_id=ID + "1"), finish(ID + "1", "lost"))
    journal.write("run.finish", AT, finish(ID + "1")[1])
    assert bring(place, journal).added == 1
    assert chain(place.path)[2]["superseded"] is True
    assert place.reader().run(ID + "1").outcome == "lost"


def test_a_torn_last_line_is_kept_aside(place, journal, start):
    path = journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    with open(path, "ab") as file:
        file.write(b'{"v":1,"kind":"run.fin')
    done = bring(place, journal)
    assert done.added == 1
    assert done.remarks == (
        f"a journal line was kept aside in {journal.directory}/{ID}1.rejected: ValueError: the line is cut short",
    )
    assert waiting(journal) == [f"{ID}1.rejected"]
    with open(f"{journal.directory}/{ID}1.rejected", "rb") as file:
        assert file.read() == b'{"v":1,"kind":"run.fin\n'
    assert not journal.pending()


def test_a_line_after_a_torn_one_is_whole(place, journal, start, finish):
    path = journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    with open(path, "ab") as file:
        file.write(b'{"v":1,"ki')
    journal.write("run.finish", AT, finish(ID + "1")[1])
    assert bring(place, journal).added == 2
    assert place.reader().run(ID + "1").outcome == "succeeded"


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"\xff\xfe",
        b'{"kind":"run.unknown","run_id":"x"}',
        b'{"kind":["run.start"],"run_id":"x"}',
        b'{"v":1,"kind":"run.start","at":"2026-03-29T01:30:00Z","host":"h","actor":{},"version":"1","run_id":"x"}',
        b'{"v":1,"kind":"run.start","at":"yesterday","host":"h","actor":{},"version":"1","run_id":"x","job":"j",'
        b'"window":null,"attempt":1,"trigger":"schedule"}',
        b'{"v":1,"kind":"run.start","at":"2026-03-29T01:30:00Z","host":"h","actor":{},"version":"1","run_id":"x",'
        b'"job":"j","window":null,"attempt":1,"trigger":"magic"}',
        b'{"v":1,"kind":"run.finish","at":"2026-03-29T01:30:00Z","host":"h","actor":{},"version":"1","run_id":"x",'
        b'"outcome":"failed"}',
        *(
            b'{"v":1,"kind":"run.start","at":"2026-03-29T01:30:00Z","host":"h","actor":{},"version":"1","run_id":"x",'
            b'"job":"j","attempt":1,"trigger":"schedule",' + rest
            for rest in (
                b'"window":[1]}',
                b'"window":null,"covers":[]}',
                b'"window":null,"covers":{"first":null,"last":null,"count":1}}',
                b'"window":null,"covers":{"first":"2026-03-28T01:30:00Z","last":"2026-03-28T01:30:00Z","count":1}}',
            )
        ),
        b"[" * 100_000,
    ],
)
def test_a_line_that_does_not_fit_is_kept_aside_and_stops_nothing(place, journal, start, chain, line):
    with open(f"{journal.directory}/a.jsonl", "wb") as file:
        file.write(line + b"\n")
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    done = bring(place, journal)
    assert (done.added, len(done.remarks)) == (1, 1)
    assert len(chain(place.path)) == 1
    assert waiting(journal) == ["a.rejected"]
    with open(f"{journal.directory}/a.rejected", "rb") as file:
        assert file.read() == line + b"\n"


@pytest.mark.parametrize(
    "change",
    [
        {"window": {"key": "k"}},
        {"window": [1]},
        {"window": "k"},
        {"window": {"key": 1, "start": 2, "due": 3, "label": 4, "nominal": 5, "zone": 6}},
        {"attempt": True},
        {"attempt": 1e308},
        {"attempt": 2**70},
        {"guard_pid": 2**70},
        {"guard_pid": "x"},
        {"revision": [2]},
        {"trigger": {}},
        {"trigger": None},
        {"host": None},
        {"supersedes": {"run": "x"}},
        {"boot_id": 7},
        {"run_id": "\udcff"},
        {"run_id": None},
        {"actor": []},
        {"covers": {"first": "x", "last": "y"}},
        {"covers": [1]},
        {"at": 5},
        {"kind": None},
    ],
    ids=str,
)
def test_a_start_with_an_odd_field_is_kept_aside_and_stops_nothing(place, journal, start, change):
    path = journal.write("run.start", AT, start(None, run_id=ID + "2")[1])
    with open(path, encoding="ascii") as file:
        line = json.dumps({**json.loads(file.read()), **change})
    with open(path, "w", encoding="ascii") as file:
        file.write(line + "\n")
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    assert bring(place, journal).added == 1
    assert waiting(journal) == [f"{ID}2.rejected"]


@pytest.mark.parametrize(
    "change", [{"duration_s": 1e300}, {"duration_s": "x"}, {"exit_status": 2**70}, {"finished": 1}]
)
def test_a_finish_with_an_odd_field_is_kept_aside_and_stops_nothing(place, journal, start, finish, change):
    place.write(start(1, run_id=ID + "1"))
    journal.write("run.finish", AT, {**finish(ID + "1")[1], **change})
    assert bring(place, journal).added == 0
    assert waiting(journal) == [f"{ID}1.rejected"]


def test_a_number_of_its_own_never_uses_up_the_numbers(place, journal, start):
    journal.write("run.start", AT, start(2**63 - 1, run_id=ID + "1")[1])
    bring(place, journal)
    place.write(start(2))
    assert place.reader().find_run("1").run_id == ID + "1"


def beside(path):
    """Return a file elsewhere that says what the journal could say."""
    os.rename(path, f"{path}.elsewhere")
    return f"{path}.elsewhere"


PLANTED = {
    "it is a symbolic link": lambda path: os.symlink(beside(path), path),
    "it is no regular file": lambda path: (beside(path), os.mkfifo(path)),
    "it is no regular file ": lambda path: (beside(path), os.mkdir(path)),
    "it belongs to uid 54321": lambda path: os.chown(path, 54321, 54321),
    "others may write to it (mode 0620); chmod 600 it": lambda path: os.chmod(path, 0o620),
}
planted = pytest.mark.parametrize("flaw", PLANTED)


def plant(path, flaw):
    if "uid" in flaw and os.geteuid() != 0:
        pytest.skip("needs root to give a file away")
    PLANTED[flaw](path)


@planted
def test_a_line_that_others_could_have_planted_is_not_read(place, journal, start, flaw):
    path = journal.write("run.start", AT, start(None, run_id=ID + "1", key="L1")[1])
    plant(path, flaw)
    assert journal.entries() == []
    store = place.open()
    with store.write() as transaction:
        done = journal.reconcile(transaction)
    assert (done.added, done.remarks) == (0, (f"journal {path}: {flaw.strip()}; it is left for a later start",))
    assert journal.clear(done) == []
    assert os.path.lexists(path)


@planted
def test_a_reserve_that_others_could_have_planted_is_a_remark_and_neither_read_nor_written(place, journal, start, flaw):
    spoil(journal)
    journal.write("run.start", AT, start(None, run_id=ID + "1", key="L1")[1])
    mend(journal)
    plant(journal.reserve, flaw)
    before = os.lstat(journal.reserve)
    said = f"{journal.reserve}: {flaw.strip()} (uid {os.geteuid()})"
    assert journal.prepare() == f"the journal has no reserve for a full disk: {said}"
    assert journal.entries() == []
    assert bring(place, journal).added == 0
    spoil(journal)
    with pytest.raises(NoTraceError) as refused:
        journal.write("run.start", AT, start(None)[1])
    assert str(refused.value).endswith(said)
    assert (before.st_mode, before.st_mtime_ns) == (
        os.lstat(journal.reserve).st_mode,
        os.lstat(journal.reserve).st_mtime_ns,
    )


@planted
def test_a_planted_file_takes_no_line_of_ours(place, journal, start, finish, flaw):
    path = journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    plant(path, flaw)
    assert journal.write("run.finish", AT, finish(ID + "1")[1]) == journal.reserve


@planted
def test_a_planted_file_takes_no_line_that_is_kept_aside(place, journal, flaw):
    rejected = f"{journal.directory}/a.rejected"
    for path in (f"{journal.directory}/a.jsonl", rejected):
        with open(path, "wb") as file:
            file.write(b"{}\n")
    plant(rejected, flaw)
    store = place.open()
    with store.write() as transaction:
        done = journal.reconcile(transaction)
    (remark,) = journal.clear(done)
    assert remark.endswith(f": {flaw.strip()}; it stays and is read again")
    assert os.path.exists(f"{journal.directory}/a.jsonl")


def test_a_file_that_a_writer_holds_is_left_for_later(place, journal, start):
    import fcntl

    path = journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    journal.write("run.start", AT, start(None, run_id=ID + "2")[1])
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        store = place.open()
        with store.write() as transaction:
            done = journal.reconcile(transaction)
        journal.clear(done)
    assert done.added == 1
    assert done.remarks[0].startswith(f"journal {path}: locked by ")
    assert waiting(journal) == [f"{ID}1.jsonl"]
    assert bring(place, journal).added == 1


DUE = 1774747800_000000  # 2026-03-29T01:30Z
DAY = 86_400_000_000


def test_the_latest_start_for_a_window_is_found_in_the_journal(journal, start, finish):
    assert journal.latest("letters", "L1", DUE) is None
    journal.write("run.start", AT, start(None, run_id=ID + "1", key="L1")[1])
    assert journal.latest("letters", "L1", DUE) == Earlier(ID + "1", None, "running", 1, "alpha")
    journal.write("run.finish", AT + 1, finish(ID + "1", "failed")[1])
    assert journal.latest("letters", "L1", DUE) == Earlier(ID + "1", None, "failed", 1, "alpha")
    journal.write("run.start", AT + 2, start(None, run_id=ID + "2", key="L1", attempt=2)[1])
    assert journal.latest("letters", "L1", DUE) == Earlier(ID + "2", None, "running", 2, "alpha")
    assert journal.latest("letters", "L2", DUE) is None
    assert journal.latest("other", "L1", DUE) is None


def test_a_start_in_the_journal_decides_the_windows_that_it_covers(journal, start, finish):
    covers = {"first": "2026-03-27T01:30:00Z", "last": "2026-03-28T01:30:00Z", "count": 2}
    journal.write("run.start", AT, start(None, run_id=ID + "1", key="L4", covers=covers)[1])
    journal.write("run.finish", AT + 1, finish(ID + "1", "failed")[1])
    assert journal.latest("letters", "L3", DUE) is None
    assert journal.latest("letters", "L3", DUE - DAY) == Earlier(ID + "1", None, "failed", 0, "alpha")
    assert journal.latest("letters", "L3", DUE - 3 * DAY) is None
    journal.write("run.start", AT - 1, start(None, run_id=ID + "2", key="L3")[1])
    assert journal.latest("letters", "L3", DUE - DAY) == Earlier(ID + "2", None, "running", 1, "alpha")


def test_what_a_start_covers_and_what_is_suspect_reach_the_ledger(place, journal, start, finish):
    covers = {"first": "2026-03-27T01:30:00Z", "last": "2026-03-28T01:30:00Z", "count": 2}
    journal.write("run.start", AT, start(None, run_id=ID + "1", key="L4", covers=covers)[1])
    journal.write("run.finish", AT + 1, finish(ID + "1", suspect="it took 0.1 s")[1])
    bring(place, journal)
    run = place.reader().run(ID + "1")
    assert (run.covers_first_us, run.covers_last_us, run.covers_count) == (DUE - 2 * DAY, DUE - DAY, 2)
    assert run.suspect == "it took 0.1 s"


def test_a_window_gets_no_revision_that_expects_nothing(place, journal, start):
    schedule = {"expression": "@daily", "zone": "UTC", "policy": "vixie", "gap": None, "fold": None}
    known = {"job": "letters", "change": "registered", "revision": 1, "after": "2026-01-01T00:00:00Z"}
    place.write(("job.changed", {**known, "schedule": schedule}))
    place.write(("job.changed", {**known, "change": "retired", "revision": 2, "schedule": None}))
    journal.write("run.start", AT, start(None, run_id=ID + "1", key="L1")[1])
    bring(place, journal)
    assert place.reader().run(ID + "1").revision == 1


def test_the_reserve_takes_what_the_directory_does_not(place, journal, start, finish):
    spoil(journal)
    assert journal.write("run.start", AT, start(None, run_id=ID + "1")[1]) == journal.reserve
    assert journal.write("run.finish", AT, finish(ID + "1")[1]) == journal.reserve
    assert os.path.getsize(journal.reserve) == 262_144
    mend(journal)
    assert [entry["kind"] for entry in journal.entries()] == ["run.start", "run.finish"]
    assert bring(place, journal).added == 2
    assert not journal.pending()
    with open(journal.reserve, "rb") as file:
        assert file.read() == bytes(262_144)


def test_a_start_in_the_reserve_meets_its_finish_in_a_file(place, journal, start, finish):
    spoil(journal)
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    mend(journal)
    journal.write("run.finish", AT, finish(ID + "1")[1])
    assert bring(place, journal).added == 2


def test_a_finish_waits_for_its_start_in_a_file_that_is_held(place, journal, start, finish):
    import fcntl

    spoil(journal)
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    mend(journal)
    journal.write("run.finish", AT, finish(ID + "1")[1])
    with open(journal.reserve, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert bring(place, journal).added == 0
    assert bring(place, journal).added == 2


def test_a_line_torn_in_the_reserve_spoils_no_other(place, journal, start):
    with open(journal.reserve, "r+b") as file:
        file.write(b'{"torn')
    spoil(journal)
    journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    mend(journal)
    assert bring(place, journal).added == 1
    assert waiting(journal) == ["journal.rejected"]


def test_a_full_reserve_means_no_trace(journal, start):
    fill_reserve(journal)
    spoil(journal)
    with pytest.raises(NoTraceError, match=r"no trace can be kept: .*journal\.reserve: the reserve is full"):
        journal.write("run.start", AT, start(None)[1])


def test_no_reserve_means_no_trace(journal, start):
    os.unlink(journal.reserve)
    spoil(journal)
    match = r"it is not a directory; .*journal\.reserve: No such file or directory \(uid "
    with pytest.raises(NoTraceError, match=match):
        journal.write("run.start", AT, start(None)[1])


def test_a_reserve_that_cannot_be_claimed_is_a_remark(place):
    os.mkdir(place.directory / "journal.reserve")
    remark = Journal(str(place.directory), AUTHOR).prepare()
    assert remark.startswith("the journal has no reserve for a full disk: ")


def test_a_reserve_cut_short_is_claimed_again(journal):
    os.truncate(journal.reserve, 10)
    assert journal.prepare() == ""
    assert os.path.getsize(journal.reserve) == 262_144


def test_on_a_full_disk_the_record_goes_to_the_reserve(small_disk, place, start, finish):
    journal = Journal(str(small_disk), AUTHOR)
    assert journal.prepare() == ""
    path = journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096) == 4096 and os.statvfs(small_disk).f_bfree:
            pass
    big = finish(ID + "1", remarks=["x" * 50_000])[1]
    assert journal.write("run.finish", AT, big) == journal.reserve
    with open(path, "rb") as file:
        assert file.read().count(b"\n") == 1
    filler.unlink()
    assert bring(place, journal).added == 2
    assert place.reader().run(ID + "1").outcome == "succeeded"


def test_a_file_size_limit_leaves_no_torn_line(journal, start):
    path = journal.write("run.start", AT, start(None, run_id=ID + "1")[1])
    size = os.path.getsize(path)
    code = (
        "import resource, sys; from runguard.store.journal import Journal; from runguard.store.lines import Author\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "journal = Journal(sys.argv[1], Author('h', {}, '1'))\n"
        "print(journal.write('run.finish', 0, {'run_id': sys.argv[2], 'x': 'x' * 1700}))"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(journal.directory), ID + "1"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == journal.reserve + "\n", done.stderr
    assert os.path.getsize(path) == size


def test_another_account_cannot_leave_a_trace(open_place, as_nobody, start):
    journal = Journal(str(open_place.directory), AUTHOR)
    said = as_nobody(lambda: journal.write("run.start", AT, start(None)[1]))
    assert said.startswith("NoTraceError: no trace can be kept: ")
    assert "Permission denied" in said
    assert said.endswith("(uid 65534)")


def test_twenty_processes_share_the_reserve(place, journal, child_environment):
    spoil(journal)
    code = (
        "import sys; from runguard.store.journal import Journal; from runguard.store.lines import Author\n"
        "journal = Journal(sys.argv[1], Author('h', {}, '1'))\n"
        "for n in range(5): journal.write('run.start', 0, {'run_id': f'{sys.argv[2]}-{n}', 'job': 'j', 'window': None,"
        " 'attempt': 1, 'trigger': 'schedule', 'number': None})"
    )
    directory = str(place.directory)
    running = [
        subprocess.Popen([sys.executable, "-c", code, directory, str(n)], env=child_environment()) for n in range(20)
    ]
    assert [process.wait(timeout=60) for process in running] == [0] * 20
    mend(journal)
    assert bring(place, journal).added == 100
