"""Addresses of monitors: taken apart, put together, and whether they can be pinged. Their text is a secret."""

from __future__ import annotations

from runguard.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_UUID_LENGTH = 36
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UNRESERVED = frozenset(f"{_LETTERS}0123456789-._~".encode())  # RFC 3986, 2.3
_WORD = frozenset(f"{_LETTERS}0123456789_-")


class Address(NamedTuple):
    """The parts of a URL; `path` begins with a slash or is empty, `query` has no question mark."""

    scheme: str
    authority: str
    path: str
    query: str

    @property
    def host(self) -> str:
        """Return the host, in lower case, without port, user and password."""
        host = self.authority.rpartition("@")[2]
        if host.startswith("["):
            return host.partition("]")[0].lower() + "]"
        return host.partition(":")[0].lower()

    @property
    def segments(self) -> tuple[str, ...]:
        """Return the parts of the path between its slashes; a slash at the end adds none."""
        path = self.path.strip("/")
        return tuple(path.split("/")) if path else ()


def split(url: str) -> Address:
    """Split an absolute URL; its fragment is dropped."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    before_query, _, query = rest.partition("?")
    authority, slash, path = before_query.partition("/")
    return Address(scheme.lower(), authority, slash + path, query)


def join(address: Address, suffix: str = "", added: Iterable[tuple[str, str]] = (), *, slash: bool = False) -> str:
    """Return the URL with `suffix` after its path and the pairs of `added`, encoded, after its own query.

    What its own query says of the names in `added` is left out. `slash` ends the path with one.
    """
    added = tuple(added)
    names = [name for name, _ in added]
    own = [pair for pair in address.query.split("&") if pair and pair.partition("=")[0] not in names]
    query = "&".join((*own, *(f"{name}={encode(value)}" for name, value in added)))
    path = address.path.rstrip("/") + suffix + ("/" if slash else "")
    return f"{address.scheme}://{address.authority}{path}" + (f"?{query}" if query else "")


def encode(text: str) -> str:
    """Return `text` percent-encoded, so that it is one value of a query or one segment of a path."""
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape")
    )


def unusable(url: str) -> str | None:
    """Return why `url` cannot be pinged, or None: one line that holds no part of it but its scheme."""
    if not url.strip():
        return "the ping URL is empty"
    if any(character <= " " or character == "\x7f" for character in url):
        return "the ping URL has a space or a control character in it"
    if any("\ud800" <= character <= "\udfff" for character in url):
        return "the ping URL is not valid UTF-8"
    if "://" not in url:
        return "the ping URL has no scheme: it should begin with https:// or http://"
    address = split(url)
    if address.scheme not in ("http", "https"):
        return "the ping URL is neither https:// nor http://"
    if not address.host or address.host == "[]" or not _port_is_sane(address.authority):
        return "the ping URL has no valid host and port"
    return None


def is_uuid(text: str) -> bool:
    """Return whether `text` is a UUID of 36 characters."""
    if len(text) != _UUID_LENGTH or any(text[at] != "-" for at in (8, 13, 18, 23)):
        return False
    digits = text.replace("-", "")
    return len(digits) == 32 and all(character in "0123456789abcdefABCDEF" for character in digits)


def is_word(text: str) -> bool:
    """Return whether `text` is of letters, digits, `_` and `-`, as keys and slugs are."""
    return bool(text) and _WORD.issuperset(text)


def _port_is_sane(authority: str) -> bool:
    _, colon, port = authority.rpartition("@")[2].rpartition("]")[2].rpartition(":")
    return not colon or not port or (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536)
