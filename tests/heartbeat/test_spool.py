"""The spool: slots that survive crashes, hostile files and each other."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runguard.heartbeat import slot as slot_format
from runguard.heartbeat import spool
from runguard.heartbeat.body import Body
from runguard.heartbeat.slot import Slot
from runguard.heartbeat.spool import Claim, claim, keep, slots, waiting
from runguard.heartbeat.styles import Event

URL = "https://hc-ping.com/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
RUN = "01957a0e-6b1f-4c3a-9f2e-3d1b5c7a9e10"
NOW = 10_000


@pytest.fixture
def directory(tmp_path: Path) -> str:
    os.chmod(tmp_path, 0o700)
    return str(tmp_path / "spool")


def slot(directory: str, at_us: int = 1_000, *, job: str = "letters", url: str = URL, kind: str = "failure") -> Slot:
    told = Event(kind, RUN, 3, None, True, Body("failed, exit 3", "no such file", 7))
    where, target = spool.address(directory, url), "https://hc-ping.com/…ea278"
    return Slot(job, at_us, at_us, None, 1, "Connection refused", "healthchecks", target, "", where, told)


def test_a_slot_is_read_as_it_was_written(directory: str) -> None:
    assert keep(directory, slot(directory), NOW)
    assert slots(directory) == [slot(directory)]
    [found] = slots(directory)
    assert (found.event, found.run_id, found.told.body.tail) == ("failure", RUN, "no such file")


def test_nobody_else_may_read_it_whatever_the_umask(directory: str) -> None:
    before = os.umask(0)
    try:
        keep(directory, slot(directory), NOW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in Path(directory).iterdir()} == {0o600}


def test_no_part_of_the_address_is_stored(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    for path in Path(directory).iterdir():
        assert b"5bf66975" not in path.read_bytes() + path.name.encode()


def test_a_job_has_one_slot_for_each_address(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    keep(directory, slot(directory, url="https://hc-ping.com/other"), NOW)
    keep(directory, slot(directory, job="backup"), NOW)
    assert [(each.job, each.at_us) for each in slots(directory)] == [("backup", 1000), ("letters", 1000)] + [
        ("letters", 1000)
    ]
    assert len(waiting(directory, "letters")) == 2


def test_the_newest_outcome_wins_whichever_is_written_last(directory: str) -> None:
    assert keep(directory, slot(directory, 2_000), NOW)
    assert not keep(directory, slot(directory, 1_000), NOW)
    assert [each.at_us for each in slots(directory)] == [2_000]
    assert keep(directory, slot(directory, 3_000), NOW)
    assert [each.at_us for each in slots(directory)] == [3_000]


def test_an_outcome_of_the_future_is_no_newer_since_the_clock_was_set_back(directory: str) -> None:
    keep(directory, slot(directory, NOW + 1_000), NOW + 1_000)
    assert keep(directory, slot(directory, 2_000), NOW)
    assert [each.at_us for each in slots(directory)] == [2_000]
    keep(directory, slot(directory, NOW + 1_000), NOW + 1_000)
    [path] = waiting(directory)
    assert spool.supersede(path, 3_000, NOW) == slot(directory, NOW + 1_000)


def taken(directory: str) -> Claim:
    [path] = waiting(directory)
    found = claim(path)
    assert isinstance(found, Claim)
    return found


def test_a_slot_that_is_being_delivered_cannot_be_claimed_again(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    ours = taken(directory)
    assert claim(ours.path) is None
    ours.close()
    taken(directory).drop()
    assert slots(directory) == []


def test_a_deliverer_that_dies_lets_go_of_the_slot(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    script = "import os, sys; from runguard.heartbeat.spool import claim; claim(sys.argv[1]).slot; os._exit(9)"
    environ = {"PYTHONPATH": str(Path(spool.__file__).parents[2])}
    [path] = waiting(directory)
    assert subprocess.run([sys.executable, "-c", script, path], env=environ, check=False).returncode == 9
    taken(directory).drop()


def test_an_outcome_that_came_during_the_delivery_of_an_older_one_stays(directory: str) -> None:
    keep(directory, slot(directory, 1_000), NOW)
    ours = taken(directory)
    keep(directory, slot(directory, 2_000), NOW)
    ours.drop()
    assert [each.at_us for each in slots(directory)] == [2_000]


def test_nor_is_it_replaced_by_the_older_one_that_could_not_be_delivered(directory: str) -> None:
    keep(directory, slot(directory, 1_000), NOW)
    ours = taken(directory)
    keep(directory, slot(directory, 2_000), NOW)
    ours.put_back("timed out")
    assert [(each.at_us, each.tries) for each in slots(directory)] == [(2_000, 1)]


def test_a_try_that_came_to_nothing_is_counted(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    taken(directory).put_back("timed out")
    assert [(each.tries, each.why) for each in slots(directory)] == [(2, "timed out")]
    taken(directory).close()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda content: b"", "it is damaged"),
        (lambda content: content[: len(content) // 2], "it is damaged"),
        (lambda content: content.replace(b"failed", b"passed"), "it is damaged"),
        (lambda content: os.urandom(100), "it is damaged"),
    ],
    ids=["empty", "torn", "edited", "foreign"],
)
def test_a_slot_that_cannot_be_read_is_kept_aside_and_no_error(directory: str, damage, why: str) -> None:  # type: ignore[no-untyped-def]
    keep(directory, slot(directory), NOW)
    [path] = waiting(directory)
    content = damage(Path(path).read_bytes())
    Path(path).write_bytes(content)
    assert slots(directory) == []
    said = claim(path)
    assert isinstance(said, str)
    assert said == f"{path}: {why}; kept as {path}.damaged, and not sent"
    assert Path(f"{path}.damaged").read_bytes() == content
    assert waiting(directory) == []


def test_a_slot_of_a_later_version_is_kept_aside(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_format, "_FORMAT", 2)
    keep(directory, slot(directory), NOW)
    monkeypatch.undo()
    [path] = waiting(directory)
    assert "it is of another version" in str(claim(path))


def test_a_slot_under_the_name_of_another_job_is_kept_aside(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    [path] = waiting(directory)
    other = path.replace("letters", "backup")
    os.rename(path, other)
    assert slots(directory) == []
    assert "it belongs elsewhere" in str(claim(other))


def test_a_link_is_not_followed_and_what_others_may_write_is_not_believed(directory: str, tmp_path: Path) -> None:
    keep(directory, slot(directory), NOW)
    [path] = waiting(directory)
    os.rename(path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path)
    assert slots(directory) == []
    assert "kept as" in str(claim(path))
    assert (tmp_path / "elsewhere").exists()
    keep(directory, slot(directory), NOW)
    os.chmod(path, 0o666)
    assert "others may write to it" in str(claim(path))


def test_a_slot_that_cannot_be_read_just_now_stays_where_it_is(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    [path] = waiting(directory)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        said = claim(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert str(said).startswith(f"{path}: Too many open files")
    assert str(said).endswith("; it is left where it is")
    taken(directory).close()


def test_a_spool_in_which_others_may_write_is_not_used(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    os.chmod(directory, 0o777)
    assert slots(directory) == []
    with pytest.raises(OSError, match="others may write in it"):
        keep(directory, slot(directory), NOW)


def test_where_there_is_no_spool_nothing_waits_and_nothing_is_made(directory: str) -> None:
    assert slots(directory) == []
    assert waiting(directory, "letters") == []
    assert not os.path.exists(directory)


def test_a_lost_or_torn_key_is_made_anew(directory: str) -> None:
    first = spool.address(directory, URL)
    assert spool.address(directory, URL) == first
    (Path(directory) / "key").write_bytes(b"torn")
    second = spool.address(directory, URL)
    assert second != first
    assert spool.address(directory, URL) == second


def test_what_a_dead_writer_left_behind_is_removed_after_an_hour(directory: str) -> None:
    keep(directory, slot(directory), NOW)
    left = Path(directory) / ".4711~letters~0123456789abcdef"
    left.write_bytes(b"half")
    spool.tidy(directory, left.stat().st_mtime + 3599)
    assert left.exists()
    spool.tidy(directory, left.stat().st_mtime + 3601)
    assert not left.exists()
    assert len(slots(directory)) == 1
