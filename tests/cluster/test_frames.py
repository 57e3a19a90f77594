"""Frames come out whole, however their bytes were cut, and descriptors with their own frame."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.cluster.frames import DamagedFrame, Frame, FrameReader, head_of
from qserver.cluster.messages import (
    Answer,
    Call,
    Cancel,
    Hello,
    Message,
    Move,
    decode,
    encode,
)
from qserver.limits import LINK_FRAME_BYTES_MAX
from tests.cluster.linked import open_descriptors

frames = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=40), st.booleans()), max_size=8)
Written = list[tuple[int, bytes, bool]]


def stream_of(written: Written) -> tuple[bytes, dict[int, int], list[Frame]]:
    """The bytes of frames, the descriptors by the place that they come at, and the frames."""
    stream, places, expected = b"", {}, []
    for kind, payload, has_descriptor in written:
        descriptor = os.open(os.devnull, os.O_RDONLY) if has_descriptor else None
        if descriptor is not None:
            places[len(stream)] = descriptor
        stream += head_of(kind, len(payload), has_descriptor) + payload
        expected.append(Frame(kind, payload, descriptor))
    return stream, places, expected


def read(reader: FrameReader) -> list[Frame]:
    found = []
    while (frame := reader.next_frame()) is not None:
        found.append(frame)
    return found


@given(frames, st.data())
def test_frames_that_are_cut_anywhere_come_out_whole(written: Written, data: st.DataObject) -> None:
    before = open_descriptors()
    stream, places, expected = stream_of(written)
    cuts = data.draw(st.sets(st.integers(0, len(stream)), max_size=20))
    reader = FrameReader()
    found = []
    for begin, end in pairwise(sorted({0, len(stream), *cuts})):
        reader.feed(stream[begin:end], [places[at] for at in places if begin <= at < end])
        found += read(reader)
    assert found == expected
    for frame in found:
        if frame.descriptor is not None:
            os.close(frame.descriptor)
    reader.close()
    assert open_descriptors() <= before


@given(frames, st.data())
def test_descriptors_of_frames_that_were_cut_off_are_closed(
    written: Written, data: st.DataObject
) -> None:
    before = open_descriptors()
    stream, places, expected = stream_of(written)
    end = data.draw(st.integers(0, len(stream)))
    reader = FrameReader()
    reader.feed(stream[:end], [places[at] for at in places if at < end])
    found = read(reader)
    assert found == expected[: len(found)]
    reader.close()
    never_came = [places[at] for at in places if at >= end]
    for descriptor in [*never_came, *(frame.descriptor for frame in found)]:
        if descriptor is not None:
            os.close(descriptor)
    assert open_descriptors() <= before


def test_a_descriptor_without_a_frame_and_a_frame_without_one_are_damage() -> None:
    before = open_descriptors()
    reader = FrameReader()
    reader.feed(head_of(1, 0, False), [os.open(os.devnull, os.O_RDONLY)])
    assert reader.next_frame() == Frame(1, b"", None)
    with pytest.raises(DamagedFrame, match="belongs to no frame"):
        reader.next_frame()
    reader.close()
    assert open_descriptors() <= before

    reader = FrameReader()
    reader.feed(head_of(1, 5, True))
    with pytest.raises(DamagedFrame, match="is missing"):
        reader.next_frame()


@pytest.mark.parametrize(
    "head", [b"xx\0\0\0\0\0\0", b"qf\0\2\0\0\0\0", b"GET / HT", b"qf\0\0\xff\xff\xff\xff"]
)
def test_other_bytes_are_damage(head: bytes) -> None:
    reader = FrameReader()
    reader.feed(head)
    with pytest.raises(DamagedFrame, match="no head of a frame"):
        reader.next_frame()


def test_a_frame_has_a_largest_size() -> None:
    assert len(head_of(0, LINK_FRAME_BYTES_MAX, False)) == 8
    with pytest.raises(AssertionError):
        head_of(0, LINK_FRAME_BYTES_MAX + 1, False)
    reader = FrameReader()
    largest = head_of(0, LINK_FRAME_BYTES_MAX, False)
    reader.feed(largest)
    assert reader.next_frame() is None
    reader = FrameReader()
    reader.feed(largest[:4] + (LINK_FRAME_BYTES_MAX + 1).to_bytes(4, "big"))
    with pytest.raises(DamagedFrame):
        reader.next_frame()


@pytest.mark.parametrize(
    "message",
    [Hello(3), Call(1, "f", [1, b"x"], None), Answer(1, {"a": None}), Move([1], b"x"), Cancel(9)],
    ids=lambda message: type(message).__name__,
)
def test_a_message_comes_back(message: Message) -> None:
    assert decode(*encode(message)) == message


@given(st.integers(0, 255), st.binary(max_size=60))
def test_whatever_a_frame_holds_it_is_a_message_or_damage(kind: int, payload: bytes) -> None:
    try:
        assert isinstance(decode(kind, payload), Message)
    except DamagedFrame:
        pass


def test_a_message_with_a_field_too_many_or_too_few_is_damage() -> None:
    kind, payload = encode(Cancel(1))
    for wrong in (b"\x90", b"\x92\x01\x01", payload + b"\0"):
        with pytest.raises(DamagedFrame, match="Cancel does not read"):
            decode(kind, wrong)
