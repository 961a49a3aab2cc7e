"""Text that people type, as values: durations, sizes, numbers, names.

Every parser raises ValueError whose text continues a sentence that begins with the name of the option or key:
"'5x' is no duration (90s, 15m, 1h30m, 7d)". Nothing here imports re: the readers run before the command is spawned.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LONGEST_DURATION_S = 1000 * 86_400
LONGEST_JOB_NAME = 100

_UNITS_S = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_JOB_CHARACTERS = _LETTERS + _DIGITS + "._-"

# Programs whose name says nothing about the job: they run, or dress up, another one.
_INTERPRETERS = {
    "sh", "ash", "bash", "dash", "ksh", "mksh", "yash", "zsh", "fish", "csh", "tcsh", "busybox", "python", "pypy",
    "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh", "java", "Rscript", "awk", "gawk",
    "mawk", "sed", "make", "env", "nice", "ionice", "chrt", "taskset", "nohup", "setsid", "stdbuf", "time",
    "timeout", "flock", "chronic", "cronic", "sudo", "su", "doas", "runuser", "setpriv", "chroot", "unshare",
    "nsenter", "systemd-run", "xargs", "command", "exec", "ssh", "docker", "podman", "runguard",
}  # fmt: skip


def duration(text: str) -> float:
    """Return the seconds of `90s`, `15m`, `2h`, `1h30m`, `7d`; a bare number is seconds. At most 1000 days."""
    total = 0.0
    rest = text
    last_unit_s = LONGEST_DURATION_S
    while rest:
        figure = _leading(rest, _DIGITS + ".")
        unit = rest[len(figure) : len(figure) + 1]
        rest = rest[len(figure) + 1 :]
        bare = not unit and last_unit_s == LONGEST_DURATION_S
        unit_s = _UNITS_S.get("s" if bare else unit, 0)
        if not unit_s or unit_s >= last_unit_s or not _is_decimal(figure, whole=unit_s > 1):
            break
        total += float(figure) * unit_s
        last_unit_s = unit_s
    else:
        if text:
            return at_most(total, text)
    raise ValueError(f"{text!r} is no duration (90s, 15m, 2h, 1h30m, 7d)")


def at_most(seconds: float, text: object) -> float:
    """Return `seconds`, or raise ValueError where it is negative, no number, or longer than 1000 days."""
    if 0 <= seconds <= LONGEST_DURATION_S:
        return seconds
    raise ValueError(f"{text!r} is not a duration from 0 to 1000 days")


def size(text: str) -> int:
    """Return the bytes of `65536`, `64k`, `1M`, `64KiB`; at most 1 GiB."""
    figure = _leading(text, _DIGITS)
    factor = _SIZES.get(text[len(figure) :].lower())
    if not figure or factor is None or len(figure) > 12:
        raise ValueError(f"{text!r} is no size (65536, 64k, 1M)")
    return whole(int(figure) * factor, 0, 1 << 30)


def integer(text: str, low: int, high: int) -> int:
    """Return the whole number from `low` to `high` that ASCII digits spell."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"{text!r} is not a number from {low} to {high}")
    return whole(int(text), low, high)


def whole(number: int, low: int, high: int) -> int:
    """Return `number`, or raise ValueError where it lies outside `low` to `high`."""
    if not low <= number <= high:
        raise ValueError(f"{number} is not a number from {low} to {high}")
    return number


def job_name(text: str) -> str:
    """Return `text` where it may name a job: `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`."""
    if not text or text[0] not in _LETTERS + _DIGITS or text.strip(_JOB_CHARACTERS):
        raise ValueError(f"{short(text)} is no job name (letters, digits, '.', '_', '-'; a letter or digit first)")
    if len(text) > LONGEST_JOB_NAME:
        raise ValueError(f"{short(text)} is longer than {LONGEST_JOB_NAME} characters")
    return text


def job_name_of(command: Sequence[str], *, shell: bool) -> str:
    """Return the name of a job that was given none: the file name of its command.

    Raises ValueError where that name would not do: with `--shell`, for an interpreter, for odd characters.
    """
    if shell:
        raise ValueError("a shell string has no name of its own")
    name = command[0].rpartition("/")[2]
    if name in _INTERPRETERS or name.rstrip(_DIGITS + ".-") in _INTERPRETERS:
        raise ValueError(f"{name!r} runs many jobs and names none")
    return job_name(name)


def one_of(text: str, choices: Sequence[str]) -> str:
    """Return `text` where it is one of `choices`; the ValueError says which those are."""
    if text in choices:
        return text
    raise ValueError(f"{short(text)} is not one of {', '.join(choices)}{meant(text, choices)}")


def meant(text: str, candidates: Collection[str]) -> str:
    """Return `; did you mean X?` for the nearest candidate, or nothing."""
    found = nearest(text, candidates)
    return f"; did you mean {found}?" if found else ""


def nearest(text: str, candidates: Collection[str]) -> str:
    """Return the candidate that `text` most likely misspells or begins, or "" where none is close."""
    limit = max(1, len(text) // 3)
    scored = sorted((_distance(text.lower(), candidate.lower(), limit), candidate) for candidate in candidates)
    if scored and scored[0][0] <= limit:
        return scored[0][1]
    begun = sorted(candidate for candidate in candidates if candidate.lower().startswith(text.lower()))
    return begun[0] if begun and len(text.strip("-")) > 2 else ""


def short(text: str) -> str:
    """Return `text` quoted for a message, cut after 60 characters."""
    return repr(text) if len(text) <= 60 else repr(text[:60]) + "…"


def _leading(text: str, characters: str) -> str:
    return text[: len(text) - len(text.lstrip(characters))]


def _is_decimal(figure: str, *, whole: bool) -> bool:
    digits, point, fraction = figure.partition(".")
    if not digits or len(digits) > 12 or "." in fraction:
        return False
    return not point or (not whole and bool(fraction))


def _distance(left: str, right: str, limit: int) -> int:
    """Return the edits (insert, delete, replace, swap neighbours) between the two; more than `limit` is inexact."""
    if abs(len(left) - len(right)) > limit or len(left) > LONGEST_JOB_NAME:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
