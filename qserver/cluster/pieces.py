"""Large messages in pieces, so that others need not wait for the whole of one.

    message ──► frame        if it is short
            ──► frame of kind PIECE ┌────────┬──────┬──────┬──────────────────────────┐
                                    │ number │ kind │ last │ a part of the payload    │  …
                                    └────────┴──────┴──────┴──────────────────────────┘

Pieces of several messages come in any order of the messages; the number says which one it is of.
A descriptor comes with the first piece.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Final

from qserver.cluster.frames import DamagedFrame, Frame, head_of
from qserver.limits import LINK_FRAME_BYTES_MAX, LINK_MESSAGE_BYTES_MAX

PIECE: Final = 255
_HEAD: Final = Struct(">IB?")
PIECE_BYTES: Final = LINK_FRAME_BYTES_MAX - _HEAD.size


def piece_head(number: int, kind: int, length: int, is_last: bool, has_descriptor: bool) -> bytes:
    """Return what stands before a piece: the head of its frame, and its own."""
    frame = head_of(PIECE, _HEAD.size + length, has_descriptor)
    return frame + _HEAD.pack(number, kind, is_last)


@dataclass(slots=True)
class _Begun:
    kind: int
    descriptor: int | None
    payload: bytearray = field(default_factory=bytearray)


class Gatherer:
    """Frames in, whole messages out."""

    def __init__(self) -> None:
        self._begun: dict[int, _Begun] = {}

    def gather(self, frame: Frame) -> Frame | None:
        """Return a message that is whole with this frame; None if more of it must come."""
        if frame.kind != PIECE:
            return frame
        try:
            number, kind, is_last = _HEAD.unpack_from(frame.payload)
            begun = self._begun.get(number) or _Begun(kind, None)
            if begun.kind != kind or len(begun.payload) > LINK_MESSAGE_BYTES_MAX:
                raise DamagedFrame(f"piece {number} is of another message, or of one too large")
            if frame.descriptor is not None and begun.payload:
                raise DamagedFrame("the descriptor of a message is not with its first piece")
        except (DamagedFrame, StructError) as error:
            if frame.descriptor is not None:
                os.close(frame.descriptor)
            raise DamagedFrame(str(error)) from None
        if frame.descriptor is not None:
            begun.descriptor = frame.descriptor
        self._begun[number] = begun
        begun.payload += memoryview(frame.payload)[_HEAD.size :]
        if not is_last:
            return None
        del self._begun[number]
        return Frame(kind, bytes(begun.payload), begun.descriptor)

    def close(self) -> None:
        """Close the descriptors of messages that were not given out."""
        for begun in self._begun.values():
            if begun.descriptor is not None:
                os.close(begun.descriptor)
        self._begun.clear()
