"""Which code a run runs: program, scripts among the arguments, git commit. Read, never executed.

For `python3 job.py` the script is the code, so each argument that names a regular file counts too.
"""

from __future__ import annotations

import os
import stat

from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_FILES = 5  # arguments that are looked at
BEFORE_START_BYTES = 1 << 20  # larger files are hashed beside the command
LARGEST_BYTES = 64 << 20  # larger ones are named with their size alone
CHUNK_BYTES = 1 << 20


class Code(NamedTuple):
    """A file that a run executes or reads as its code; `sha256` is None where it was not (yet) hashed."""

    path: str
    size: int
    sha256: str | None

    def fields(self, masked: Callable[[str], str]) -> dict[str, object]:
        """Return the entry's fields; `masked` takes secrets out of the path."""
        return {"path": masked(self.path), "sha256": self.sha256, "size": self.size}


class Provenance(NamedTuple):
    """The code of a run as known before its start."""

    program: Code | None
    inputs: tuple[Code, ...]
    commit: str | None

    def unhashed(self) -> tuple[Code, ...]:
        """Return the files that are worth hashing beside the command."""
        codes = (*((self.program,) if self.program else ()), *self.inputs)
        return tuple(code for code in codes if code.sha256 is None and code.size <= LARGEST_BYTES)


def describe(program: str | None, arguments: tuple[str, ...]) -> Provenance:
    """Describe the code behind `program` (a path, or None) and those `arguments` that name regular files."""
    first = _code(program) if program else None
    inputs: list[Code] = []
    for argument in arguments:
        code = _code(argument) if argument and not argument.startswith("-") and len(argument) < 4096 else None
        if code is not None:
            inputs.append(code)
        if len(inputs) == MAX_FILES:
            break
    home = inputs[0].path if inputs else program
    return Provenance(first, tuple(inputs), _git_commit(os.path.dirname(os.path.realpath(home))) if home else None)


def hash_slowly(codes: tuple[Code, ...], found: list[Code]) -> Iterator[None]:
    """Hash `codes` in steps of one mebibyte, appending each finished one to `found`."""
    import hashlib  # 2 ms of OpenSSL, beside the command

    for code in codes:
        digest = hashlib.sha256()
        try:
            with open(code.path, "rb", buffering=0) as file:
                while chunk := file.read(CHUNK_BYTES):
                    digest.update(chunk)
                    yield
        except OSError:
            continue
        found.append(code._replace(sha256=digest.hexdigest()))


def small_sha256(content: bytes) -> str:
    """Return the SHA-256 of a few hundred kilobytes without importing OpenSSL."""
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # Python 3.11
    except ImportError:
        try:
            from _sha2 import sha256  # type: ignore[import-not-found]  # Python 3.12 and later
        except ImportError:
            from hashlib import sha256
    digest: str = sha256(content).hexdigest()
    return digest


def _code(path: str) -> Code | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return _unreadable(path)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        digest = None
        if found.st_size <= BEFORE_START_BYTES:
            digest = small_sha256(_read_all(fd))
        return Code(os.path.abspath(path), found.st_size, digest)
    except OSError:
        return _unreadable(path)
    finally:
        os.close(fd)


def _unreadable(path: str) -> Code | None:
    """Name a file that exists but may not be read: a program with mode 0711, say."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return Code(os.path.abspath(path), found.st_size, None) if stat.S_ISREG(found.st_mode) else None


def _read_all(fd: int) -> bytes:
    chunks = []
    while chunk := os.read(fd, CHUNK_BYTES):
        chunks.append(chunk)
    return b"".join(chunks)


def _git_commit(directory: str) -> str | None:
    """Return the commit of the work tree around `directory`, read from `.git` as gitrepository-layout(5) describes."""
    while True:
        git = os.path.join(directory, ".git")
        if os.path.lexists(git):
            return _head(git)
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def _head(git: str) -> str | None:
    if os.path.isfile(git):  # a linked work tree or a submodule
        pointer = _line(git)
        if not pointer.startswith("gitdir: "):
            return None
        git = os.path.join(os.path.dirname(git), pointer[8:])
    head = _line(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return head or None
    ref = head[5:]
    common = os.path.join(git, _line(os.path.join(git, "commondir")) or ".")
    return _line(os.path.join(git, ref)) or _line(os.path.join(common, ref)) or _packed(common, ref)


def _packed(git: str, ref: str) -> str | None:
    try:
        with open(os.path.join(git, "packed-refs"), encoding="utf-8", errors="replace") as file:
            for line in file:
                commit, _, name = line.rstrip("\n").partition(" ")
                if name == ref:
                    return commit
    except OSError:
        return None
    return None


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).rstrip("\n")
    except OSError:
        return ""
