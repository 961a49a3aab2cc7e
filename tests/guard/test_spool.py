"""What is kept on disk until it is wanted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runguard.guard.spool import Spool

PIECE = 256 << 10


def taken(spool: Spool) -> list[tuple[int, bytes]]:
    pieces = []
    while (piece := spool.take()) is not None:
        pieces.append(piece)
    return pieces


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("spool")
    path.chmod(0o700)
    return str(path)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(min_size=1, max_size=50))), st.integers(0, 5))
def test_what_was_added_and_what_followed_is_taken_in_order(
    place: str, writes: list[tuple[int, bytes]], followers: int
) -> None:
    spool = Spool(place)
    added, after = writes[followers:], writes[:followers]
    for stream, data in added:
        spool.add(stream, data)
    for stream, data in after:
        spool.follow(stream, data)
    assert spool.left == sum(len(data) for _, data in writes)
    assert taken(spool) == added + after
    assert spool.left == 0
    spool.close()


def test_a_large_write_is_taken_in_pieces(place: str) -> None:
    spool = Spool(place)
    spool.add(2, bytes(PIECE) + b"end")
    assert [(stream, len(data)) for stream, data in taken(spool)] == [(2, PIECE), (2, 3)]
    spool.close()


def test_it_has_no_name(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "spool"))
    spool.add(1, b"secret")
    assert os.listdir(tmp_path / "spool") == []
    spool.close()
