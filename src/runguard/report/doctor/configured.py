"""The configuration: every mistake in it, who may change it, and who may read the secrets that it names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from shlex import quote

from runguard.config import strict
from runguard.config.files import sources
from runguard.errors import reason
from runguard.report.doctor.findings import Finding, fault, ok, warning
from runguard.report.doctor.world import World
from runguard.settings import BY_NAME

_SECRETS = ("url", "template", "secret")  # kinds of settings that nobody else is to read


def mistakes(world: World) -> Iterator[Finding]:
    """Every file reads, and all of its keys mean something."""
    found = list(strict.mistakes(world.environ))
    for each in found:
        yield fault(each)
    if not found:
        files = [file.path for file in world.loaded.files]
        yield ok(", ".join(files) + ": no mistake" if files else "there is no configuration file, and none is needed")


def permissions(world: World) -> Iterator[Finding]:
    """Nobody else can change a file of the configuration, nor read a secret in it or in a file that it names."""
    paths = [path for path, _ in sources(world.environ) if os.path.exists(path) and path != os.devnull]
    found = [each for path in paths for each in _file(path, _has_secrets(world, path))]
    for key, path in _secret_files(world):
        found += _secret(key, path)
    yield from found or [ok("nobody else may change it, or read its secrets")]


def _file(path: str, has_secrets: bool) -> Iterator[Finding]:
    try:
        found = os.stat(path)
    except OSError as error:
        yield fault(f"{path}: {reason(error)}")
        return
    if found.st_uid not in (0, os.geteuid()):
        yield fault(
            f"{path}: it belongs to uid {found.st_uid}, who decides what runs here", f"chown root {quote(path)}"
        )
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != 0):
        mode = stat.S_IMODE(found.st_mode)
        yield fault(
            f"{path}: others may write to it (mode {mode:04o}) and decide what runs here", f"chmod go-w {quote(path)}"
        )
    elif has_secrets and found.st_mode & 0o044:
        yield warning(f"{path}: others may read the addresses and keys in it (file:/PATH keeps them out)",
                      f"chmod go-r {quote(path)}")  # fmt: skip


def _has_secrets(world: World, path: str) -> bool:
    return any(file == path and not value.startswith("file:") for file, _, value in _values(world))


def _secret_files(world: World) -> Iterator[tuple[str, str]]:
    """Yield the key and the path of each file:/PATH that the configuration names."""
    for file, key, value in _values(world):
        if value.startswith("file:/"):
            yield f"{file}: {key}", value.removeprefix("file:")


def _values(world: World) -> Iterator[tuple[str, str, str]]:
    """Yield (file, key, value) of everything in the configuration that is a secret, or names a file that holds one."""
    for file in world.loaded.files:
        jobs = file.data.get("jobs")
        tables = [("", file.data), *(jobs.items() if isinstance(jobs, dict) else ())]
        for name, table in tables:
            for key, value in table.items() if isinstance(table, dict) else ():
                setting = BY_NAME.get(key)
                if isinstance(value, str) and setting is not None and setting.kind in _SECRETS:
                    yield file.path, f"jobs.{name}.{key}" if name else key, value


def _secret(key: str, path: str) -> Iterator[Finding]:
    try:
        found = os.stat(path)
    except OSError as error:
        yield fault(f"{key}: file:{path}: {reason(error)}")
        return
    if found.st_mode & 0o022:
        yield fault(f"{key}: {path}: others may write to it", f"chmod 600 {quote(path)}")
    elif found.st_mode & 0o044:
        mode = stat.S_IMODE(found.st_mode)
        yield warning(f"{key}: {path}: others may read it (mode {mode:04o})", f"chmod 600 {quote(path)}")
    elif not os.access(path, os.R_OK):
        yield fault(f"{key}: {path}: this account may not read it")
