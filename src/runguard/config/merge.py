"""From files, environment and command line to the settings of one start. Raises nothing: it returns problems."""

from __future__ import annotations

import os

from runguard import values
from runguard.config.files import File, Loaded, read, secret
from runguard.record import NamedTuple
from runguard.settings import BY_NAME, TABLE, Problem, Setting, Settings, parse, parse_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Variables that are settings. Every other RUNGUARD_ variable is given to commands and never read.
VARIABLES = {"store": "RUNGUARD_STORE", "ping": "RUNGUARD_PING"}


SECRET_KINDS = ("url", "template", "path")  # of settings whose value may stand in a file of its own


class _Layer(NamedTuple):
    """One table of one file that speaks about the job; `keys` is () at the top level."""

    file: str
    keys: tuple[str, ...]
    table: dict[str, object]


def effective(
    given: Mapping[str, object], environ: Mapping[str, str], loaded: Loaded, job: str
) -> tuple[Settings, tuple[Problem, ...]]:
    """Return the settings of one start of `job`, and every problem worth a line.

    Option, then environment, then the job's table, then the top level (each: the user's file, then the system's), then
    the default. A bad value is passed over for the next; one that decides windows or the ping is done without instead:
    `schedule` or `ping` is None and a problem says what breaks.
    """
    problems = [Problem(fault) for fault in (loaded.remark, *(file.fault for file in loaded.files)) if fault]
    for file in loaded.files:
        problems += misplaced(file, job, store_named="store" in given or "RUNGUARD_STORE" in environ)
    layers = _all_layers(loaded, job)
    chosen: dict[str, object] = {}
    for setting in TABLE:
        value, faults = _choose(setting, given, environ, layers)
        chosen[setting.into] = value
        problems += faults
    chosen["job"] = job
    broken = {problem.breaks for problem in problems}
    if "window" in broken:
        chosen["schedule"] = None
    if "ping" in broken:
        chosen["ping"] = None
    return Settings(**chosen), tuple(problems)  # type: ignore[arg-type]


class Origin(NamedTuple):
    """Where the settings of one start of `job` come from."""

    given: Mapping[str, object]
    environ: Mapping[str, str]
    loaded: Loaded
    job: str

    def __call__(self, name: str) -> str:
        """Return `FILE:LINE: KEY: ` of the key that decides a setting; "" where no file does."""
        layers = _all_layers(self.loaded, self.job)
        where = next((where for where, _ in _candidates(BY_NAME[name], self.given, self.environ, layers)), "")
        return "" if isinstance(where, str) else place(where[0], where[1:]) + f"{dotted(*where[1:])}: "


def misplaced(file: File, job: str, *, store_named: bool) -> Iterator[Problem]:
    """Yield a problem for every key of the job's table and the top level that does not belong there."""
    jobs = file.data.get("jobs", {})
    if not isinstance(jobs, dict):
        yield Problem(f"{place(file.path, ('jobs',))}jobs: a table [jobs.NAME] for each job is wanted")
    elif not isinstance(jobs.get(job, {}), dict):
        yield Problem(f"{place(file.path, ('jobs', job))}jobs.{job}: a table [jobs.{job}] is wanted")
    for layer in (*_layers(file, job, top=False), *_layers(file, job, top=True)):
        for key, value in layer.table.items():
            why = unknown(key, value, top=not layer.keys)
            if why:
                unsafe = key == "store" and not store_named
                text = f"{place(file.path, (*layer.keys, key))}{dotted(*layer.keys, key)}: {why}"
                yield Problem(text, "unsafe", "store") if unsafe else Problem(text)


def unknown(key: str, value: object, *, top: bool) -> str:
    """Return why `key` does not belong there, or ""."""
    setting = BY_NAME.get(key)
    if (top and key == "jobs") or (setting and setting.is_key(top=top)):
        return ""
    if top and isinstance(value, dict):
        return "no such table; the table of a job is called [jobs.NAME]"
    if setting and setting.is_key(top=True):
        return "belongs at the top level of the file"
    if setting:
        return f"is an option of the command line ({setting.option}), not a key"
    keys = [each.name for each in TABLE if each.is_key(top=top)]
    return "no such key" + values.meant(key.replace("-", "_"), keys)


def dotted(*keys: str) -> str:
    """Return a key as a file spells it: `jobs.letters.timeout`."""
    return ".".join(key if key.strip("._") and _bare(key) else values.short(key) for key in keys)


def place(path: str, keys: tuple[str, ...]) -> str:
    """Return `FILE:LINE: ` of a key, or `FILE: ` where the line is not to be found."""
    from runguard.config.keylines import line_of  # only to word a message

    try:
        line = line_of(read(path)[1].decode("utf-8", "replace"), keys)
    except OSError:
        line = None
    return f"{path}:{line}: " if line else f"{path}: "


def _all_layers(loaded: Loaded, job: str) -> list[_Layer]:
    """Return the tables that speak about the job, strongest first."""
    return [layer for top in (False, True) for file in loaded.files for layer in _layers(file, job, top)]


def _layers(file: File, job: str, top: bool) -> list[_Layer]:
    """Return the top level of a file, or the table of the job, where there is one."""
    if top:
        return [_Layer(file.path, (), file.data)]
    jobs = file.data.get("jobs")
    own = jobs.get(job) if isinstance(jobs, dict) else None
    return [_Layer(file.path, ("jobs", job), own)] if isinstance(own, dict) else []


def _choose(
    setting: Setting, given: Mapping[str, object], environ: Mapping[str, str], layers: list[_Layer]
) -> tuple[object, list[Problem]]:
    """Return the value of one setting, and what is wrong with any of its candidates."""
    value: object = setting.default
    faults: list[Problem] = []
    decided = False
    for where, raw in _candidates(setting, given, environ, layers):
        try:
            meaning = _meaning(setting, raw, where)
        except ValueError as error:
            breaks = setting.breaks if not decided else ""
            name = where if isinstance(where, str) else place(where[0], where[1:]) + dotted(*where[1:])
            faults.append(Problem(f"{name}: {error}", "unsafe" if breaks in ("store", "overlap") else "remark", breaks))
            decided = decided or bool(breaks)
            good = _good_patterns(setting, raw)
            if good and not decided:  # one bad pattern must not lay open what the others mask
                value, decided = good, True
            continue
        if not decided:
            value, decided = meaning, True
    if setting.name == "timeout" and not value:
        value = None  # 0 means never
    return value, faults


def _good_patterns(setting: Setting, raw: object) -> tuple[str, ...]:
    """Return those of a list of patterns that can be read."""
    good: list[str] = []
    if setting.kind == "patterns" and isinstance(raw, list):
        for pattern in raw:
            try:
                parse_key(setting, [pattern])
            except ValueError:
                continue
            good.append(str(pattern))
    return tuple(good)


def _candidates(
    setting: Setting, given: Mapping[str, object], environ: Mapping[str, str], layers: list[_Layer]
) -> Iterator[tuple[str | tuple[str, ...], object]]:
    """Yield (where, raw value), strongest first; `where` is an option, a variable, or (file, *keys)."""
    if setting.name in given:
        yield setting.option, given[setting.name]
    variable = VARIABLES.get(setting.name, "")
    if variable in environ:
        yield variable, environ[variable]
    for layer in layers:
        if setting.name in layer.table and setting.is_key(top=not layer.keys):
            yield (layer.file, *layer.keys, setting.name), layer.table[setting.name]


def _meaning(setting: Setting, raw: object, where: str | tuple[str, ...]) -> object:
    """Return a typed value. Raise ValueError with the reason; what came from a secret file is never quoted."""
    if not (isinstance(raw, str) and setting.kind in SECRET_KINDS and raw.startswith("file:")):
        return _typed(setting, raw, where)
    text = secret(raw.removeprefix("file:"))
    try:
        return _typed(setting, text, where)
    except ValueError as error:
        # Of a template's text, an error quotes nothing but a placeholder's name.
        why = f": {error}" if setting.kind == "template" else " holds nothing that would do"
        raise ValueError(f"{raw}{why}") from None


def _typed(setting: Setting, raw: object, where: str | tuple[str, ...]) -> object:
    if isinstance(where, tuple):
        meaning = parse_key(setting, raw)
    else:
        meaning = parse(setting, raw) if setting.breaks and isinstance(raw, str) else raw
    if setting.kind != "path":
        return meaning
    if where == setting.option:
        return _absolute(str(meaning))
    if not str(meaning).startswith("/"):
        raise ValueError(f"{values.short(str(meaning))} is not an absolute path")
    return meaning


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError as error:
        raise ValueError(f"{values.short(path)}: the working directory: {error.strerror}") from None


def _bare(key: str) -> bool:
    return key.isascii() and key.replace("_", "").replace("-", "").isalnum()
