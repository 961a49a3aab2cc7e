"""What is kept of the output, and what is counted."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from runguard.guard.capture import HEAD_FRAMES, TAIL_FRAMES, Capture
from runguard.guard.frames import Frame, decode

# python3 -c '[print(chr(n) * (1 << 20), n, sep="", end="") for n in range(9)]' | sha256sum; the same and "more"
NINE_SHA256 = "78e828369837dec87e8078d2775367c08845a1679dcece19fd991c4ab4c132b8"
NINE_AND_MORE_SHA256 = "21b9b288f447f3a76b957620d9da164378e103c67f6b573f1ea4336969d73f90"
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
HI_SHA256 = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"  # printf 'hi\n' | sha256sum


def data(encoded: bytes) -> bytes:
    return b"".join(bytes(frame.data) for frame in decode(encoded))


def test_nothing_is_an_empty_stream() -> None:
    capture = Capture()
    assert capture.stream(1) == (0, EMPTY_SHA256)
    assert capture.kept() == (b"", b"", 0, 0)


def test_streams_are_counted_and_hashed_apart() -> None:
    capture = Capture()
    capture.feed(2, 5, b"hi\n")
    assert capture.stream(2) == (3, HI_SHA256)
    assert capture.stream(1) == (0, EMPTY_SHA256)


def test_a_long_stream_is_hashed_whole() -> None:
    capture = Capture()
    for _ in range(50):
        capture.feed(1, 0, b"x" * 9999)
    # python3 -c 'print("x" * 499950, end="")' | sha256sum
    assert capture.stream(1) == (499_950, "618ca7bbb1a7bb2304f058990f58b06a2db2d7ef2ba975f228bb0a3b4092de80")


def test_a_very_long_stream_of_large_and_small_pieces_is_hashed_in_order() -> None:
    capture = Capture()
    for number in range(9):
        capture.feed(1, 0, bytes([number]) * (1 << 20))
        capture.feed(1, 0, b"%d" % number)
    assert capture.stream(1).sha256 == NINE_SHA256
    capture.feed(1, 0, b"more")
    assert capture.stream(1) == ((9 << 20) + 13, NINE_AND_MORE_SHA256)


def test_one_streams_writes_within_100_ms_are_one_frame() -> None:
    capture = Capture()
    for at_ms, text in ((0, b"a"), (99, b"b"), (100, b"c")):
        capture.feed(1, at_ms, text)
    assert decode(capture.kept().head) == [Frame(1, 0, b"ab"), Frame(1, 100, b"c")]


def test_the_other_stream_begins_a_frame() -> None:
    capture = Capture()
    for stream, text in ((1, b"a"), (2, b"b"), (1, b"c")):
        capture.feed(stream, 7, text)
    assert decode(capture.kept().head) == [Frame(1, 7, b"a"), Frame(2, 7, b"b"), Frame(1, 7, b"c")]


def test_between_head_and_tail_exactly_the_rest_is_omitted() -> None:
    capture = Capture(head_limit=4, tail_limit=3)
    for text in (b"01", b"2345", b"678", b"9"):
        capture.feed(1, 0, text)
    kept = capture.kept()
    assert (data(kept.head), data(kept.tail)) == (b"0123", b"789")
    assert (kept.kept_bytes, kept.omitted_bytes) == (7, 3)


def test_without_limits_nothing_is_kept_and_nothing_hashed() -> None:
    capture = Capture(0, 0)
    capture.feed(1, 0, b"abc")
    capture.pass_by(1, 7)
    assert capture.kept() == (b"", b"", 0, 10)
    assert (capture.stream(1), capture.stream(2)) == ((10, None), (0, None))


def test_a_dribble_to_both_streams_keeps_a_bounded_number_of_frames() -> None:
    capture = Capture()
    for number in range(HEAD_FRAMES + TAIL_FRAMES + 100):
        capture.feed(1 + number % 2, number, b"x")
    kept = capture.kept()
    assert (len(decode(kept.head)), len(decode(kept.tail))) == (HEAD_FRAMES, TAIL_FRAMES)
    assert (kept.kept_bytes, kept.omitted_bytes) == (HEAD_FRAMES + TAIL_FRAMES, 100)


WRITES = st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(0, 80), st.binary(min_size=1, max_size=40)))


@given(WRITES, st.integers(0, 60), st.integers(0, 60))
def test_head_tail_and_counts_are_those_of_the_whole(
    writes: list[tuple[int, int, bytes]], head_limit: int, tail_limit: int
) -> None:
    capture, at_ms, whole = Capture(head_limit, tail_limit), 0, b""
    for stream, pause_ms, text in writes:
        at_ms += pause_ms
        capture.feed(stream, at_ms, text)
        whole += text
    head, rest = whole[:head_limit], whole[head_limit:]
    tail = rest[len(rest) - min(len(rest), tail_limit) :]
    kept = capture.kept()
    assert (data(kept.head), data(kept.tail)) == (head, tail)
    assert kept.omitted_bytes == len(whole) - len(head) - len(tail)
    for number in (1, 2):
        text = b"".join(text for stream, _, text in writes if stream == number)
        sha256 = hashlib.sha256(text).hexdigest() if head_limit or tail_limit else None
        assert capture.stream(number) == (len(text), sha256)


@given(WRITES, st.integers(1, 60), st.integers(1, 60), st.data())
def test_since_an_offset_comes_what_followed_it_or_a_gap(
    writes: list[tuple[int, int, bytes]], head_limit: int, tail_limit: int, draw: st.DataObject
) -> None:
    capture, whole = Capture(head_limit, tail_limit), b""
    for stream, at_ms, text in writes:
        capture.feed(stream, at_ms, text)
        whole += text
    offset = draw.draw(st.integers(0, len(whole)))
    fresh = capture.since(offset)
    head = b"".join(bytes(frame.data) for frame in fresh.head)
    tail = b"".join(bytes(frame.data) for frame in fresh.tail)
    assert head == whole[offset:head_limit]
    assert whole[offset:].endswith(tail)
    assert fresh.gap == (len(head) + len(tail) < len(whole) - offset)
    assert not fresh.gap or len(tail) == tail_limit
