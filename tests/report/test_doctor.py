"""Each check finds what it is there for, says where it is and what to type, and is quiet where all is well."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runguard import clock, config, paths, zones
from runguard.errors import StoreError
from runguard.heartbeat import spool
from runguard.heartbeat.event import Event
from runguard.heartbeat.slot import Slot
from runguard.instant import DAY_S, SECOND_US, from_rfc3339
from runguard.report.doctor import checks, configured, findings, jobs, kept, places, software, time, world
from runguard.report.doctor.world import World
from runguard.schedule import zone
from runguard.store.witness import Witness
from shell import Shell

NOW_US = from_rfc3339("2026-06-01T12:00:00Z")
DAILY = ("run", "-j", "letters", "-s", "0 2 * * *", "-z", "UTC", "--scheduled-at", "2026-03-01T02:00Z")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shell = Shell(tmp_path_factory.mktemp("original"))
    assert shell(*DAILY, "--", "/bin/sh", "-c", "true").returncode == 0
    return shell.directory


@pytest.fixture
def written(original: Path, shell: Shell) -> Shell:
    """A state directory with one run of a job."""
    shutil.copytree(original / "state", shell.state)
    [witness] = (shell.state / "witness").iterdir()
    witness.rename(Witness(str(shell.state / "witness"), str(shell.state / "db" / "runguard.sqlite")).path)
    return shell


def seen(shell: Shell, now_us: int | None = None, **environ: str) -> World:
    """Return what the checks look at."""
    variables = {**shell.environ, **environ}
    loaded = config.load(variables, None)
    settings, _ = config.effective({}, variables, loaded, "")
    kept_in = paths.places(str(shell.state), settings.store)
    return world.gather(variables, loaded, kept_in, settings.store is not None, now_us or clock.look().wall_us)


def levels(found: Any) -> list[str]:
    return [each.level for each in found]


def only(found: Any) -> findings.Finding:
    [one] = found
    return one


def test_nothing_at_all_is_no_fault(shell: Shell) -> None:
    told = [(name, each) for name, each in checks.examine(seen(shell)) if each.level == findings.FAULT]
    assert told == []


def test_of_a_sound_state_the_record_and_its_places_are_ok(written: Shell) -> None:
    of_these = ("store", "ledger", "witness", "journal", "spool", "state directory", "locks", "leftovers", "space")
    told = {name: each.level for name, each in checks.examine(seen(written)) if name in of_these}
    assert told == dict.fromkeys(of_these, "ok")


def test_every_check_says_something(written: Shell) -> None:
    assert {name for name, _ in checks.examine(seen(written))} == set(checks.CHECKS)


def test_a_check_that_fails_itself_hides_no_other(written: Shell) -> None:
    def broken(_: World) -> Any:
        raise KeyError("bug")

    told = dict(checks.examine(seen(written), {"witness": broken, "journal": kept.journal}))
    assert told["witness"].text == "it could not be looked at: KeyError('bug')"
    assert "journal" in told


def test_a_fault_of_the_store_is_told_in_its_own_words(written: Shell) -> None:
    def broken(_: World) -> Any:
        raise StoreError("/x", "the file is corrupt")

    told = dict(checks.examine(seen(written), {"ledger": broken}))
    assert told["ledger"].text == "it cannot be looked at: store /x: the file is corrupt"


def test_what_is_to_be_typed_is_one_word_of_a_path_whatever_its_name(written: Shell) -> None:
    lock = written.state / "db" / "locks" / "a;rm -r ~.lock"
    lock.symlink_to("nowhere")
    [found] = [each for each in places.locks(seen(written)) if each.level == "fault"]
    assert found.command == f"rm '{lock}'"


def test_a_mode_is_not_what_is_wrong_with_a_link(shell: Shell) -> None:
    shell.state.symlink_to(shell.directory)
    assert [each.command for each in places.state(seen(shell)) if each.level == "fault"] == [None]


def test_a_witness_that_others_may_write_to_is_closed_to_them(written: Shell) -> None:
    (written.state / "witness").chmod(0o777)
    assert only(kept.witness(seen(written))).command == f"chmod 700 {written.state / 'witness'}"


# The record


def database(shell: Shell) -> Path:
    return shell.state / "db" / "runguard.sqlite"


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda path: path.write_bytes(b"text" * 9_999), "the file is corrupt or no SQLite database"),
        (lambda path: path.write_bytes(b""), "the store is missing or empty, and the witness saw entry 3"),
        (lambda path: path.unlink(), "the store is missing or empty, and the witness saw entry 3"),
        (lambda path: path.write_bytes(path.read_bytes()[:40_960]), "corrupt"),
    ],
)
def test_a_store_that_cannot_be_used_is_a_fault_and_recovery_is_named(
    written: Shell, spoil: Callable[[Path], object], text: str
) -> None:
    spoil(database(written))
    found = only(kept.store(seen(written)))
    assert (found.level, text in found.text) == ("fault", True)
    assert found.command == "runguard doctor --recover --reason TEXT"
    assert levels(kept.ledger(seen(written))) == ["unknown"]


def test_a_write_that_was_cut_off_is_told_and_not_undone(written: Shell) -> None:
    journal = Path(f"{database(written)}-journal")
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
    before = (database(written).read_bytes(), journal.read_bytes())
    found = only(kept.store(seen(written)))
    assert (found.level, found.command) == ("warning", "runguard status")
    assert "a write that was cut off waits to be undone" in found.text
    assert (database(written).read_bytes(), journal.read_bytes()) == before


def test_a_store_that_others_may_write_to_is_a_fault(written: Shell) -> None:
    database(written).chmod(0o666)
    found = next(kept.store(seen(written)))
    assert (found.level, found.command) == ("fault", f"chmod 600 {database(written)}")


def test_a_store_that_everybody_may_read_is_a_warning(written: Shell) -> None:
    database(written).chmod(0o644)
    assert levels(kept.store(seen(written))) == ["warning", "ok"]


def test_a_named_store_that_does_not_exist_is_a_fault(shell: Shell) -> None:
    found = only(kept.store(seen(shell, RUNGUARD_STORE=str(shell.directory / "none.sqlite"))))
    assert (found.level, found.text.endswith("there is no such file")) == ("fault", True)


def test_a_ledger_that_nobody_verifies_is_a_warning_and_one_that_did_not_verify_a_fault(written: Shell) -> None:
    late = seen(written, clock.look().wall_us + 40 * DAY_S * SECOND_US)
    assert {(each.level, each.command) for each in kept.ledger(late)} == {
        ("warning", "runguard verify")
    }  # a checkpoint, too
    with written.open() as store, store.write() as tx:
        row = {"at_us": NOW_US, "since_seq": 0, "upto_seq": 3, "upto_hash": "0" * 64, "problems": 2}
        tx.send("insert_verified", row)
    assert any(each[:3] == ("fault", "it did not verify 0s ago", "runguard verify --full")
               for each in kept.ledger(seen(written, NOW_US)))  # fmt: skip


def test_a_key_that_cannot_sign_is_a_fault(written: Shell) -> None:
    written.config.write_text(f'sign_key = "{written.directory}/none"\n')
    told = [each for each in kept.ledger(seen(written)) if each.text.startswith("sign_key")]
    assert (levels(told), told[0].command) == (["fault"], f"ssh-keygen -t ed25519 -N '' -f {written.directory}/none")


def test_an_anchor_that_was_not_told_is_a_warning(written: Shell) -> None:
    written.config.write_text('anchor = "false"\n')
    told = [each for each in kept.ledger(seen(written)) if each.text.startswith("anchor")]
    assert levels(told) == ["unknown"]


def test_a_missing_witness_a_damaged_and_a_contradicting_one_are_told_apart(written: Shell) -> None:
    [witness] = (written.state / "witness").iterdir()
    line = witness.read_text()
    witness.write_text("garbage\n")
    assert only(kept.witness(seen(written))).level == "fault"
    witness.write_text(line.replace(" 3 ", " 9 "))
    found = only(kept.witness(seen(written)))
    assert (found.level, found.command) == ("fault", "runguard doctor --recover --reason TEXT")
    witness.unlink()
    assert only(kept.witness(seen(written))).level == "warning"


def test_a_journal_that_waits_and_torn_pieces_are_warnings(written: Shell) -> None:
    journal = written.state / "journal"
    (journal / "a.jsonl").write_text("{}\n")
    (journal / "b.rejected").write_text("torn")
    told = list(kept.journal(seen(written)))
    assert levels(told) == ["warning", "warning"]
    assert (told[0].command, "b.rejected" in told[1].text) == ("runguard status", True)


def test_a_reserve_that_is_not_claimed_is_a_warning(written: Shell) -> None:
    reserve = written.state / "journal.reserve"
    os.truncate(reserve, 0)
    assert "only 0 bytes of it are claimed" in next(kept.journal(seen(written))).text


def test_an_outcome_that_no_monitor_has_heard_is_a_warning(written: Shell) -> None:
    directory = str(written.state / "spool")
    address = spool.address(directory, "https://example.org/ping")
    told = Event("success", "00000000-0000-4000-8000-000000000000", 0)
    slot = Slot("letters", NOW_US, NOW_US, None, 1, "HTTP 503", "plain", "https://example.org/…", "", address, told)
    spool.keep(directory, slot, NOW_US)
    (written.state / "spool" / "letters~x.damaged").write_text("")
    told = list(kept.spool(seen(written)))
    assert levels(told) == ["warning", "warning"]
    assert (told[0].job, told[0].command) == ("letters", "runguard ping")


# Places


def test_a_directory_that_others_may_write_in_is_a_fault(written: Shell) -> None:
    (written.state / "db").chmod(0o777)
    told = list(places.state(seen(written)))
    assert levels(told) == ["ok", "fault"]
    assert told[1].command == f"chmod 700 {written.state}/db"


def test_links_and_foreign_files_among_the_locks_are_faults(written: Shell) -> None:
    locks = written.state / "db" / "locks"
    (locks / "a.lock").symlink_to("/etc/passwd")
    os.mkfifo(locks / "b.lock")
    os.link(locks / "letters.lock", locks / "c.lock")
    whys = [each.text.partition(": ")[2].partition(";")[0] for each in places.locks(seen(written))]
    assert whys == ["it is a symbolic link", "it is no regular file", "it has 2 hard links", "it has 2 hard links"]


def test_what_dead_guards_have_left_is_a_warning(written: Shell) -> None:
    runs = written.state / "db" / "runs"
    (runs / "00000000-0000-4000-8000-000000000001").write_text("")
    (runs / "00000000-0000-4000-8000-000000000002.items").write_text("{}\n")
    assert levels(places.leftovers(seen(written))) == ["warning", "warning"]


@pytest.mark.parametrize(
    ("kind", "level"),
    [("ext4", "ok"), ("nfs4", "fault"), ("cifs", "fault"), ("tmpfs", "warning"), ("overlay", "warning")],
)
def test_the_kind_of_the_file_system_decides(written: Shell, kind: str, level: str) -> None:
    device = database(written).stat().st_dev
    row = f"36 35 {os.major(device)}:{os.minor(device)} / /srv rw,noatime shared:1 - {kind} server:/export rw\n"
    assert only(places.file_system(seen(written), row)).level == level
    assert only(places.file_system(seen(written), "")).level == "unknown"


@pytest.mark.parametrize(
    ("free_mib", "files", "level"),
    [(999, 9_999, "ok"), (63, 9_999, "warning"), (3, 9_999, "fault"), (999, 999, "warning"), (999, 15, "fault")],
)
def test_little_room_is_a_warning_and_none_a_fault(written: Shell, free_mib: int, files: int, level: str) -> None:
    room: Any = SimpleNamespace(
        f_bavail=free_mib << 8, f_frsize=4_096, f_blocks=1 << 20, f_files=1 << 20, f_favail=files
    )
    found = only(places.space(seen(written), lambda _: room))
    assert (found.level, found.command is None) == (level, level == "ok")


# The configuration


def test_every_mistake_of_the_configuration_is_told(written: Shell) -> None:
    written.config.write_text('colour = "red"\n[jobs.letters]\ntimeout = "soon"\npolcy = "walk"\n')
    told = [each.text for each in configured.mistakes(seen(written))]
    assert [each.partition(": ")[0].rpartition(":")[2] for each in told] == ["1", "3", "4"]
    assert "did you mean policy?" in told[2]


def test_who_may_write_the_configuration_decides_what_runs(written: Shell) -> None:
    written.config.chmod(0o666)
    found = only(configured.permissions(seen(written)))
    assert (found.level, found.command) == ("fault", f"chmod go-w {written.config}")


def test_secrets_that_others_may_read_are_warnings(written: Shell) -> None:
    url = written.directory / "url"
    url.write_text("https://example.org/x\n")
    url.chmod(0o644)
    written.config.chmod(0o644)
    written.config.write_text(f'ping = "file:{url}"\n')
    assert [each.command for each in configured.permissions(seen(written))] == [f"chmod 600 {url}"]
    url.chmod(0o600)
    assert levels(configured.permissions(seen(written))) == ["ok"]
    written.config.write_text('[jobs.letters]\nping = "https://example.org/x"\n')
    assert [each.command for each in configured.permissions(seen(written))] == [f"chmod go-r {written.config}"]
    written.config.write_text('ping = "file:/none/such"\n')
    assert levels(configured.permissions(seen(written))) == ["fault"]


# Jobs


def of_job(found: Any) -> list[findings.Finding]:
    return [each for each in found if each.job is not None]


def test_a_command_that_cron_would_not_find_is_told(written: Shell) -> None:
    assert only(of_job(jobs.commands(seen(written)))).text == "letters: /bin/sh is found"
    written.config.write_text('[jobs.letters]\ncommand = ["/opt/none", "x"]\n')
    assert only(of_job(jobs.commands(seen(written))))[:2] == ("fault", "letters: /opt/none does not exist")
    written.config.write_text('[jobs.letters]\ncommand = "cd /srv && ./send"\n')
    assert only(of_job(jobs.commands(seen(written)))).level == "ok"


def test_a_command_that_only_a_longer_path_finds_is_a_warning(shell: Shell) -> None:
    tool = shell.directory / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    shell("run", "--", "tool", environ={"PATH": f"{tool.parent}:/usr/bin:/bin"})
    found = only(of_job(jobs.commands(seen(shell))))
    assert (found.level, f"its last start had PATH={tool.parent}" in found.text) == ("warning", True)


def test_a_ping_that_was_never_delivered_is_unknown(written: Shell) -> None:
    written.config.write_text('[jobs.letters]\nping = "https://example.org/ping/0123456789abcdef"\n')
    found = only(jobs.pings(seen(written)))
    assert (found.level, found.command) == ("unknown", "runguard ping --test letters")
    assert "0123456789" not in found.text


# Time and software


@pytest.mark.parametrize(
    ("jobs_zone", "crons", "level"),
    [("UTC", "Etc/UTC", "ok"), ("Europe/London", "UTC", "warning"), ("Europe/London", "GB", "ok")],
)
def test_cron_and_a_job_that_go_by_other_zones_are_a_warning(
    written: Shell, jobs_zone: str, crons: str, level: str
) -> None:
    written.config.write_text(f'[jobs.other]\nschedule = "0 2 * * *"\ntimezone = "{jobs_zone}"\n')
    told = [each for each in time.daemon_zone(seen(written), (crons, "TZ of the daemon")) if each.job == "other"]
    assert levels(told) == (["warning"] if level == "warning" else [])


def test_the_first_instant_at_which_two_zones_differ_is_found() -> None:
    london, utc = zones.load("Europe/London").zone, zone.fixed("+00:00")
    # London: +00:00 until 2027-03-28T01:00Z, from 2026-10-25T01:00Z
    winter = from_rfc3339("2026-12-01T00:00:00Z") // 1_000_000
    assert time.first_difference(london, utc, winter) == from_rfc3339("2027-03-28T01:00:00Z") // 1_000_000
    assert time.first_difference(london, london, winter) is None


def test_a_zone_that_is_not_known_here_is_a_warning(written: Shell) -> None:
    written.config.write_text('[jobs.other]\nschedule = "0 2 * * *"\ntimezone = "Europe/Lundon"\n')
    assert any("did you mean Europe/London?" in each.text for each in time.tzdata(seen(written)))


def test_what_cannot_be_told_of_the_clock_is_unknown_and_not_ok(shell: Shell) -> None:
    assert only(time.clock(seen(shell), lambda: None, str(shell.directory / "none"))).level == "unknown"


@pytest.mark.parametrize(("status", "level"), [(0, "ok"), (0x40, "unknown")])
def test_the_kernels_word_on_its_clock_counts(shell: Shell, status: int, level: str) -> None:
    state = time.Timex(status=status)
    assert only(time.clock(seen(shell), lambda: state, str(shell.directory / "none"))).level == level


def test_modules_without_compiled_files_are_a_warning(written: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = only(software.compiled(seen(written), lambda path: path + "-none"))
    assert (found.level, " -m compileall " in str(found.command)) == ("warning", True)


# The command


def test_the_status_is_1_if_anything_is_wrong(written: Shell) -> None:
    written.config.write_text("no such key = 1\n")
    done = written("doctor", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert '"level": "fault", "check": "configuration"' in done.stdout


def test_an_auditor_who_may_only_read_gets_an_answer(written: Shell) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become another account")
    for path in (written.directory, written.state, written.state / "db"):
        path.chmod(0o755)
    database(written).chmod(0o644)
    for parent in written.directory.parents[:3]:
        parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    written.prefix = ("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups")
    if written("--version").returncode != 0:
        pytest.skip("another user may not read this interpreter or the sources")
    done = written("doctor")
    assert done.stderr == ""
    assert "it belongs to uid 0, and is only read here" in done.stdout
