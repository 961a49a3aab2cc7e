"""Frames: encoding, and what is made of damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runguard.guard.frames import Frame, decode, encode, last, size

FRAMES = st.lists(st.builds(Frame, st.sampled_from([1, 2]), st.integers(0, 2**64 - 1), st.binary(min_size=1)))
TWO = [Frame(1, 0, b"out\n"), Frame(2, 150, b"err\n")]


def test_a_frame_is_stream_milliseconds_length_and_bytes() -> None:
    assert encode(TWO).hex() == "010000000000000000040000006f75740a" + "029600000000000000040000006572720a"


@given(FRAMES)
def test_what_was_encoded_is_decoded(frames: list[Frame]) -> None:
    assert decode(encode(frames)) == frames


@given(FRAMES, st.integers(1, 100))
def test_of_torn_frames_every_whole_byte_is_kept(frames: list[Frame], cut: int) -> None:
    encoded = encode(frames)
    whole = b"".join(bytes(frame.data) for frame in frames)
    read = b"".join(bytes(frame.data) for frame in decode(encoded[:-cut], torn=True))
    assert whole.startswith(read)
    assert len(read) >= len(whole) - cut


@given(st.binary())
def test_garbage_is_refused_or_read_never_a_crash(garbage: bytes) -> None:
    readable = encode(decode(garbage, torn=True))
    try:
        frames = decode(garbage)
    except ValueError:
        assert readable != garbage
    else:
        assert encode(frames) == readable == garbage


@pytest.mark.parametrize("cut", [1, 4, 16])
def test_a_torn_frame_is_an_error_where_none_is_expected(cut: int) -> None:
    with pytest.raises(ValueError, match="no output frame at byte"):
        decode(encode(TWO)[:-cut])


def test_an_unknown_stream_is_damage() -> None:
    with pytest.raises(ValueError, match="byte 0"):
        decode(bytes(14))
    assert decode(encode(TWO) + bytes(14), torn=True) == TWO


def test_the_last_bytes_cut_into_a_frame() -> None:
    assert last(TWO, 6) == [Frame(1, 0, b"t\n"), Frame(2, 150, b"err\n")]
    assert last(TWO, 4) == [Frame(2, 150, b"err\n")]
    assert last(TWO, 0) == []
    assert size(TWO) == 8
