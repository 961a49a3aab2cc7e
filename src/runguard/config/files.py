"""Configuration files: where they are, what they say, and what they said while they could still be parsed."""

from __future__ import annotations

import errno
import marshal
import os
import stat

from runguard import __version__, private
from runguard.record import NamedTuple
from runguard.store.lines import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM_FILE = "/etc/runguard/runguard.toml"
LARGEST_FILE = 1 << 20
LARGEST_SECRET = 4096

_DIGEST_BYTES = 64  # of the cache's own content, in hex: a damaged one can make marshal ask for gigabytes
_CACHE_FORMAT = f"3 {__version__} {marshal.version}"
# A file changed twice within one tick of the kernel's clock (10 ms at most) keeps its times, so a parse remembered so
# soon after the change is not trusted.
_RACY_NS = 12_000_000


class _Remembered(NamedTuple):
    """A parse in the cache: of the file with that identity; `fault` tells that it did not parse, and how."""

    identity: tuple[str | int, ...]
    data: dict[str, object] | None  # None: it never parsed
    fault: str
    at_ns: int


class File(NamedTuple):
    """One configuration file: what it says, or last said while it could be read, and what is wrong with it."""

    path: str
    data: dict[str, object]
    fault: str = ""  # one line, with its place


class Loaded(NamedTuple):
    """The files that exist, strongest first; `remark` tells why nothing is remembered, or is ""."""

    files: tuple[File, ...]
    remark: str = ""


class _Cache(NamedTuple):
    """The directory of the cache, and whether it may be written too."""

    directory: str
    writable: bool


def load(
    environ: Mapping[str, str], state: str | None, *, system_file: str = SYSTEM_FILE, remember: bool = True
) -> Loaded:
    """Read the configuration; with `remember`, the parse is kept in `<state>/cache`, where that can be written.

    A file that cannot be read or parsed is replaced by its last good parse. Raises nothing.
    """
    cache, remark = _cache(state, remember) if state else (None, "")
    files = (_load(path, required, cache) for path, required in sources(environ, system_file))
    return Loaded(tuple(file for file in files if file is not None), remark)


def sources(environ: Mapping[str, str], system_file: str = SYSTEM_FILE) -> list[tuple[str, bool]]:
    """Return (path, whether it must exist) of the configuration files, strongest first."""
    named = environ.get("RUNGUARD_CONFIG")
    if named is not None:
        return [(named, True)]
    directory = environ.get("XDG_CONFIG_HOME", "")
    if not directory.startswith("/"):  # the XDG specification: relative paths are to be ignored
        directory = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return [(os.path.join(directory, "runguard", "runguard.toml"), False), (system_file, False)]


def read(path: str) -> tuple[os.stat_result, bytes]:
    """Return a configuration file's status and content. Raises OSError, also for what is no plain file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        found = os.fstat(fd)
        if path == os.devnull:
            return found, b""
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if found.st_size > LARGEST_FILE:
            raise OSError(errno.EFBIG, "larger than 1 MiB")
        return found, _read_all(fd, LARGEST_FILE)
    finally:
        os.close(fd)


def decode(path: str, content: bytes) -> dict[str, object]:
    """Return what the TOML text says, dates as text. Raises ValueError: one line with file and line."""
    import tomllib  # 0.4 to 1.5 times a bare interpreter's start: paid on a cache miss

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{line}: a byte that is no UTF-8") from None
    try:
        return {key: _plain(value) for key, value in tomllib.loads(text).items()}
    except tomllib.TOMLDecodeError as error:
        why, _, place = str(error).rpartition(" (at ")
        digits = place.removeprefix("line ").partition(",")[0]
        line = int(digits) if digits.isdigit() else text.rstrip("\n").count("\n") + 1
        raise ValueError(f"{path}:{line}: {why[:1].lower()}{why[1:]}") from None
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply") from None


def missing(path: str, error: OSError) -> str:
    """Return what is wrong where the file that RUNGUARD_CONFIG names cannot be found."""
    return f"{path}: {error.strerror} (RUNGUARD_CONFIG names it)" if path else "RUNGUARD_CONFIG is empty"


def secret(path: str) -> str:
    """Return the text of a file without the line end. Raise ValueError that names the file, never what it holds."""
    if not path.startswith("/"):
        raise ValueError("file: wants an absolute path (file:/etc/…)")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ValueError(f"file:{path}: not a regular file")
            return _read_all(fd, LARGEST_SECRET).decode().rstrip("\r\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise ValueError(f"file:{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"file:{path}: a byte that is no UTF-8") from None


def _cache(state: str, remember: bool) -> tuple[_Cache | None, str]:
    """Return the cache in the state directory, or None and why others can write there."""
    directory = os.path.join(state, "cache")
    try:
        flaw = private.make(directory) if remember else private.flaw(directory)
    except OSError:  # it only saves time
        return None, ""
    if flaw:
        return None, f"{directory}: {flaw} (uid {os.geteuid()}); the configuration is read without its cache"
    return _Cache(directory, remember), ""


def _load(path: str, required: bool, cache: _Cache | None) -> File | None:
    remembered = _recall(path, cache)
    last_good = remembered.data if remembered else None
    try:
        found = os.stat(path)
        known = remembered is not None and remembered.at_ns > found.st_ctime_ns + _RACY_NS
        if remembered and known and remembered.identity == _identity(path, found) and not _hides(last_good):
            return _file(path, last_good, remembered.fault)
        found, content = read(path)
        if remembered and known and remembered.identity == _identity(path, found):
            return _file(path, last_good, remembered.fault, content)
    except (FileNotFoundError, NotADirectoryError) as error:
        return _file(path, last_good, missing(path, error)) if required else None
    except (OSError, ValueError) as error:
        return _file(path, last_good, f"{path}: {getattr(error, 'strerror', None) or error}")
    try:
        data = decode(path, content)
    except ValueError as error:
        _remember(path, cache, (_CACHE_FORMAT, _identity(path, found), last_good, str(error)))
        return _file(path, last_good, str(error), content)
    try:
        from runguard.config.hidden import hide  # after a change alone

        _remember(path, cache, (_CACHE_FORMAT, _identity(path, found), hide(data, content), ""))
    except LookupError:
        pass  # it is parsed each time
    return File(path, data)


def _hides(data: dict[str, object] | None) -> bool:
    """Return whether a remembered parse has addresses that it does not say (hidden.py)."""
    return data is not None and any(
        isinstance(value, tuple) or (isinstance(value, dict) and _hides(value)) for value in data.values()
    )


def _file(path: str, data: dict[str, object] | None, fault: str, content: bytes = b"") -> File:
    """Return a file as it was remembered; its addresses are read again from its `content`."""
    lost = ""
    if data is not None and _hides(data):
        from runguard.config.hidden import reveal

        data, whole = reveal(data, content)
        lost = "" if whole else ", but for addresses that it no longer holds"
    if fault:
        fault += "; going on without this file" if data is None else f"; going on with what it last said{lost}"
    return File(path, data or {}, fault)


def _identity(path: str, found: os.stat_result) -> tuple[str | int, ...]:
    return (_absolute(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _absolute(path: str) -> str:
    """Return what the cache knows the file by: a relative path names another file in every directory."""
    try:
        return os.path.abspath(path)
    except OSError:
        return ""  # our directory was deleted


def _cache_file(path: str, cache: _Cache) -> str:
    return os.path.join(cache.directory, _absolute(path).replace("%", "%25").replace("/", "%")[-200:])


def _recall(path: str, cache: _Cache | None) -> _Remembered | None:
    """Return what the cache holds for `path`, unless another account could have written it."""
    if cache is None:
        return None
    try:
        fd = os.open(_cache_file(path, cache), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(fd)
        if private.file_flaw(found):
            return None
        content = _read_all(fd, 2 * LARGEST_FILE)
        if digest(content[_DIGEST_BYTES:]).encode() != content[:_DIGEST_BYTES]:
            return None
        form, identity, data, fault = marshal.loads(content[_DIGEST_BYTES:])
        if form != _CACHE_FORMAT or identity[0] != _absolute(path):
            return None
    except Exception:  # noqa: BLE001 - marshal raises whatever it likes, and a cache is no reason to stop
        return None
    finally:
        os.close(fd)
    return _Remembered(identity, data, fault, found.st_mtime_ns)


def _remember(path: str, cache: _Cache | None, entry: tuple[object, ...]) -> None:
    """Write the cache by rename, 0600. It only saves time: where it cannot be written, nothing is lost but that."""
    if cache is None or not cache.writable or not _absolute(path):
        return
    name = _cache_file(path, cache)
    fresh = f"{name}.{os.getpid()}"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return
    try:
        os.fchmod(fd, 0o600)
        content = marshal.dumps(entry)  # type: ignore[arg-type]
        content = digest(content).encode() + content
        if os.write(fd, content) == len(content):
            os.rename(fresh, name)
            fresh = ""
    except (OSError, ValueError):
        pass
    finally:
        os.close(fd)
        if fresh:
            os.unlink(fresh)


def _read_all(fd: int, limit: int) -> bytes:
    """Return up to `limit` bytes; a file that grows while it is read is cut there."""
    content = b""
    while len(content) < limit and (part := os.read(fd, limit - len(content))):
        content += part
    return content


def _plain(value: object) -> object:
    """Return a value that marshal can write: dates and times, which no setting takes, become text."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case str() | int() | float():
            return value
    return str(value)
