"""The rows that stand in an SQLite file, read page by page and by its bytes alone: what is left where it is damaged.

Only leaves of tables hold rows; which table a leaf belongs to it does not say. Nothing is asked of the schema or of the
pages above the leaves: they may be what was lost. https://www.sqlite.org/fileformat.html
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from struct import error as StructError
from struct import unpack_from
from typing import NamedTuple

MAGIC = b"SQLite format 3\0"
USUAL_BYTES = 4096  # of a page: what is not said otherwise
_LEAF_OF_TABLE = 0x0D
_ON_OTHER_PAGES = 4  # a page that goes on with a row begins with the number of the next one
_UNREADABLE = (IndexError, ValueError, StructError, OverflowError)
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)  # bytes of an integer, by its serial type

Value = None | int | float | str | bytes


class Row(NamedTuple):
    """One row as it is stored: a column that is the rowid itself is None, and a virtual one is left out."""

    rowid: int
    values: tuple[Value, ...]


class Page(NamedTuple):
    """One page: the rows that can be read in it, and whether others may stand there that cannot."""

    data: bytes
    rows: tuple[Row, ...]
    whole: bool


def pages(fd: int) -> Iterator[Page]:
    """Yield every page of an open file in order. One that the disk does not give is passed over."""
    size = os.fstat(fd).st_size
    page_bytes = page_size(_read(fd, 0, 100))

    def page(number: int) -> bytes:
        if not 1 <= number <= -(-size // page_bytes):
            raise ValueError(f"there is no page {number}")
        return _read(fd, (number - 1) * page_bytes, page_bytes)

    for number in range(1, -(-size // page_bytes) + 1):
        yield _page(page(number), 100 if number == 1 else 0, page_bytes, page)


def page_size(header: bytes) -> int:
    """Return the size of the file's pages, by its header where that can be believed."""
    if header.startswith(MAGIC) and len(header) >= 18:
        said = int.from_bytes(header[16:18], "big")
        said = 65_536 if said == 1 else said
        if 512 <= said <= 65_536 and said & (said - 1) == 0:
            return said
    return USUAL_BYTES


def _page(data: bytes, begin: int, page_bytes: int, page: Callable[[int], bytes]) -> Page:
    if data[begin : begin + 1] != bytes([_LEAF_OF_TABLE]):
        return Page(data, (), whole=False)
    rows, whole = [], len(data) == page_bytes
    count = int.from_bytes(data[begin + 3 : begin + 5], "big")
    for at in range(begin + 8, min(begin + 8 + 2 * count, len(data) - 1), 2):
        try:
            rows.append(_row(data, int.from_bytes(data[at : at + 2], "big"), page_bytes, page))
        except _UNREADABLE:
            whole = False
    return Page(data, tuple(rows), whole)


def _row(data: bytes, at: int, page_bytes: int, page: Callable[[int], bytes]) -> Row:
    size, at = _varint(data, at)
    rowid, at = _varint(data, at)
    local = _local_bytes(size, page_bytes)
    payload = data[at : at + local]
    if local < size:
        payload = _joined(payload, size, int.from_bytes(data[at + local : at + local + 4], "big"), page)
    if len(payload) != size:
        raise ValueError("the row is cut short")
    return Row(rowid - (1 << 64) if rowid >> 63 else rowid, tuple(_values(payload)))


def _local_bytes(size: int, page_bytes: int) -> int:
    """Return how much of a row of `size` bytes stands in the leaf itself."""
    most = page_bytes - 35
    if size <= most:
        return size
    least = (page_bytes - 12) * 32 // 255 - 23
    kept = least + (size - least) % (page_bytes - _ON_OTHER_PAGES)
    return kept if kept <= most else least


def _joined(begun: bytes, size: int, number: int, page: Callable[[int], bytes]) -> bytes:
    """Return a row that goes on in other pages. They are as many as its size says, so a ring of them ends too."""
    parts, missing = [begun], size - len(begun)
    while missing > 0:
        data = page(number)
        number = int.from_bytes(data[:_ON_OTHER_PAGES], "big")
        part = data[_ON_OTHER_PAGES : _ON_OTHER_PAGES + missing]
        if not part:
            raise ValueError("the row goes on in a page that cannot be read")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _values(payload: bytes) -> Iterator[Value]:
    header, at = _varint(payload, 0)
    types = []
    while at < header:
        kind, at = _varint(payload, at)
        types.append(kind)
    if at != header:
        raise ValueError("the row's own header is damaged")
    for kind in types:
        if kind in (0, 8, 9):
            yield (None, 0, 1)[kind and kind - 7]
            continue
        width = _WIDTHS[kind] if kind < 7 else 8 if kind == 7 else (kind - 12) // 2
        piece = payload[at : at + width]
        if len(piece) != width or kind in (10, 11):
            raise ValueError("the row is shorter than its columns")
        at += width
        if kind < 7:
            yield int.from_bytes(piece, "big", signed=True)
        elif kind == 7:
            yield float(unpack_from(">d", piece)[0])
        else:
            yield piece.decode("utf-8") if kind % 2 else piece


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of 1 to 9 bytes, and where what follows begins."""
    value = 0
    for n in range(8):
        byte = data[at + n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    return value << 8 | data[at + 8], at + 9


def _read(fd: int, at: int, length: int) -> bytes:
    try:
        return os.pread(fd, length, at)
    except OSError:
        return b""  # a sector that the disk has lost
