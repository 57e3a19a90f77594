"""Messages in pieces come out whole, in whatever order pieces of several of them come."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.cluster.frames import DamagedFrame, Frame, FrameReader
from qserver.cluster.pieces import PIECE, Gatherer, piece_head
from tests.cluster.linked import open_descriptors


def piece(
    number: int, data: bytes, is_last: bool, kind: int = 3, descriptor: int | None = None
) -> Frame:
    reader = FrameReader()
    head = piece_head(number, kind, len(data), is_last, descriptor is not None)
    reader.feed(head + data, [] if descriptor is None else [descriptor])
    frame = reader.next_frame()
    assert frame is not None and frame.kind == PIECE
    return frame


def null_device() -> int:
    return os.open(os.devnull, os.O_RDONLY)


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=9), st.booleans()), max_size=40))
def test_pieces_of_several_messages_may_alternate(pieces: list[tuple[int, bytes, bool]]) -> None:
    gatherer = Gatherer()
    begun: dict[int, bytes] = {}
    for number, data, is_last in pieces:
        begun[number] = begun.get(number, b"") + data
        found = gatherer.gather(piece(number, data, is_last))
        assert found == (Frame(3, begun.pop(number), None) if is_last else None)
    short = Frame(7, b"short", None)
    assert gatherer.gather(short) is short


def test_a_descriptor_comes_with_the_first_piece_and_goes_with_the_message() -> None:
    descriptor = null_device()
    gatherer = Gatherer()
    assert gatherer.gather(piece(1, b"a", False, descriptor=descriptor)) is None
    assert gatherer.gather(piece(1, b"b", True)) == Frame(3, b"ab", descriptor)
    os.close(descriptor)


def test_descriptors_of_messages_that_are_not_whole_are_closed() -> None:
    before = open_descriptors()
    gatherer = Gatherer()
    gatherer.gather(piece(1, b"a", False, descriptor=null_device()))
    gatherer.gather(piece(2, b"a", False))
    gatherer.close()
    assert open_descriptors() == before


@pytest.mark.parametrize("has_descriptor", [False, True])
@pytest.mark.parametrize("what", ["too short", "another kind", "too large"])
def test_a_piece_that_does_not_fit_is_damage(
    what: str, has_descriptor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_descriptors()
    descriptor = null_device() if has_descriptor else None
    gatherer = Gatherer()
    gatherer.gather(piece(1, b"abc", False))
    bad = piece(1, b"x", False, descriptor=descriptor)
    if what == "too short":
        bad = Frame(PIECE, b"abc", descriptor)
    elif what == "another kind":
        bad = piece(1, b"x", False, 4, descriptor)
    else:
        monkeypatch.setattr("qserver.cluster.pieces.LINK_MESSAGE_BYTES_MAX", 2)
    with pytest.raises(DamagedFrame):
        gatherer.gather(bad)
    gatherer.close()
    assert open_descriptors() == before


def test_a_descriptor_with_a_later_piece_is_damage() -> None:
    before = open_descriptors()
    gatherer = Gatherer()
    gatherer.gather(piece(1, b"a", False))
    with pytest.raises(DamagedFrame, match="first piece"):
        gatherer.gather(piece(1, b"b", True, descriptor=null_device()))
    assert open_descriptors() == before
