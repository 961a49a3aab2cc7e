"""A file that grows, read line by line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runguard.evidence.tail import Line, Tail


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "items"
    path.touch(0o600)
    return path


@pytest.fixture
def tail(file: Path) -> Iterator[Tail]:
    opened = Tail(str(file))
    yield opened
    opened.close()


@pytest.fixture
def add(file: Path) -> Callable[[bytes], None]:
    def append(data: bytes) -> None:
        with open(file, "ab") as stream:
            stream.write(data)

    return append


def everything(tail: Tail, *, last: bool = True) -> list[Line]:
    found: list[Line] = []
    offset = 0
    more = True
    while more:
        look = tail.look(offset, last=last)
        found += look.lines
        more = look.more
        if look.lines:
            offset = found[-1].offset + found[-1].size_bytes
    return found


def test_lines_come_with_their_place_in_the_file(tail: Tail, add: Callable[[bytes], None]) -> None:
    add(b"one\n\ntwo\n")
    look = tail.look(0)
    assert look.lines == [Line(0, 4, b"one"), Line(4, 1, b""), Line(5, 4, b"two")]
    assert (look.more, look.size_bytes) == (False, 9)


def test_a_line_without_its_end_waits_for_it(tail: Tail, add: Callable[[bytes], None]) -> None:
    add(b"one\ntw")
    assert tail.look(0) == ([Line(0, 4, b"one")], False, 6)
    assert tail.look(4) == ([], False, 6)
    add(b"o\n")
    assert tail.look(4) == ([Line(4, 4, b"two")], False, 8)


def test_the_last_line_may_go_without_its_newline(tail: Tail, add: Callable[[bytes], None]) -> None:
    add(b"one\ntwo")
    assert everything(tail) == [Line(0, 4, b"one"), Line(4, 3, b"two")]


def test_a_thousand_lines_are_read_at_once_and_more_are_told(tail: Tail, add: Callable[[bytes], None]) -> None:
    add(b"x\n" * 2500)
    look = tail.look(0)
    assert (len(look.lines), look.more) == (1000, True)
    assert len(everything(tail)) == 2500
    assert everything(tail)[-1] == Line(4998, 2, b"x")


def test_an_unfinished_line_after_a_thousand_is_told_by_the_next_look(tail: Tail, add: Callable[[bytes], None]) -> None:
    add(b"x\n" * 1000 + b"torn")
    assert tail.look(0, last=True).more
    assert everything(tail)[-1] == Line(2000, 4, b"torn")


@pytest.mark.parametrize("size", [65_536, 65_537, 524_287, 524_288, 600_000, 20_000_000])
def test_a_long_line_is_hashed_and_its_beginning_kept(tail: Tail, add: Callable[[bytes], None], size: int) -> None:
    long = b"y" * size + b"\n"
    add(b"one\n" + long + b"two\n")
    first, line, second = everything(tail)
    assert (first.data, second) == (b"one", Line(4 + size + 1, 4, b"two"))
    assert (line.offset, line.size_bytes) == (4, size + 1)
    if line.data is None:
        assert (line.sha256, line.head) == (hashlib.sha256(long).hexdigest(), b"y" * 256)
    else:
        assert line.data + b"\n" == long


def test_a_long_line_that_grows_is_told_when_it_has_ended(tail: Tail, add: Callable[[bytes], None]) -> None:
    add(b"y" * 600_000)
    assert tail.look(0).lines == []
    add(b"z" * 600_000)
    assert tail.look(0).lines == []
    add(b"\ntwo\n")
    [line] = tail.look(0).lines
    assert line.sha256 == hashlib.sha256(b"y" * 600_000 + b"z" * 600_000 + b"\n").hexdigest()
    assert everything(tail)[-1].data == b"two"


def test_a_file_that_was_cut_short_is_smaller_than_it_was(tail: Tail, add: Callable[[bytes], None], file: Path) -> None:
    add(b"one\ntwo\n")
    os.truncate(file, 3)
    assert tail.look(8) == ([], False, 3)


def test_a_link_is_not_followed(tmp_path: Path, file: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError, match="it is a symbolic link"):
        Tail(str(tmp_path / "link"))


def test_a_pipe_and_a_file_that_others_may_write_are_refused(tmp_path: Path, file: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        Tail(str(tmp_path / "pipe"))
    file.chmod(0o666)
    with pytest.raises(OSError, match="others may write"):
        Tail(str(file))
