"""Names for jobs, from their commands: readable, valid, and each used once."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from runguard import values
from runguard.crontab import words
from runguard.crontab.words import BUILTINS, Word

UNNAMED = "job"
_SUFFIXES = (".sh", ".bash", ".py", ".pl", ".rb", ".php", ".js", ".cron")
_CASUAL = frozenset(
    {"echo", "printf", "cat", "cp", "mv", "rm", "mkdir", "touch", "date", "sleep", "run-parts", "anacron"}
)
_TOLD = ("sh", "bash", "dash", "ash", "ksh", "zsh", "su", "runuser", "flock")
_TEXTS = {"python": (b"-c",), "perl": (b"-e", b"-E"), "ruby": (b"-e",), "node": (b"-e",), "php": (b"-r",)}
_SOURCING = (b".", b"source")
_TRANSPARENT = (*_SOURCING, b"exec", b"command", b"echo", b"printf")

# Options of programs that start another one whose argument is the next word, and how many words come before it.
_DRESSERS = {
    "sudo": ("ughpCDRTr", 0), "doas": ("uC", 0), "su": ("sgGw", 1), "runuser": ("ugGs", 0), "nice": ("n", 0),
    "ionice": ("cnpPu", 0), "chrt": ("TPD", 1), "taskset": ("", 1), "timeout": ("sk", 1), "flock": ("wE", 1),
    "env": ("uCS", 0), "setpriv": ("", 0), "chroot": ("", 1), "systemd-run": ("puEMHtG", 0), "stdbuf": ("ioe", 0),
    "time": ("fo", 0), "xargs": ("IiLlnPsdEa", 0), "python": ("WXQ", 0), "perl": ("IMm", 0), "php": ("dcz", 0),
    "ssh": ("bcDEeFIiJLlmOopQRSWwB", 1), "docker": ("", 0), "java": ("", 0),
}  # fmt: skip


def derive(command: bytes) -> str:
    """Return a valid name for what a command (as the shell is given it) does, as far as its words say."""
    try:
        found = list(words.simple_commands(words.split(command)))
    except words.Unclosed:  # it is cut at a %, perhaps
        pieces = [Word(0, 0, piece, piece) for piece in command.split()]
        found = list(words.simple_commands(pieces))
    casual = ""
    for simple in found:
        name = _of(simple)
        if name and name not in _CASUAL and simple[0].text not in _SOURCING:
            return name
        casual = casual or name
    return casual or UNNAMED


def unused(name: str, taken: Collection[str], numbers: dict[str, int]) -> str:
    """Return `name`, or where that is taken the first of `name-2`, `name-3` that is not.

    `numbers` remembers where the search for each name ended, lest thousands of lines with one name be slow.
    """
    number = numbers.get(name, 1)
    found = name if number == 1 else _numbered(name, number)
    while found in taken:
        number += 1
        found = _numbered(name, number)
    numbers[name] = number
    return found


def _numbered(name: str, number: int) -> str:
    suffix = f"-{number}"
    return name[: values.LONGEST_JOB_NAME - len(suffix)] + suffix


def _of(simple: Sequence[Word]) -> str:
    """Return the name of the first program of a simple command that does work of its own, or ""."""
    texts = [word.text for word in simple]
    if texts[0] in BUILTINS and texts[0] not in _TRANSPARENT:
        return ""
    at, first = 0, ""
    while at < len(texts):
        text = texts[at]
        at += 1
        if text is None:
            text = simple[at - 1].raw  # "$HOME/bin/job" is named by its end
        if at > 1 and text.startswith(b"-"):
            continue
        program = text.decode("utf-8", "replace").rpartition("/")[2]
        if at == 1 and program in (".", "source", "exec", "command"):
            continue
        name = _valid(program)
        if not name:
            continue
        if program != "run-parts" and not _dresses(program):
            return name
        first = first or name
        at = past_options(program, simple, at)
        if at < len(texts) and _is_told(program, texts[at - 1]):
            inner = texts[at]
            return (derive(inner) if inner else "") or first
    return first


def _dresses(program: str) -> bool:
    return bool(_valid(program)) and _is_of_many(_valid(program))


def _is_of_many(name: str) -> bool:
    try:
        values.job_name_of([name], shell=False)
    except ValueError:
        return True
    return False


def _is_told(program: str, option: bytes | None) -> bool:
    """Tell whether a program takes the next word for a command that a shell reads."""
    return program in _TOLD and bool(re.fullmatch(rb"-[a-z]*c", option or b""))


def past_options(program: str, simple: Sequence[Word], at: int) -> int:
    """Return where, behind the options of a program that starts another one, that one's name stands.

    Behind `-c` it is a whole command, of `sh`, `su` or `flock`; an interpreter given its text (`perl -e`) starts none.
    """
    plain = program.rstrip("0123456789.")
    letters, leading = _DRESSERS.get(plain, ("", 0))
    while at < len(simple):
        text = simple[at].text or b""
        if _is_told(program, text) or (text == b"-m" and plain == "python"):
            return at + 1
        if text in _TEXTS.get(plain, ()):
            return len(simple)
        if text == b"-":  # su - USER
            at += 1
        elif text.startswith(b"-"):
            at += 1 + (len(text) == 2 and text[1:].decode("latin-1") in letters)
        elif leading:
            leading -= 1
            at += 1
        elif text and re.fullmatch(rb"[A-Za-z_]\w*=.*", text, re.DOTALL):
            at += 1
        else:
            break
    return min(at, len(simple))


def _valid(text: str) -> str:
    """Return `text` made a valid name, without the ending of a script, or "" where nothing is left."""
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix) or text
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[: values.LONGEST_JOB_NAME]
    return name.strip("-._")
