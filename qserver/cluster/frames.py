"""Frames: whole messages over a stream of bytes, each with at most one file descriptor.

    ┌──────┬──────┬─────────────┬────────┬───────────┐
    │ "qf" │ kind │ descriptors │ length │  payload  │      descriptors: 0 or 1
    └──────┴──────┴─────────────┴────────┴───────────┘
       2      1          1          4       length

A Unix socket hands over a descriptor with the first byte of the piece that it was sent with, so a
descriptor is there no later than the head of its frame, and descriptors arrive in the order of
their frames. `FrameReader` takes pieces, cut anywhere, and gives back frames.

A descriptor is never leaked: it belongs to the reader until its frame is given out, and `close`
closes those that were not. Whoever takes a frame owns the descriptor in it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from qserver.limits import LINK_FRAME_BYTES_MAX

_HEAD: Final = Struct(">2sBBI")
_MARK: Final = b"qf"


class DamagedFrame(Exception):
    """The peer's fault: what it sent is no frame. The connection cannot go on."""


class Frame(NamedTuple):
    kind: int
    payload: bytes
    descriptor: int | None


def head_of(kind: int, length: int, has_descriptor: bool) -> bytes:
    assert length <= LINK_FRAME_BYTES_MAX
    return _HEAD.pack(_MARK, kind, has_descriptor, length)


class FrameReader:
    """Pieces of bytes with descriptors in, frames out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._descriptors: deque[int] = deque()

    def feed(self, data: bytes, descriptors: Iterable[int] = ()) -> None:
        self._buffer += data
        self._descriptors.extend(descriptors)

    def next_frame(self) -> Frame | None:
        """Return the next whole frame, None if more bytes are needed; or raise DamagedFrame."""
        if len(self._buffer) < _HEAD.size:
            if self._descriptors and not self._buffer:
                raise DamagedFrame("a descriptor that belongs to no frame")
            return None
        mark, kind, descriptors, length = _HEAD.unpack_from(self._buffer)
        if mark != _MARK or descriptors > 1 or length > LINK_FRAME_BYTES_MAX:
            raise DamagedFrame(f"{bytes(self._buffer[: _HEAD.size])!r} is no head of a frame")
        if descriptors > len(self._descriptors):
            raise DamagedFrame("the descriptor of a frame is missing")
        end = _HEAD.size + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            payload = bytes(view[_HEAD.size : end])
        del self._buffer[:end]
        return Frame(kind, payload, self._descriptors.popleft() if descriptors else None)

    def close(self) -> None:
        """Close the descriptors of frames that were not given out."""
        while self._descriptors:
            os.close(self._descriptors.popleft())
