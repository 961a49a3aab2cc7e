"""A store that was lost or damaged is replaced by what is left of it, and the record says what that is."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runguard.evidence import checkpoints
from runguard.instant import from_rfc3339
from runguard.store import creation
from runguard.store.lines import HEADER
from runguard.store.witness import Witness
from shell import Shell, wait_until

DAILY = ("run", "-j", "letters", "-s", "0 2 * * *", "-z", "UTC", "--scheduled-at")
RECOVER = ("doctor", "--recover", "--reason", "the disk was replaced")
CASES = """for case in HB-1 HB-2; do
  for rest in '"intent"' '"result","result":"done"'; do
    echo "{\\"case\\":\\"$case\\",\\"action\\":\\"letter\\",\\"phase\\":$rest}"
  done
done >>"$RUNGUARD_ITEMS"; echo no entry >>"$RUNGUARD_ITEMS"; echo said"""
DAYS = ("2026-03-01T02:00Z", "2026-03-02T02:00Z", "2026-03-03T02:00Z", "2026-03-04T02:00Z")
PAGE = 4_096


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with four runs, entries 1 to 9, and a copy of the store as it was after two, `older`."""
    shell = Shell(tmp_path_factory.mktemp("original"))
    for day in DAYS:
        if day == DAYS[2]:
            shutil.copy(shell.state / "db" / "runguard.sqlite", shell.directory / "older")
        assert shell(*DAILY, day, "--", "sh", "-c", CASES).returncode == 0
    return shell.directory


@pytest.fixture
def written(original: Path, shell: Shell) -> Shell:
    """A copy of that state directory."""
    shutil.copytree(original / "state", shell.state)
    shutil.copy(original / "older", shell.directory / "older")
    [witness] = (shell.state / "witness").iterdir()
    witness.rename(Witness(str(shell.state / "witness"), str(database(shell))).path)
    return shell


def database(shell: Shell) -> Path:
    return shell.state / "db" / "runguard.sqlite"


def overwrite(shell: Shell, page: int) -> None:
    data = bytearray(database(shell).read_bytes())
    data[(page - 1) * PAGE : page * PAGE] = os.urandom(PAGE)
    database(shell).write_bytes(data)


def page_of(shell: Shell, text: bytes) -> int:
    return database(shell).read_bytes().index(text) // PAGE + 1


def alter(shell: Shell, old: bytes, new: bytes) -> None:
    data = database(shell).read_bytes()
    assert old in data
    database(shell).write_bytes(data.replace(old, new, 1))


def altered_by(shell: Shell, statement: str) -> None:
    connection = sqlite3.connect(database(shell))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(statement)
    connection.commit()
    connection.close()


def recovered(shell: Shell) -> list[str]:
    done = shell(*RECOVER)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def verified(shell: Shell) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads(shell("verify", "--full", "--json").stdout)[0]
    return verdict


def answered(shell: Shell) -> set[str]:
    """Return the windows that a further start would not run."""
    done = shell("windows", "letters", "--since", "2026-02-28", "--until", "2026-03-06", "--json")
    windows = json.loads(done.stdout) if done.returncode == 0 else []  # the job itself may be lost
    return {window["due"][:10] for window in windows if window["verdict"] == "succeeded"}


DAMAGES: dict[str, tuple[Callable[[Shell], object], str, set[str]]] = {
    # name: what is done, what was lost, which windows stay answered
    "deleted": (lambda shell: database(shell).unlink(), "entries 1 to 9 lost", set()),
    "emptied": (lambda shell: database(shell).write_bytes(b""), "entries 1 to 9 lost", set()),
    "an older copy": (
        lambda shell: shutil.copy(shell.directory / "older", database(shell)),
        "entries 6 to 9 lost",
        {"2026-03-01", "2026-03-02"},
    ),
    "its header overwritten": (
        lambda shell: overwrite(shell, 1),
        "no entry was lost",
        {day[:10] for day in DAYS},
    ),
    "no database": (lambda shell: database(shell).write_bytes(b"text" * 9_999), "entries 1 to 9 lost", set()),
    "its end cut off": (
        lambda shell: database(shell).write_bytes(database(shell).read_bytes()[: PAGE * 20]),
        "entries 1 to 9 lost",
        set(),
    ),
    "a line altered": (
        lambda shell: alter(shell, b'"outcome":"succeeded"', b'"outcome":"sUcceeded"'),
        "entry 3 lost",
        {"2026-03-02", "2026-03-03", "2026-03-04"},
    ),
    "a table dropped": (
        lambda shell: altered_by(shell, "DROP TABLE run"),
        "no entry was lost",
        {day[:10] for day in DAYS},
    ),
    "a trigger dropped": (
        lambda shell: altered_by(shell, "DROP TRIGGER ledger_is_never_deleted"),
        "no entry was lost",
        {day[:10] for day in DAYS},
    ),
    "a page of lines overwritten": (
        lambda shell: overwrite(shell, page_of(shell, b'"kind":"job.changed"')),
        "lost",
        set(),
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_after_any_damage_runs_go_on_and_verify_is_ok_and_names_the_break(written: Shell, damage: str) -> None:
    spoil, lost, stay = DAMAGES[damage]
    spoil(written)
    recovered(written)
    verdict = verified(written)
    assert (verdict["ok"], verdict["findings"]) == (True, [])
    assert lost in verdict["breaks"][0]
    assert "root: the disk was replaced" in verdict["breaks"][0] or os.geteuid() != 0
    assert stay <= answered(written)
    done = written(*DAILY, "2026-03-05T02:00Z", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2026-03-05" in answered(written)
    assert verified(written)["ok"]


def test_the_numbers_go_on_and_the_first_new_entry_tells_what_was_lost(written: Shell) -> None:
    DAMAGES["an older copy"][0](written)
    recovered(written)
    with written.open() as store:
        [(line,)] = store.rows("line_at", seq=10)
        assert store.rows("line_at", seq=6) == []
    entry = json.loads(line)
    [aside] = (written.state / "db").glob("aside-*")
    assert (entry["kind"], entry["seq"], entry["prev"]) == ("recovery", 10, entry["head"]["sha256"])
    assert (entry["head"]["seq"], entry["lost"], entry["salvaged"]) == (9, [[6, 9]], 5)
    assert entry["why"].endswith("saw entry 9, the store ends at 5")
    assert (entry["reason"], entry["copy"]["path"]) == ("the disk was replaced", str(aside))


def test_what_was_there_is_kept_aside_to_the_byte(written: Shell) -> None:
    overwrite(written, 1)
    damaged = database(written).read_bytes()
    recovered(written)
    [aside] = (written.state / "db").glob("aside-*")
    assert (aside / "runguard.sqlite").read_bytes() == damaged
    assert oct(aside.stat().st_mode & 0o777) == "0o700"
    assert not (aside / "building").exists()


def test_a_second_recovery_has_nothing_to_do(written: Shell) -> None:
    database(written).unlink()
    recovered(written)
    before = database(written).read_bytes()
    assert recovered(written) == ["store    nothing is wrong with it"]
    assert database(written).read_bytes() == before


def test_output_pings_and_case_entries_come_over(written: Shell) -> None:
    before = [written("show", "2", *how).stdout for how in (("--output",), ("--items", "--json"), ("--json",))]
    overwrite(written, 1)
    recovered(written)
    assert [written("show", "2", *how).stdout for how in (("--output",), ("--items", "--json"), ("--json",))] == before


def test_a_run_whose_end_and_lists_were_lost_is_listed_anew(shell: Shell) -> None:
    many = CASES.replace("HB-1 HB-2", "$(seq 60)")
    assert shell(*DAILY, DAYS[0], "--", "sh", "-c", many).returncode == 0
    triggers = sqlite3.connect(database(shell))
    for (name,) in triggers.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        triggers.execute(f"DROP TRIGGER {name}")
    triggers.execute("DELETE FROM item_list")
    triggers.commit()
    triggers.close()
    alter(shell, b'"outcome":"succeeded"', b'"outcome":"sUcceeded"')
    recovered(shell)
    assert verified(shell)["records"] == 120
    assert recovered(shell) == ["store    nothing is wrong with it"]


def test_a_run_whose_end_was_lost_is_lost_and_its_window_is_held(written: Shell) -> None:
    DAMAGES["a line altered"][0](written)
    recovered(written)
    done = written(*DAILY, DAYS[0], "--", "touch", "ran")
    assert done.returncode == 75
    assert not (written.directory / "ran").exists()


def test_a_recovery_of_a_recovered_store_names_both_breaks(written: Shell) -> None:
    DAMAGES["a line altered"][0](written)
    recovered(written)
    overwrite(written, 1)
    recovered(written)
    verdict = verified(written)
    assert verdict["ok"]
    assert ["entry 3 lost" in verdict["breaks"][0], "no entry was lost" in verdict["breaks"][1]] == [True, True]


def test_what_was_journaled_meanwhile_is_brought_over(written: Shell) -> None:
    database(written).write_bytes(b"garbage")
    assert "recording in the journal" in written(*DAILY, "2026-03-05T02:00Z", "--", "sh", "-c", "exit 5").stderr
    assert "journal  2 entries brought over" in recovered(written)
    assert [run["outcome"] for run in written.json("history")] == ["failed"]
    assert list((written.state / "journal").iterdir()) == []


def test_a_tampered_entry_after_a_recovery_is_a_finding_again(written: Shell) -> None:
    DAMAGES["an older copy"][0](written)
    recovered(written)
    connection = sqlite3.connect(database(written))
    connection.execute("DROP TRIGGER ledger_is_never_deleted")
    connection.execute("DELETE FROM ledger WHERE seq = 5")
    connection.commit()
    connection.close()
    texts = [each["text"] for each in verified(written)["findings"]]
    assert "entries 5 to 9 are missing: deleted after they were written" in texts


def test_an_anchor_of_the_lost_head_holds_and_one_of_another_lost_entry_cannot_be_compared(written: Shell) -> None:
    words = next((written.state / "witness").iterdir()).read_text().split()
    DAMAGES["an older copy"][0](written)
    recovered(written)
    assert "ok" in written("verify", "--anchor", f"{words[1]}:{words[2]}").stdout.splitlines()[1]
    done = written("verify", "--anchor", f"7:{'0' * 64}")
    assert (done.returncode, "entry 7, which the anchor knows, is lost" in done.stdout) == (1, True)


def test_redacted_case_entries_do_not_come_back(written: Shell) -> None:
    assert written("redact", "HB-2", "--reason", "asked for").returncode == 0
    overwrite(written, 1)
    recovered(written)
    connection = sqlite3.connect(database(written))
    assert connection.execute("SELECT DISTINCT case_id FROM item").fetchall() == [("HB-1",)]
    connection.close()
    assert verified(written)["ok"]


@pytest.fixture
def set_back(written: Shell, tmp_path: Path) -> Shell:
    """The same entries, each recorded at the due time of its window; then the store was set back to the second."""
    shell = Shell(tmp_path / "set_back")
    with written.open() as store:
        entries = [json.loads(line) for _, line in store.rows("lines_after", seq=0, page=9)]
    for at, day in enumerate(DAYS):
        of_day = entries[:3] if not at else entries[1 + 2 * at : 3 + 2 * at]
        if at == 2:
            shutil.copy(database(shell), shell.directory / "older")
        shell.write(
            *((each["kind"], f"{day[:-1]}:01Z", {k: v for k, v in each.items() if k not in HEADER}) for each in of_day)
        )
    shutil.copy(shell.directory / "older", database(shell))
    recovered(shell)
    return shell


def test_windows_of_a_time_that_is_lost_say_that_they_may_have_been_answered(set_back: Shell) -> None:
    windows = set_back.json("windows", "letters", "--since", "2026-02-28", "--until", "2026-03-04T12:00")
    doubt = "no start at all; entries 6 to 9 of that time are lost (recovery 10)"
    assert [window["because"] for window in windows][2:] == [doubt, doubt]
    said = set_back("catchup", "letters", "--dry-run", "--until", "2026-03-04T12:00", "--", "true").stderr
    assert "letters: 2 of these windows may have been answered: entries 6 to 9 of that time are lost" in said


def test_a_start_that_catches_up_leaves_what_may_have_been_answered(set_back: Shell) -> None:
    start = (*DAILY, "2026-03-06T02:00Z", "--catch-up", "all", "--", "true")
    assert set_back(*start).returncode == 0
    assert [run["window"]["due"][:10] for run in set_back.json("history")] == ["2026-03-06"]


def scribble(shell: Shell, *entries: int) -> None:
    """Make these lines of the ledger illegible."""
    data = bytearray(database(shell).read_bytes())
    for seq in entries:
        at = data.index(b'{"v":1,"seq":%d,"prev":"' % seq) + 100
        data[at : at + 20] = b"#" * 20
    database(shell).write_bytes(data)


@pytest.mark.parametrize(("lost", "notes"), [((3,), 0), ((4, 5), 7)])
def test_a_bundle_says_which_entries_nothing_proves_any_more(written: Shell, lost: tuple[int, ...], notes: int) -> None:
    with written.open() as store, store.write() as tx:
        checkpoints.make(tx, from_rfc3339("2999-01-01T00:00:00Z"))
    scribble(written, *lost)
    recovered(written)
    bundle = written.directory / "bundle"
    assert written("export", "--case", "HB-1", "-o", str(bundle)).returncode == 0
    done = subprocess.run(["sh", "VERIFY.sh"], cwd=bundle, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("is proved since a damaged store")) == (0, notes), done.stdout
    entries = bundle / "entries.jsonl"
    entries.write_bytes(entries.read_bytes().replace(b'"job":"letters"', b'"job":"LETTERS"', 1))
    manifest = bundle / "MANIFEST"
    digest = hashlib.sha256(entries.read_bytes()).hexdigest()
    manifest.write_text(re.sub(r"[0-9a-f]{64}  entries.jsonl", f"{digest}  entries.jsonl", manifest.read_text()))
    done = subprocess.run(["sh", "VERIFY.sh"], cwd=bundle, capture_output=True, text=True, check=False)
    assert (done.returncode, "WRONG  entries.jsonl: entry 1 is not the one" in done.stdout) == (1, True)


def test_what_is_old_goes_although_some_of_it_was_lost(written: Shell, tmp_path: Path) -> None:
    old = Shell(tmp_path / "old")
    with written.open() as store:
        entries = [json.loads(line) for _, line in store.rows("lines_after", seq=0, page=9)]
    with old.open() as store:
        for day, each in enumerate(entries, 1):
            fields = {key: value for key, value in each.items() if key not in HEADER} | {"items": None}
            at_us = from_rfc3339(f"2020-03-0{day}T12:00:00Z")
            with store.write() as tx:
                tx.append(each["kind"], at_us, fields)
                checkpoints.make(tx, at_us)  # from the third day on, each
    scribble(old, 7, 8, 9)
    recovered(old)
    assert verified(old)["ok"]
    done = old("prune", "--keep", "400d", "--reason", "it is old", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert verified(old)["findings"] == []


def test_while_a_run_lives_nothing_is_recovered(written: Shell) -> None:
    overwrite(written, 1)
    damaged = database(written).read_bytes()
    run = [sys.executable, "-m", "runguard", "run", "-j", "long", "--", "sh", "-c", "touch began; exec sleep 60"]
    guard = subprocess.Popen(run, env=written.environ, cwd=written.directory, stderr=subprocess.DEVNULL)
    wait_until((written.directory / "began").exists)
    done = written(*RECOVER)
    guard.send_signal(signal.SIGTERM)
    guard.wait(30)
    assert (done.returncode, done.stdout) == (75, "")
    assert done.stderr.startswith("runguard: a run of long lives (pid ")
    assert database(written).read_bytes() == damaged


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--recover",), "doctor: --reason TEXT is needed: who recovers a store says why"),
        (("--recover", "--reason", " "), "doctor: --reason TEXT is empty: who recovers a store says why"),
        (("--reason", "x"), "doctor: --reason goes with --recover"),
    ],
)
def test_a_recovery_needs_a_reason(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    done = shell("doctor", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runguard: {said}\n")


def test_where_nothing_was_recorded_there_is_nothing_to_recover(shell: Shell) -> None:
    done = shell(*RECOVER)
    assert (done.returncode, done.stderr) == (0, "")
    assert not shell.state.exists()


def test_a_database_of_another_program_is_left_alone(shell: Shell) -> None:
    other = shell.directory / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    done = shell(*RECOVER, "--store", str(other))
    assert done.returncode == 74
    assert (other.read_bytes(), list(shell.directory.glob("aside-*"))) == (before, [])


def test_a_longer_ledger_in_its_place_is_not_said_to_lack_nothing(written: Shell, tmp_path: Path) -> None:
    other = Shell(tmp_path / "other")
    other.write(*((kind, "2026-03-01T02:00Z", {}) for kind in ["note"] * 12))
    shutil.copy(database(other), database(written))
    recovered(written)
    verdict = verified(written)
    said = ": entry 9 lost, entry 12 not proven; history lost: "
    assert (verdict["ok"], said in verdict["breaks"][0]) == (True, True)


def test_without_a_witness_nobody_says_that_nothing_was_lost(written: Shell) -> None:
    shutil.rmtree(written.state / "witness")
    database(written).write_bytes(b"text" * 9_999)
    said = "as far as can be told without a witness"
    assert f"ledger   0 entries salvaged; none lost, {said}" in recovered(written)
    assert f"no entry was lost, {said}; " in verified(written)["breaks"][0]


def test_a_sound_store_of_an_older_schema_is_brought_up_to_date_and_no_more(shell: Shell) -> None:
    shell.write()
    connection = sqlite3.connect(database(shell))
    database(shell).write_bytes(b"")
    connection.close()
    connection = sqlite3.connect(database(shell))
    connection.executescript((Path(creation.__file__).parent / "migrations" / "sqlite" / "0001.sql").read_text())
    connection.close()
    assert recovered(shell) == ["store    nothing is wrong with it"]


def test_an_attempt_that_fails_leaves_no_copy_to_fill_the_disk(written: Shell) -> None:
    overwrite(written, 1)
    damaged = database(written).read_bytes()
    limit = (resource.RLIMIT_FSIZE, (40_000, 40_000))
    done = written(*RECOVER, preexec_fn=lambda: resource.setrlimit(*limit))
    assert done.returncode == 74
    assert (database(written).read_bytes(), list((written.state / "db").glob("aside-*"))) == (damaged, [])


def test_a_run_that_began_while_a_recovery_queued_is_seen(written: Shell) -> None:
    DAMAGES["an older copy"][0](written)
    ours = (sys.executable, "-m", "runguard")
    begun = "touch began; exec sleep 60"
    with (written.state / "db" / "write.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        recovery = subprocess.Popen(
            [*ours, *RECOVER], env=written.environ, cwd=written.directory, stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: "->" in queue_at(lock.fileno()))
        guard = subprocess.Popen(
            [*ours, "run", "-j", "long", "--", "sh", "-c", begun],
            env=written.environ, cwd=written.directory, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(lambda: queue_at(lock.fileno()).count("->") == 2)
    _, said = recovery.communicate(timeout=30)
    wait_until((written.directory / "began").exists)
    guard.send_signal(signal.SIGTERM)
    guard.wait(30)
    assert (recovery.returncode, "lives (" in said) == (75, True)


def queue_at(fd: int) -> str:
    """Return what the kernel says of the locks on an open file."""
    inode = f":{os.fstat(fd).st_ino} "
    return "".join(line for line in Path("/proc/locks").read_text().splitlines() if inode in line)


def test_where_living_runs_cannot_be_asked_for_nothing_is_recovered(written: Shell) -> None:
    runs = written.state / "db" / "runs"
    shutil.rmtree(runs)
    runs.write_text("")
    done = written(*RECOVER)
    assert (done.returncode, done.stderr.splitlines()[0].endswith(f"{runs}: Not a directory (uid {os.geteuid()})")) == (
        74,
        True,
    )


def test_a_newer_schema_is_no_damage(written: Shell) -> None:
    connection = sqlite3.connect(database(written))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    done = written(*RECOVER)
    assert (done.returncode, "upgrade runguard on this host" in done.stderr) == (74, True)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("call", ["link", "rename", "fsync:when=3", "fsync:when=5"])
def test_killed_in_the_middle_it_leaves_the_old_files_or_the_new_and_goes_on_from_there(
    written: Shell, call: str
) -> None:
    overwrite(written, 1)
    damaged = database(written).read_bytes()
    name, _, when = call.partition(":")
    calls = {"link": "link,linkat", "rename": "rename,renameat,renameat2"}.get(name, name)
    inject = f"inject={calls}:signal=KILL" + (f":{when}" if when else "")
    command = ["strace", "-f", "-o", os.devnull, "-e", inject, sys.executable, "-m", "runguard", *RECOVER]
    done = subprocess.run(command, env=written.environ, cwd=written.directory, capture_output=True, timeout=60)
    if b"ptrace" in done.stderr:
        pytest.skip("ptrace is forbidden here")
    assert done.returncode != 0
    if name != "rename":  # a call that is killed is done, or is not
        assert database(written).read_bytes() == damaged or call == "fsync:when=5"
    recovered(written)
    verdict = verified(written)
    assert (verdict["ok"], len(verdict["breaks"])) == (True, 1)
    assert answered(written) == {day[:10] for day in DAYS}
