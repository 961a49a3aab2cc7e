"""Where runguard keeps its state, and whether that place can be trusted."""

from __future__ import annotations

import os

from runguard import private
from runguard.errors import UnsafeError
from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT_STATE = "/var/lib/runguard"


class Places(NamedTuple):
    """Where things are kept; all absolute."""

    state: str
    store: str
    locks: str
    runs: str  # the files of living runs
    spool: str
    witness: str


def state_directory(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the state directory; it need not exist.

    `RUNGUARD_STATE_DIR`, else `/var/lib/runguard` for root, else `$XDG_STATE_HOME/runguard`, else
    `~/.local/state/runguard`. Raises UnsafeError where the path would depend on the working directory: two starts of
    one job must never find two different locks.
    """
    given = environ.get("RUNGUARD_STATE_DIR")
    if given is not None:
        return _absolute(given, "RUNGUARD_STATE_DIR")
    if os.geteuid() == 0:
        return ROOT_STATE
    xdg = environ.get("XDG_STATE_HOME")
    if xdg:
        return os.path.join(_absolute(xdg, "XDG_STATE_HOME"), "runguard")
    return os.path.join(home(environ), ".local/state/runguard")


def home(environ: Mapping[str, str]) -> str:
    """Return the home directory: `$HOME`, else the account's. Raises UnsafeError where there is none."""
    given = environ.get("HOME")
    if given:
        return _absolute(given, "HOME")
    import pwd  # only where cron or systemd gave no HOME

    try:
        return _absolute(pwd.getpwuid(os.geteuid()).pw_dir, "the account's home directory")
    except KeyError:
        message = f"uid {os.geteuid()} has no home directory: set RUNGUARD_STATE_DIR to an absolute path"
        raise UnsafeError(message) from None


def prepare(directory: str) -> str:
    """Create the state directory with mode 0700 where it is missing, whatever the umask, and return it.

    Raises UnsafeError, with path, uid and reason, where it is a symbolic link, belongs to another account, or others
    may write in it: they could plant locks and records.
    """
    parent = os.path.dirname(directory)
    if not os.path.isdir(parent) and parent != directory:
        _make_parents(parent, directory)
    try:
        flaw = private.make(directory)
    except OSError as error:
        raise _unsafe(directory, error.strerror or str(error)) from error
    if flaw:
        raise _unsafe(directory, flaw)
    return directory


def prepare_shared(directory: str) -> None:
    """Create the directory of a store that was named, where it is missing. Raises UnsafeError.

    One that exists need not be private, but nobody else may be able to replace what is ours in it.
    """
    if not os.path.isdir(directory):
        prepare(directory)
        return
    try:
        why = private.shared_flaw(directory)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise UnsafeError(f"store directory {directory}: {why} (uid {os.geteuid()}); nothing was started")


def places(state: str, store: str | None) -> Places:
    """Return where things are kept with a state directory and the path of a store, None where none is named.

    Locks and run files lie beside the store: two state directories with one store share them.
    """
    store = store or os.path.join(state, "db", "runguard.sqlite")
    beside = os.path.dirname(os.path.realpath(store))
    return Places(
        state=state,
        store=store,
        locks=os.path.join(beside, "locks"),
        runs=os.path.join(beside, "runs"),
        spool=os.path.join(state, "spool"),
        witness=os.path.join(state, "witness"),
    )


def _absolute(path: str, name: str) -> str:
    if not path:
        raise UnsafeError(f"{name} is empty: it must be an absolute path (uid {os.geteuid()})")
    if not path.startswith("/"):
        raise UnsafeError(f"{name} is {path!r}: it must be an absolute path (uid {os.geteuid()})")
    return os.path.normpath(path)


def _make_parents(directory: str, wanted: str) -> None:
    """Make the directory and its missing parents, each 0700. Those that exist are not judged: they are the system's.

    `wanted` lies in it. Accounts of services have homes in which they may make nothing.
    """
    parent = os.path.dirname(directory)
    if not os.path.isdir(parent) and parent != directory:
        _make_parents(parent, wanted)
    try:
        private.make(directory)
    except OSError as error:
        why = f"{directory} cannot be made: {error.strerror or error}; RUNGUARD_STATE_DIR names another place"
        raise _unsafe(wanted, why) from error


def _unsafe(directory: str, why: str) -> UnsafeError:
    return UnsafeError(f"state directory {directory}: {why} (uid {os.geteuid()}); nothing was started")
