"""Configuration for every command but `run`: the first mistake is refused with file, line and the nearest name."""

from __future__ import annotations

from runguard import values
from runguard.config.files import SYSTEM_FILE, File, Loaded, decode, missing, read, sources
from runguard.config.merge import SECRET_KINDS, dotted, place, unknown
from runguard.errors import ConfigError, ScheduleError
from runguard.model import Schedule
from runguard.settings import BY_NAME, parse_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def load(environ: Mapping[str, str], *, system_file: str = SYSTEM_FILE) -> Loaded:
    """Read and judge every file whole. Raises ConfigError with file and line of the first mistake in it."""
    files = []
    for path, required in sources(environ, system_file):
        try:
            file = File(path, decode(path, read(path)[1]))
        except (FileNotFoundError, NotADirectoryError) as error:
            if required:
                raise ConfigError(missing(path, error), path=path) from None
            continue
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}", path=path) from None
        except ValueError as error:
            raise ConfigError(str(error), path=path) from None
        mistakes = [(place(path, keys), f"{dotted(*keys)}: {why}") for keys, why in _mistakes(file.data)]
        if mistakes:
            where, why = min(mistakes, key=lambda mistake: _line(mistake[0]))
            raise ConfigError(where + why, path=path, line=_line(where) or None)
        files.append(file)
    return Loaded(tuple(files))


def mistakes(environ: Mapping[str, str], *, system_file: str = SYSTEM_FILE) -> Iterator[str]:
    """Yield every mistake in the files, each with its place, as `load` words the first of them. Raises nothing."""
    for path, required in sources(environ, system_file):
        try:
            data = decode(path, read(path)[1])
        except (FileNotFoundError, NotADirectoryError) as error:
            if required:
                yield missing(path, error)
        except OSError as error:
            yield f"{path}: {error.strerror}"
        except ValueError as error:
            yield str(error)
        else:
            found = [(place(path, keys), f"{dotted(*keys)}: {why}") for keys, why in _mistakes(data)]
            yield from (where + why for where, why in sorted(found, key=lambda each: _line(each[0])))


def _mistakes(data: dict[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (keys, why) of everything that is wrong in a file."""
    yield from _table((), data)
    jobs = data.get("jobs", {})
    if not isinstance(jobs, dict):
        yield ("jobs",), "a table [jobs.NAME] for each job is wanted"
        return
    for name, table in jobs.items():
        try:
            values.job_name(name)
        except ValueError as error:
            yield ("jobs", name), str(error)
        if isinstance(table, dict):
            yield from _table(("jobs", name), table)
        else:
            yield ("jobs", name), f"a table [jobs.{name}] is wanted"


def _table(path: tuple[str, ...], table: dict[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in table.items():
        why = unknown(key, value, top=not path) or _fault(key, value)
        if why:
            yield (*path, key), why


def _fault(key: str, value: object) -> str:
    """Return what is wrong with the value of a known key, or ""."""
    setting = BY_NAME.get(key)
    if setting is None:
        return ""
    if isinstance(value, str) and value.startswith("file:/") and setting.kind in SECRET_KINDS:
        return ""
    try:
        meaning = parse_key(setting, value)
        if key == "schedule":
            from runguard.schedule import revisions, zone

            revisions.timetable(Schedule(str(meaning), "UTC"), zone.fixed("+00:00"))
    except ScheduleError as error:
        return str(error).removeprefix("schedule ")
    except ValueError as error:
        return str(error)
    if setting.kind == "path" and not str(meaning).startswith("/"):
        return f"{values.short(str(meaning))} is not an absolute path"
    return ""


def _line(where: str) -> int:
    digits = where.rstrip(": ").rpartition(":")[2]
    return int(digits) if digits.isdigit() else 0
