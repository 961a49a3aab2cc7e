import os
import sqlite3
import stat
import subprocess
import sys

import pytest

from runguard.errors import NothingRecordedError, StoreError, UnsafeError
from runguard.store import network, sqlite
from runguard.store.sqlite import SCHEMA

from_umask = pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])


@from_umask
def test_modes_do_not_depend_on_the_umask(place, start, umask):
    before = os.umask(umask)
    try:
        place.write(start(1))
    finally:
        os.umask(before)
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in place.directory.rglob("*")}
    witness = next(place.witness.iterdir()).name
    assert modes == {
        "db": "0o700",
        "witness": "0o700",
        "runguard.sqlite": "0o600",
        "runguard.sqlite-journal": "0o600",
        "write.lock": "0o600",
        witness: "0o600",
    }


def test_a_hundred_processes_create_one_store(place, chain):
    assert place.writers(100) == [0] * 100
    assert sorted(entry["number"] for entry in chain(place.path)) == list(range(1, 101))


@pytest.mark.parametrize("name", ["a b", "100%", "what?", "a#b", "é", "x\udcff\udcfe", "%41", "a&mode=memory", "'"])
def test_odd_paths_are_taken_literally(tmp_path, start, name):
    from runguard.store.lines import Author

    path = os.path.join(os.fspath(tmp_path), name, f"{name}.sqlite")
    store = sqlite.open_store(path, author=Author("alpha", {}, "0"), create=True)
    with store.write() as transaction:
        transaction.append("run.start", 0, start(1)[1])
    assert os.path.getsize(os.fsencode(path)) > 0
    assert sqlite.open_reader(path).head().seq == 1


def test_a_path_with_a_nul_is_a_store_error():
    with pytest.raises(StoreError, match="embedded null"):
        sqlite.open_reader("a\0b")


def test_without_create_a_missing_store_is_refused(place):
    with pytest.raises(NothingRecordedError, match="nothing has been recorded yet: there is no such file"):
        place.open(create=False)
    assert not place.path.parent.exists()


def test_a_symbolic_link_to_the_store_uses_the_same_write_lock(place, start, tmp_path):
    place.write(start(1))
    link = tmp_path / "link.sqlite"
    link.symlink_to(place.path)
    store = sqlite.open_store(str(link), author=place.open().author, create=False)
    assert store.lock.path == str(place.path.parent / "write.lock")


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "fuse.sshfs", "ceph", "glusterfs"])
def test_a_network_file_system_is_refused(place, kind):
    device = place.directory.stat().st_dev
    row = f"36 35 {os.major(device)}:{os.minor(device)} / /srv rw,noatime shared:1 - {kind} server:/export rw\n"
    with pytest.raises(UnsafeError, match=rf"network file system \({kind}\).*use --store with a path on a local disk"):
        place.open(mountinfo=row)
    assert not place.path.exists()


def test_an_existing_store_on_a_network_file_system_is_refused_too(place, start):
    place.write(start(1))
    device = place.path.stat().st_dev
    row = f"36 35 {os.major(device)}:{os.minor(device)} / /srv rw - nfs4 server:/export rw\n"
    with pytest.raises(UnsafeError):
        place.open(mountinfo=row)


def test_a_local_file_system_is_not_refused(place):
    device = place.directory.stat().st_dev
    place.open(mountinfo=f"36 35 {os.major(device)}:{os.minor(device)} / / rw - ext4 /dev/sda rw\n").close()
    network.refuse_network("x", os.makedev(9, 9), "1 2 9:8 / / rw - nfs a rw\nbroken\n")


def test_a_newer_schema_is_read_and_not_written(place, start):
    place.write(start(1))
    sqlite3.connect(place.path).execute(f"PRAGMA user_version = {SCHEMA + 1}")
    with pytest.raises(StoreError, match=rf"its schema is {SCHEMA + 1}, newer than this program's \({SCHEMA}\)"):
        place.open().head()
    assert place.reader().head().seq == 1


def test_the_database_of_another_program_is_left_alone(place):
    place.path.parent.mkdir(parents=True)
    sqlite3.connect(place.path).execute("CREATE TABLE cookies (name TEXT)")
    before = place.path.read_bytes()
    for open_it in (place.open, place.reader):
        with pytest.raises(StoreError, match="a database of another program"):
            open_it().head()
    assert place.path.read_bytes() == before


SPECIAL = {
    "directory": os.mkdir,
    "pipe": os.mkfifo,
    "device": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3)),
}
special = pytest.mark.parametrize("kind", SPECIAL)


@special
def test_what_is_no_regular_file_in_the_place_of_the_store_is_refused_and_left_as_it_is(place, kind):
    place.path.parent.mkdir(parents=True)
    make(place.path, kind)
    before = os.lstat(place.path)
    with pytest.raises(UnsafeError) as refused:
        place.open()
    assert str(refused.value) == (
        f"store {place.path}: it is no regular file (uid {os.geteuid()}); nothing was started"
    )
    with pytest.raises(StoreError, match="it is no regular file"):
        place.reader()
    assert (before.st_mode, before.st_ctime_ns) == (os.lstat(place.path).st_mode, os.lstat(place.path).st_ctime_ns)


@pytest.mark.parametrize("content", ["database", "nothing"])
def test_a_store_of_another_account_is_refused_and_left_as_it_is(place, start, content):
    if content == "database":
        place.write(start(1))
    else:
        place.path.parent.mkdir(parents=True)
        place.path.touch()
    give_away(place.path)
    before = os.stat(place.path)
    with pytest.raises(UnsafeError, match=r"runguard\.sqlite: it belongs to uid 54321 \(uid 0\); nothing was started"):
        place.open()
    assert (before.st_mode, before.st_size) == (os.stat(place.path).st_mode, os.stat(place.path).st_size)


@pytest.mark.parametrize("mode", [0o660, 0o602])
@pytest.mark.parametrize("content", ["database", "nothing"])
def test_a_store_that_others_may_write_to_is_refused(place, start, mode, content):
    if content == "database":
        place.write(start(1))
    else:
        place.path.parent.mkdir(parents=True)
        place.path.touch()
    place.path.chmod(mode)
    with pytest.raises(UnsafeError, match=rf"others may write to it \(mode {mode:04o}\); chmod 600 it"):
        place.open()
    assert stat.S_IMODE(place.path.stat().st_mode) == mode


def test_a_store_that_becomes_anothers_while_it_is_open_is_refused(place, start):
    store = place.open()
    with store.write() as transaction:
        transaction.append("run.start", 0, start(1)[1])
    place.path.chmod(0o666)
    with pytest.raises(UnsafeError, match="others may write to it"), store.write():
        pass


def test_an_empty_file_of_our_own_becomes_the_store(place, start):
    place.path.parent.mkdir(parents=True)
    place.path.touch(0o644)
    place.write(start(1))
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600


def test_a_file_that_is_no_database_is_kept_as_it_is(place):
    place.path.parent.mkdir(parents=True)
    place.path.write_bytes(b"not a database, but longer than a hundred bytes " * 10)
    for open_it in (place.open, place.reader):
        with pytest.raises(StoreError, match=r"corrupt or no SQLite database.*nothing was repaired"):
            open_it().head()
    assert place.path.read_bytes().startswith(b"not a database")


def test_flipped_pages_are_a_store_error(place, start):
    place.write(*(start(number) for number in range(1, 60)))
    data = bytearray(place.path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    place.path.write_bytes(data)
    with pytest.raises(StoreError, match=r"corrupt \(database disk image is malformed\)"), place.open().write():
        pass
    with pytest.raises(StoreError, match="corrupt"):
        place.reader().head()


def test_a_file_cut_short_is_a_store_error(place, start):
    place.write(*(start(number) for number in range(1, 60)))
    os.truncate(place.path, 8192)
    with pytest.raises(StoreError, match="corrupt"), place.open().write():
        pass


@pytest.mark.parametrize("loss", ["missing", "empty"])
def test_a_store_that_vanished_is_not_begun_anew(place, start, loss):
    place.write(start(1), start(2))
    place.path.unlink()
    if loss == "empty":
        place.path.touch()
    for open_it in (place.open, place.reader):
        with pytest.raises(
            StoreError, match=r"history lost: the witness .* saw entry 2, the store is missing or empty"
        ):
            open_it()
    assert not place.path.exists() or place.path.stat().st_size == 0


def test_a_database_emptied_by_hand_is_refused(place, start):
    place.write(start(1))
    place.path.unlink()
    connection = sqlite3.connect(place.path)
    connection.execute("PRAGMA application_id = 1919382116")
    connection.execute("VACUUM")
    with pytest.raises(StoreError, match="history lost"):
        place.open().head()


def test_an_older_copy_in_the_place_of_the_store_is_refused(place, start):
    place.write(start(1))
    copy = place.path.read_bytes()
    place.write(start(2), start(3))
    place.path.write_bytes(copy)
    with (
        pytest.raises(StoreError, match=r"history lost: the witness .* saw entry 3, the store ends at 1"),
        place.open().write(),
    ):
        pass
    with pytest.raises(StoreError, match="saw entry 3, the store ends at 1"):
        place.reader()


def test_another_history_of_the_same_length_is_refused(place, start, tmp_path):
    place.write(start(1), start(2))
    place.path.rename(tmp_path / "first")
    witness = next(place.witness.iterdir())
    kept = witness.read_bytes()
    witness.unlink()
    place.write(start(1), start(2), start(3))
    witness.write_bytes(kept)
    with (
        pytest.raises(StoreError, match=r"history lost: .* saw entry 2, which the store has not or has otherwise"),
        place.open().write(),
    ):
        pass


def test_a_witness_that_lags_behind_is_accepted_and_catches_up(place, start):
    place.write(start(1))
    witness = next(place.witness.iterdir())
    kept = witness.read_bytes()
    place.write(start(2), start(3))
    witness.write_bytes(kept)
    place.write(start(4))
    assert witness.read_text().split(" ")[1] == "4"


@pytest.mark.parametrize("content", [b"", b"garbage", b"runguard-witness-1 x " + b"0" * 64 + b"\n", b"\xff" * 300])
def test_a_damaged_witness_is_a_remark_and_is_written_anew(place, start, content):
    place.write(start(1))
    witness = next(place.witness.iterdir())
    witness.write_bytes(content)
    store = place.open()
    with store.write() as transaction:
        transaction.append("run.start", 0, start(2)[1])
    assert store.remarks == [f"witness {witness}: it is damaged; it cannot tell whether history was lost"]
    assert witness.read_text().split(" ")[1] == "2"


def test_a_missing_store_beside_a_damaged_witness_is_refused(place, start):
    place.write(start(1))
    place.path.unlink()
    next(place.witness.iterdir()).write_bytes(b"garbage")
    with pytest.raises(StoreError, match=r"history lost: the store is missing or empty, and the witness .* is damaged"):
        place.open()


def test_a_witness_that_cannot_be_written_is_a_remark(place, start):
    place.directory.joinpath("witness").write_text("in the way")
    store = place.open()
    with store.write() as transaction:
        transaction.append("run.start", 0, start(1)[1])
    assert "it lags behind" in store.remarks[0]
    assert store.head().seq == 1


def test_a_store_replaced_while_open_is_not_written(place, start):
    store = place.open()
    with store.write() as transaction:
        transaction.append("run.start", 0, start(1)[1])
    copy = place.path.read_bytes()
    place.path.unlink()
    place.path.write_bytes(copy)
    with pytest.raises(StoreError, match="the file was replaced while it was open"), store.write():
        pass
    assert place.reader().head().seq == 1


def test_a_write_lock_replaced_while_open_is_taken_anew(place, start):
    store = place.open()
    with store.write():
        pass
    lock = place.path.parent / "write.lock"
    lock.unlink()
    with store.write() as transaction:
        transaction.append("run.start", 0, start(1)[1])
        assert lock.exists()
        with pytest.raises(StoreError, match=r"locked for 0.05 s"), place.open(wait_s=0.05).write():
            pass


@special
def test_a_write_lock_that_is_no_regular_file_is_refused(place, kind):
    place.path.parent.mkdir(parents=True)
    make(place.path.parent / "write.lock", kind)
    with pytest.raises(UnsafeError, match=r"write\.lock: it is no regular file"):
        place.open()


def test_a_write_lock_that_is_a_symbolic_link_is_not_followed(place, tmp_path):
    place.path.parent.mkdir(parents=True)
    place.path.parent.joinpath("write.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeError, match=r"write\.lock: it is a symbolic link"):
        place.open()
    assert not (tmp_path / "elsewhere").exists()


def test_a_write_lock_of_another_account_is_refused(place, start):
    place.write(start(1))
    give_away(place.path.parent / "write.lock")
    with pytest.raises(UnsafeError, match=r"write\.lock: it belongs to uid 54321"), place.open().write():
        pass


def test_a_write_lock_that_others_may_write_to_is_refused(place, start):
    place.write(start(1))
    (place.path.parent / "write.lock").chmod(0o666)
    with pytest.raises(UnsafeError, match=r"write\.lock: others may write to it \(mode 0666\)"), place.open().write():
        pass


def test_a_stopped_writer_is_named_when_the_wait_is_over(place, start, child_environment):
    place.write(start(1))
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment(),
        text=True,
    )
    try:
        assert holding.stdout.readline() == "held\n"
        holding.send_signal(19)
        name = f"process {holding.pid} (python"
        with pytest.raises(StoreError) as caught, place.open(wait_s=0.2).write():
            pass
        assert caught.value.why.startswith(f"locked for 0.2 s by {name}")
        assert place.reader().head().seq == 1
    finally:
        holding.kill()
        holding.communicate()
    place.write(start(2))


def test_a_foreign_lock_on_the_database_is_named(place, start, child_environment):
    place.write(start(1))
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE');"
        "print('held', flush=True); sys.stdin.read()"
    )
    holding = subprocess.Popen(
        [sys.executable, "-c", code, str(place.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holding.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=rf"locked by process {holding.pid} \(python"):
            place.open(wait_s=0.1).head()
    finally:
        holding.communicate()


def test_what_a_killed_writer_left_is_undone_by_the_next(place, start, chain, child_environment):
    leave_hot_journal(place, start, child_environment)
    place.write(start(2))
    assert [entry["number"] for entry in chain(place.path)] == [1, 2]


def test_what_a_killed_writer_left_is_undone_by_a_reader_of_the_same_account(place, start, child_environment):
    leave_hot_journal(place, start, child_environment)
    assert place.reader().head().seq == 1


def test_another_account_says_that_an_interrupted_write_must_be_undone(open_place, start, child_environment, as_nobody):
    leave_hot_journal(open_place, start, child_environment)
    for path in open_place.path.parent.iterdir():
        path.chmod(0o644)
    open_place.path.parent.chmod(0o755)
    said = as_nobody(lambda: sqlite.open_reader(str(open_place.path)).head())
    assert said.startswith(f"StoreError: store {open_place.path}: ")
    assert "uid 65534" in said


def test_a_read_only_account_can_ask(open_place, start, as_nobody):
    open_place.write(start(1))
    open_place.path.chmod(0o644)
    open_place.path.parent.chmod(0o755)
    assert as_nobody(lambda: open_place.reader().head().seq) == "1"


def test_a_read_only_account_cannot_write(open_place, start, as_nobody):
    open_place.write(start(1))
    open_place.path.chmod(0o644)
    open_place.path.parent.chmod(0o755)

    def write():
        with open_place.open().write() as transaction:
            transaction.append("run.start", 0, start(2)[1])

    assert f"UnsafeError: store {open_place.path}: it belongs to uid 0 (uid 65534)" in as_nobody(write)
    for name in ("runguard.sqlite", "write.lock"):
        os.chown(open_place.path.parent / name, 65534, 65534)
    open_place.path.chmod(0o444)
    assert f"StoreError: store {open_place.path}: read-only for uid 65534" in as_nobody(write)
    (open_place.path.parent / "write.lock").chmod(0o400)
    assert "write.lock: Permission denied (uid 65534)" in as_nobody(write)


def test_an_account_without_any_access_is_told_so(open_place, start, as_nobody):
    open_place.write(start(1))
    assert "Permission denied (uid 65534)" in as_nobody(lambda: open_place.reader())
    open_place.path.parent.chmod(0o755)
    assert "cannot be opened: Permission denied (uid 65534)" in as_nobody(lambda: open_place.reader())


def test_a_full_disk_is_a_store_error_and_loses_nothing(place_in, small_disk, start, chain):
    place = place_in(small_disk)
    place.write(start(1))
    store = place.open()
    fill(small_disk / "filler")
    with pytest.raises(StoreError, match="the disk is full"), store.write() as transaction:
        transaction.append("run.start", 0, start(2, argv=["x" * 50_000])[1])
    assert len(chain(place.path)) == 1
    (small_disk / "filler").unlink()
    with store.write() as transaction:
        transaction.append("run.start", 0, start(2)[1])
    assert len(chain(place.path)) == 2


def test_a_full_disk_can_be_read(place_in, small_disk, start):
    place = place_in(small_disk)
    place.write(start(1))
    fill(small_disk / "filler")
    assert place.reader().head().seq == 1


def test_a_store_cannot_be_created_on_a_full_disk(place_in, small_disk):
    fill(small_disk / "filler")
    with pytest.raises(StoreError, match=r"disk is full|No space left on device"):
        place_in(small_disk).open()


def test_a_read_only_file_system_can_be_read_and_says_so_to_writers(place_in, small_disk, start):
    place = place_in(small_disk)
    place.write(start(1))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert place.reader().head().seq == 1
    with pytest.raises(StoreError, match=r"Read-only file system|read-only"), place.open().write():
        pass


def test_a_file_size_limit_is_named(place, start, child_environment):
    place.write(start(1))
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n" + HOLDER.replace(
        "'held'", "'-'"
    )
    command = [sys.executable, "-c", code, str(place.path)]
    done = subprocess.run(command, env=child_environment(), input="", capture_output=True, text=True)
    assert "StoreError" in done.stderr
    assert "ulimit -f allows 4096 bytes a file" in done.stderr
    assert place.reader().head().seq == 1


HOLDER = """
import sys
from runguard.store.lines import Author
from runguard.store.sqlite import SCHEMA, open_store
store = open_store(sys.argv[1], author=Author("alpha", {}, "0"), create=False)
with store.write() as transaction:
    transaction.append("run.start", 0, {
        "run_id": "held", "number": 99, "job": "held", "window": None, "attempt": 1, "trigger": "manual",
    })
    print('held', flush=True)
    sys.stdin.read()
"""

# Writes pages before the commit, so that the journal file is needed, and dies.
CRASH = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = TRUNCATE")
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
for number in range(200):
    connection.execute("INSERT INTO job VALUES (?, 0, 0)", (f"{number:04d}" * 500,))
os.kill(os.getpid(), signal.SIGKILL)
"""


def leave_hot_journal(place, start, child_environment):
    place.write(start(1))
    subprocess.run([sys.executable, "-c", CRASH, str(place.path)], env=child_environment())
    assert (place.path.parent / "runguard.sqlite-journal").stat().st_size > 0


def make(path, kind):
    try:
        SPECIAL[kind](path)
    except PermissionError:
        pytest.skip("needs the right to make a device")


def give_away(path):
    if os.geteuid() != 0:
        pytest.skip("needs root to give a file away")
    os.chown(path, 54321, 54321)


def fill(path):
    with path.open("wb", buffering=0) as file:
        try:
            for size in (65_536, 4096, 1):
                while file.write(b"x" * size) == size:
                    pass
        except OSError:
            pass
