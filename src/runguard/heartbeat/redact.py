"""Mask what looks like a secret in command lines and output. Best effort: a secret in a shape of its own gets through.

`mask_argv` runs before the command is spawned, so `re` is imported only once a cheap look has found something.
Everything takes time linear in the text, whoever wrote it. The user's own patterns may be slower: where one takes too
long (patience.py), the whole text is masked instead.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from runguard.heartbeat.patience import Patience

MASK = "***"
SHORTEST = 6  # characters; a shorter value ("1", "true", "admin") would shred the output that it is masked in

_SECRET_NAMES = ("TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "DSN", "KEY", "AUTH")
_SECRET_ENDINGS = ("_PASS", "_PWD")  # not PWD and OLDPWD
# Words that only look like one of those.
_INNOCENT_PARTS = (
    "KEYBOARD", "KEYMAP", "KEYRING", "KEYSERVER", "KEYSPACE", "KEYSTORE", "KEYWORD", "TOKENIZ", "AUTHORITY", "AUTHOR_",
)  # fmt: skip
# The value of such a name says where or how, not what.
_INNOCENT_ENDINGS = (
    "FILE", "PATH", "DIR", "DIRECTORY", "SOCK", "SOCKET", "AUTHOR", "AUTHORS",
    "_NAME", "_ID", "_TYPE", "_TTL", "_TIMEOUT", "_LENGTH", "_SIZE", "_ENV", "_STDIN", "_FD", "_URL", "_COMMAND",
)  # fmt: skip
_INNOCENT_VALUES = frozenset(("enabled", "disabled", "required", "optional", "default", "prompt"))
_SUSPICIOUS = ("://", "bearer", "authorization", "-----", "=")
_patience: list[Patience] = []  # this process's, once there was a pattern
_PLACEHOLDERS = ("{exit}", "{run_id}", "{duration}", "{due}", "{host}", "{job}")  # of templates: no secrets
_LONG_SEGMENT = 16  # a part of a URL's path of so many characters is a key, not a word


def mask_url(url: str) -> str:
    """Return `url` as it may be printed: scheme, host and port, and the end of a long last part of the path.

    `https://hc-ping.com/…ea278`
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", "/" + url
    before_query = rest.partition("#")[0].partition("?")[0]
    authority, _, path = before_query.partition("/")
    last = path.rstrip("/").rpartition("/")[2]
    ending = last[-5:] if len(last) >= _LONG_SEGMENT else ""
    shown = f"{scheme}{separator}{authority.rpartition('@')[2]}{'/' if separator else ''}…{ending}"
    return "".join(character if character == "…" or " " < character < "\x7f" else "?" for character in shown)


def is_secret_name(name: str) -> bool:
    """Return whether a variable or option of this name holds a secret: TOKEN, SECRET, PASSW, KEY and the like in it."""
    upper = name.upper().replace("-", "_").replace(".", "_")
    if upper.endswith(_INNOCENT_ENDINGS):
        return False
    if upper == "PASS" or upper.endswith(_SECRET_ENDINGS):
        return True
    for part in _INNOCENT_PARTS:
        upper = upper.replace(part, "")
    return any(part in upper for part in _SECRET_NAMES)


def secrets_of(environ: Mapping[str, str], *urls: str) -> tuple[str, ...]:
    """Return the texts to mask, longest first: values of secret-named variables, and the ping URLs with their keys.

    Left out are values shorter than SHORTEST characters, and what runguard itself gives to commands. A value of
    several lines also counts line by line, because output may show it that way.
    """
    found: set[str] = set()
    for url in (*urls, environ.get("RUNGUARD_PING", "")):
        found |= _parts_of_url(url)
    for name, value in environ.items():
        if name.startswith("RUNGUARD_"):
            continue
        if is_secret_name(name) and value.lower() not in _INNOCENT_VALUES:
            found.add(value)
            if "\n" in value:
                found.update(line.strip() for line in value.split("\n") if len(line.strip()) >= _LONG_SEGMENT)
    return tuple(sorted((text for text in found if len(text) >= SHORTEST), key=lambda text: (-len(text), text)))


def mask_text(text: str, secrets: Iterable[str], patterns: Iterable[str] = ()) -> str:
    """Return `text` with every secret replaced by MASK.

    `secrets` come from `secrets_of`; `patterns` are the user's regular expressions. Also masked: `user:pass@` in URLs,
    bearer tokens, `NAME=value` of a secret name, PEM blocks of keys and certificates.
    """
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, MASK)
    lowered = text.lower()
    if any(sign in lowered for sign in _SUSPICIOUS):
        text = _mask_shapes(text)
    patterns = tuple(patterns)
    return _mask_patterns(text, patterns) if patterns and text else text


def given_up() -> int:
    """Return how many texts were masked whole so far because the user's patterns took too long."""
    return _patience[0].expired if _patience else 0


def mask_bytes(data: bytes, secrets: Iterable[str], patterns: Iterable[str] = ()) -> bytes:
    """Return `data` masked as `mask_text` does; bytes that are not UTF-8 stay as they are."""
    text = data.decode("utf-8", "surrogateescape")
    return mask_text(text, secrets, patterns).encode("utf-8", "surrogateescape")


def mask_argv(
    argv: Sequence[str], secrets: Sequence[str] = (), patterns: Iterable[str] = ()
) -> tuple[tuple[str, ...], bool]:
    """Return the command line as it may be kept, and whether anything in it was masked.

    `secrets` come from `secrets_of`. Beyond `mask_text`: `--password=x`, `PASSWORD=x` and `--token x`. A value that
    looks like a path stays.
    """
    patterns = tuple(patterns)
    masked = []
    option = ""
    for position, argument in enumerate(argv):
        if option and not argument.startswith("-") and _is_secret(option, argument):
            masked.append(MASK)
        else:
            masked.append(_mask_assignment(argument) or mask_text(argument, secrets, patterns))
        option = argument if position and len(argument) > 2 and argument.startswith("-") else ""
    return tuple(masked), masked != list(argv)


def _parts_of_url(url: str) -> set[str]:
    """Return the URL, and the long parts of it that are secret wherever they appear."""
    if not url:
        return set()
    before_query, _, query = url.partition("#")[0].partition("?")
    authority, *segments = before_query.partition("://")[2].rstrip("/").split("/")
    login, _, host = authority.rpartition("@")
    # `<key>/<slug>`: the slug is a job's name, and no secret.
    hosted = (host, len(segments)) in (("hc-ping.com", 2), ("cronitor.link", 3))
    has_slug = hosted or (len(segments) > 2 and segments[-3] == "ping")
    keys = [segment for segment in segments[: -1 if has_slug else None] if len(segment) >= _LONG_SEGMENT]
    if host == "nosnch.in" or segments[-2:-1] == ["push"]:  # their tokens are short
        keys.append(segments[-1])
    parts = {url, before_query.rstrip("/"), login.partition(":")[2], *(keys or ["/" + "/".join(segments)])}
    parts.update(value for value in (pair.partition("=")[2] for pair in query.split("&")) if len(value) >= 8)
    return {part for part in parts if part not in _PLACEHOLDERS}


def _is_secret(name: str, value: str) -> bool:
    """Return whether `value`, given to the option or variable `name`, is a secret: paths and `sort --key 2` are not."""
    if name.startswith("--no-") or "=" in name or not is_secret_name(name):
        return False
    if value.startswith(("/", "./", "../", "~/")) or value.endswith((".pem", ".key", ".crt")):
        return False
    return len(value) >= SHORTEST or not name.lower().endswith(("key", "auth"))


def _mask_assignment(argument: str) -> str | None:
    """Return `--name=***` or `NAME=***` where the whole argument is an assignment to a secret name, else None."""
    name, equals, value = argument.partition("=")
    word = name.replace("-", "").replace("_", "").replace(".", "")
    if not equals or not value or not word.isascii() or not word.isalnum():
        return None
    return f"{name}={MASK}" if _is_secret(name, value) else None


def _mask_shapes(text: str) -> str:
    import re  # something suspicious was found

    # Each pattern starts at a literal and runs over a class that excludes that literal, or is bounded: no text makes
    # it look at the same character more than a few dozen times.
    text = re.sub(r"://[^\s/@:]*:[^\s/]*@", f"://{MASK}@", text)
    text = re.sub(r"://[^\s/@:]{20,}@", f"://{MASK}@", text)
    text = re.sub(r"(?i)\b(bearer[ \t]{1,8})[A-Z0-9._~+/=-]{8,}", rf"\1{MASK}", text)
    scheme = r"(authorization[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?[A-Z]{1,16}[ \t]{1,8})"
    text = re.sub(rf"(?i){scheme}[^\s\"']+", rf"\1{MASK}", text)
    text = re.sub(
        r"(?i)(passw(?:or)?d|passphrase|secret|token|credentials?|api_?key|access_?key|private_?key)"
        r"([A-Z0-9_-]{0,32}=)(?:\"[^\"\n]{1,4096}\"|'[^'\n]{1,4096}'|[^\s&;,\"']+)",
        rf"\1\2{MASK}",
        text,
    )
    return _mask_pem(text, re.compile(r"-----(BEGIN|END) ([A-Z0-9 ]{1,40})-----")) if "-----" in text else text


def _mask_pem(text: str, marker: re.Pattern[str]) -> str:
    """Mask what stands between BEGIN and END of keys and certificates; a half-seen key reaches to the text's edge."""
    kept: list[str] = []
    position = 0
    begun_at: int | None = None
    begun_label = ""
    for found in marker.finditer(text):
        word, label = found.group(1, 2)
        if not ("KEY" in label or "CERTIFICATE" in label):
            continue
        if word == "BEGIN" and begun_at is None:
            begun_at, begun_label = found.end(), label
        elif word == "END" and (begun_at is not None or (not kept and "KEY" in label)):
            kept += (text[position : begun_at or 0], MASK)
            position, begun_at = found.start(), None
    if begun_at is not None and "KEY" in begun_label:
        return "".join((*kept, text[position:begun_at], MASK))
    return "".join((*kept, text[position:]))


def _mask_patterns(text: str, patterns: Sequence[str]) -> str:
    import re  # only where the user has patterns

    if not _patience:
        from runguard.heartbeat.patience import Patience

        _patience.append(Patience())

    def mask() -> str:
        masked = text
        for pattern in patterns:
            try:
                masked = re.sub(pattern, lambda match: MASK if match.group() else "", masked)
            except re.error:
                continue  # the configuration has said so
        return masked

    masked = _patience[0].within(mask)
    return MASK if masked is None else masked
