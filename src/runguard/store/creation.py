"""What happens once in the life of a store: the place for it, the file, its schema. Imported when that is due."""

from __future__ import annotations

import _sqlite3
import os

from runguard.errors import StoreError, UnsafeError
from runguard.store import faults, sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runguard.store.witness import Witness
    from runguard.store.writelock import WriteLock

# File systems of another machine, where SQLite's locks are not to be relied on. 9p and virtiofs are left out: they
# are how a virtual machine sees its own host.
_NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "smb2", "ncpfs", "afs", "coda", "ceph", "glusterfs", "lustre", "beegfs",
    "gpfs", "orangefs", "pvfs2", "davfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.s3fs",
    "fuse.gcsfuse", "fuse.rclone", "fuse.juicefs", "fuse.davfs", "fuse.curlftpfs", "fuse.moosefs", "fuse.mfs",
))  # fmt: skip


def create(path: str, lock: WriteLock, witness: Witness | None, wait_s: float, mountinfo: str | None) -> None:
    """Make the store behind the write lock, unless another start just did.

    Raises StoreError where the witness knows of entries, UnsafeError on a network file system.
    """
    directory = os.path.dirname(path)
    try:
        _make_directory(directory)
        refuse_network(path, os.stat(directory).st_dev, mountinfo)
    except OSError as error:
        raise StoreError(path, f"{directory}: {error.strerror} (uid {os.geteuid()})") from error
    lock.take(wait_s)
    try:
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            _refuse_to_begin_anew(path, witness)
            _make_file(path, directory)
            connection = sqlite.connect(path, "rw", wait_s)
            try:
                if sqlite.identify(connection, path) == 0:
                    _migrate(connection, path, 0)
            finally:
                connection.close()
    except OSError as error:
        raise StoreError(path, f"cannot be created: {error.strerror} (uid {os.geteuid()})") from error
    finally:
        lock.release()


def upgrade(connection: _sqlite3.Connection, path: str, version: int, witness: Witness | None) -> None:
    """Bring an older schema up to date. The caller holds the write lock. Raises StoreError for a newer one."""
    if version > sqlite.SCHEMA:
        why = f"its schema is {version}, newer than this program's ({sqlite.SCHEMA}); upgrade runguard on this host"
        raise StoreError(path, why)
    if version == 0:
        _refuse_to_begin_anew(path, witness)
    _migrate(connection, path, version)


def absent(path: str, witness: Witness | None) -> StoreError:
    """Return the StoreError for a store that is missing or empty."""
    try:
        _refuse_to_begin_anew(path, witness)
    except StoreError as error:
        return error
    return StoreError(path, "nothing has been recorded yet: there is no such file")


def refuse_network(path: str, device: int, mountinfo: str | None = None) -> None:
    """Raise UnsafeError where the device is a network file system by `mountinfo` (default: the kernel's)."""
    if mountinfo is None:
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
                mountinfo = file.read()
        except OSError:
            return
    number = f"{os.major(device)}:{os.minor(device)}"
    for row in mountinfo.splitlines():
        words = row.split(" ")
        if len(words) > 6 and words[2] == number and "-" in words:
            kind = words[words.index("-") + 1]
            if kind in _NETWORK:
                raise UnsafeError(
                    f"store {path}: it lies on a network file system ({kind}), where SQLite can lose records; "
                    "use --store with a path on a local disk"
                )
            return


def _refuse_to_begin_anew(path: str, witness: Witness | None) -> None:
    if witness is None:
        return
    try:
        seen = witness.read()
    except OSError:
        return
    except ValueError as error:
        why = f"history lost: the store is missing or empty, and the witness {witness.path} is damaged"
        raise StoreError(path, why) from error
    if seen:
        raise faults.history_lost(path, witness, seen, "the store is missing or empty")


def _make_directory(directory: str) -> None:
    """Make the directory and its missing parents 0700, also beside another start that does the same."""
    if os.path.isdir(directory):
        return
    _make_directory(os.path.dirname(directory))
    try:
        os.mkdir(directory, 0o700)
        os.chmod(directory, 0o700)
    except FileExistsError:
        return


def _make_file(path: str, directory: str) -> None:
    """Make the empty file 0600 before SQLite sees it, so that its own files get the same mode."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(file, 0o600)
    os.close(file)
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _migrate(connection: _sqlite3.Connection, path: str, version: int) -> None:
    """Apply the migrations after `version`, all in one transaction. The caller holds the write lock."""
    scripts = ["PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"]
    for number in range(version + 1, sqlite.SCHEMA + 1):
        name = os.path.join(os.path.dirname(__file__), "migrations", "sqlite", f"{number:04d}.sql")
        with open(name, encoding="ascii") as file:
            scripts.append(file.read())
    try:
        connection.executescript("\n".join([*scripts, "COMMIT;"]))
    except (_sqlite3.Error, MemoryError) as error:
        raise faults.failed(path, error) from error
