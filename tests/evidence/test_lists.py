"""Record lines and lists: byte for byte, and as sha256sum reads them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from runguard.evidence import lists

RUN = "3f0c12ab-7c1e-4d0b-9a55-0123456789ab"
SALT = "00112233445566778899aabbccddeeff"
ITEM = b'{"case": "HB-1042", "phase": "intent", "action": "reminder"}'
LINE = (
    b'{"v":1,"run":"3f0c12ab-7c1e-4d0b-9a55-0123456789ab","seq":7,"salt":"00112233445566778899aabbccddeeff",'
    b'"item":{"case": "HB-1042", "phase": "intent", "action": "reminder"}}\n'
)


def record(seq: int) -> bytes:
    return lists.record_line(RUN, seq, SALT, ITEM)


def digests(first: int, last: int) -> bytes:
    return b"".join(hashlib.sha256(record(seq)).digest() for seq in range(first, last + 1))


def test_a_record_line_holds_the_jobs_bytes_as_they_are() -> None:
    assert lists.record_line(RUN, 7, SALT, ITEM) == LINE
    assert json.loads(LINE)["item"]["case"] == "HB-1042"


def test_the_jobs_bytes_come_back_out_of_a_record_line() -> None:
    tricky = b' {"case":"a","phase":"note","action":"x","said":",\\"item\\":{}}"} '
    assert lists.item_of(lists.record_line(RUN, 1, SALT, tricky)) == tricky


@pytest.mark.parametrize("line", [b"", ITEM, LINE[:-1], LINE.replace(b'"v":1', b'"v":2')])
def test_what_is_no_record_line_is_not_taken_for_one(line: bytes) -> None:
    with pytest.raises(ValueError, match="no record line"):
        lists.item_of(line)


def test_a_record_is_numbered_by_its_runs_start_and_its_place() -> None:
    assert lists.number(3, 1) == 6_291_457
    assert lists.place(6_291_457) == (3, 1)
    first, beyond = lists.bounds(3)
    assert first < lists.number(3, 1) < lists.number(3, lists.MOST_ENTRIES) < beyond


def test_a_group_list_is_one_of_sha256sum() -> None:
    first, second = (hashlib.sha256(record(seq)).hexdigest() for seq in (101, 102))
    assert lists.group_list(101, digests(101, 102)) == f"{first}  0000101\n{second}  0000102\n".encode()


def test_a_reject_list_names_pieces_by_their_offset() -> None:
    digest = hashlib.sha256(b"torn\n").hexdigest()
    assert lists.reject_list([(digest, 512)]) == f"{digest}  x0000000512\n".encode()


def test_the_lists_of_250_records_are_checked_by_sha256sum(tmp_path: Path) -> None:
    run_list = lists.RunList()
    pieces = run_list.extend(record(seq) for seq in range(1, 251))
    for seq in range(1, 251):
        (tmp_path / f"{seq:07d}").write_bytes(record(seq))
    text = b""
    last = run_list.rest()
    assert last is not None
    for first, group in [*pieces, last]:
        (tmp_path / f"g{first // 100 + 1:05d}").write_bytes(lists.group_list(first, group))
        text += lists.group_line(first, group)
    (tmp_path / "list").write_bytes(text)
    assert hashlib.sha256(text).hexdigest() == run_list.sha256()
    for checked in ("list", "g00001", "g00002", "g00003"):
        done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", checked], cwd=tmp_path)
        assert done.returncode == 0
    assert text.count(b"\n") == 3


@pytest.mark.parametrize("sizes", [[1] * 250, [250], [99, 1, 150], [100, 150], [120, 130]])
def test_the_run_list_is_the_same_however_the_records_come(sizes: list[int]) -> None:
    whole = lists.RunList()
    whole.extend(record(seq) for seq in range(1, 251))
    grown, seq, pieces = lists.RunList(), 1, []
    for size in sizes:
        pieces += grown.extend(record(n) for n in range(seq, seq + size))
        seq += size
    assert (grown.entries, grown.sha256()) == (250, whole.sha256())
    assert pieces == [(1, digests(1, 100)), (101, digests(101, 200))]
    assert grown.rest() == (201, digests(201, 250))
    assert grown.rest() is None


def test_the_run_list_is_taken_up_where_it_was_left() -> None:
    whole = lists.RunList()
    whole.extend(record(seq) for seq in range(1, 251))
    again = lists.RunList()
    again.resume([digests(1, 100), digests(101, 120), digests(121, 130)])
    assert again.extend(record(seq) for seq in range(131, 211)) == [(131, digests(131, 200))]
    assert again.rest() == (201, digests(201, 210))
    assert again.extend(record(seq) for seq in range(211, 251)) == []
    assert (again.sha256(), again.rest()) == (whole.sha256(), (211, digests(211, 250)))


def test_a_copy_grows_by_itself() -> None:
    first = lists.RunList()
    first.extend([record(1)])
    second = first.copy()
    second.extend([record(2)])
    assert (first.entries, second.entries) == (1, 2)
    assert first.rest() == (1, digests(1, 1))
    assert second.rest() == (1, digests(1, 2))


def test_without_records_there_is_no_list() -> None:
    assert lists.RunList().sha256() is None
